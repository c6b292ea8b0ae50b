"""What a reader sees of a campaign that runs: one bar, on a terminal and in a log; the time that is left."""

from collections.abc import Callable
from typing import Any

import pytest
from counting_jobs import ALONE, JOBS, ONE, TWO
from leamvd.campaign.jobs import Job
from leamvd.campaign.run import _Progress, run
from test_campaign import Clock

TOTAL = sum(job.iterations for job in JOBS)


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what makes a bar whose time stands still until it is told."""
    clock = Clock(1000.0)

    def made(*jobs: Job, show: bool = True) -> Any:
        progress = _Progress("digits", jobs or JOBS, show=show)
        monkeypatch.setattr(progress._bar, "_time", clock.monotonic, raising=False)
        progress._bar.start_t = progress._bar.last_print_t = clock.now
        return progress, clock

    return made


def test_an_iteration_counts_once(bar: Callable[..., Any]) -> None:
    progress, _ = bar()
    with progress:
        for iteration in (1, 2, 3, 1, 2, 3, 4):  # it was begun again after a death
            progress.reached(ALONE, iteration)
        assert progress._bar.n == 4
        progress.stored(ALONE)  # a search may end before its last iteration
        progress.stored(ALONE)
        assert progress._bar.n == ALONE.iterations
        progress.reached(ONE, 99)
        assert progress._bar.n == ALONE.iterations + ONE.iterations


def test_the_time_that_is_left_goes_by_what_has_been_computed_now(bar: Callable[..., Any]) -> None:
    progress, clock = bar()
    with progress:
        progress.found(ALONE, 4)
        progress.stored(TWO)
        progress.reached(ALONE, 5)
        clock.now += 10
        known = progress._bar.format_dict
        assert (known["initial"], known["n"], known["elapsed"]) == (4 + TWO.iterations, 5 + TWO.iterations, 10)
        assert " 10.00s/it" in progress._bar.format_meter(**known), "one iteration in ten seconds"
        assert f"1 of {len(JOBS)} jobs" in str(progress._bar)


def test_a_log_stays_short_and_ends_clean(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    class Told:
        def iteration(self, job: Job) -> None:
            pass

    run(JOBS, tmp_path, data=Told(), label="digits")
    out, err = capsys.readouterr()
    assert out == ""
    assert f"digits:   0%|          | 0/{TOTAL}" in err
    assert err.count("it/s") <= 2
    assert err.rpartition("\r")[2] == "", "no bar stays"


def test_nothing_is_shown_where_it_is_not_asked_for(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], bar: Callable[..., Any]
) -> None:
    with pytest.raises(KeyboardInterrupt), bar(show=False)[0]:
        raise KeyboardInterrupt
    assert capsys.readouterr() == ("", "")


def test_a_line_does_not_tear_the_bar(bar: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    with bar()[0] as progress:
        progress.say("warning: something")
    lines = capsys.readouterr().err.replace("\r", "\n").splitlines()
    assert "warning: something" in lines
