"""A kill at a random moment; `make chaos` does a hundred."""

import random
from pathlib import Path

import pytest
from chaos import TARGETS, Peace, peace, torment


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Peace:
    return peace(tmp_path_factory.mktemp("peace"))


@pytest.mark.parametrize("name", ["one of 2 processes"])
def test_what_is_killed_at_random_is_done_in_the_end_to_the_same_rows(name: str, tmp_path: Path, whole: Peace) -> None:
    assert len(whole.content) > 8
    outcome = torment(TARGETS[name], 1, tmp_path, random.Random(), whole)
    assert outcome.kills == 1
    assert outcome.identical
    assert outcome.leftovers == []
    assert outcome.survived < 30
