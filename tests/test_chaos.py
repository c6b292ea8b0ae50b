"""A kill at a random moment; `make chaos` does a hundred."""

from pathlib import Path

from chaos import TARGETS, peace, torment


def test_what_is_killed_at_random_is_done_in_the_end_to_the_same_rows(tmp_path: Path) -> None:
    whole, seconds = peace(tmp_path)
    assert len(whole) > 8
    outcome = torment(TARGETS["one of 2 processes"], 1, tmp_path / "killed", whole, seconds)
    assert outcome.kills == 1
    assert outcome.identical
    assert outcome.leftovers == []
