"""Five kills at random moments; `make chaos` does a hundred."""

import random
from pathlib import Path

import pytest
from chaos import TARGETS, torment


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_killed_at_random_is_done_in_the_end_to_the_same_records(name: str, tmp_path: Path) -> None:
    outcome = torment(TARGETS[name], 1, tmp_path, random.Random())
    assert outcome.kills == 1
    assert outcome.identical
    assert outcome.leftovers == []
    assert outcome.survived < 10
