"""Three kills at random moments; `make chaos` does a hundred."""

import random
from pathlib import Path

import pytest
from chaos import TARGETS, Peace, peace, torment


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Peace]:
    return {section: peace(section, tmp_path_factory.mktemp(section)) for section in ("mnist-7x7", "computed-there")}


@pytest.mark.parametrize(("name", "kills"), [("command", 1), ("a job of 2", 1), ("kernel", 1)])
def test_what_is_killed_at_random_is_done_in_the_end_to_the_same_records(
    name: str, kills: int, tmp_path: Path, whole: dict[str, Peace]
) -> None:
    outcome = torment(TARGETS[name], kills, tmp_path, random.Random(), whole[TARGETS[name].section])
    assert outcome.kills == kills
    assert outcome.identical
    assert outcome.leftovers == []
    assert outcome.survived < 30
