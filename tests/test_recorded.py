"""What ships still comes out: the smallest recorded units, rerun."""

import os

import pytest

from leamvd.paper import records
from leamvd.paper.verification import verify

pytestmark = [
    pytest.mark.skipif(not os.environ.get("LEAMVD_DATA_DIR"), reason="needs MNIST: set LEAMVD_DATA_DIR"),
    pytest.mark.skipif(not records.is_recorded("mnist_7x7"), reason="study A is not recorded"),
]


def test_the_smallest_recorded_units_come_out_again() -> None:
    table = verify("mnist_7x7", units=2).units
    assert len(table) == 2
    assert not table["drifts"].any(), table
