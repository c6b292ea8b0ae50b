"""What ships still comes out: of each kind of table the smallest recorded job."""

import os

import pytest

from leamvd.campaign import archive
from leamvd.studies.recording import verify

pytestmark = pytest.mark.skipif(not os.environ.get("LEAMVD_DATA_DIR"), reason="needs MNIST: set LEAMVD_DATA_DIR")


@pytest.mark.parametrize("name", ["mnist_7x7", "readings_functions", "longer_searches"])
def test_the_smallest_recorded_jobs_come_out_again(name: str) -> None:
    if not archive.exists(name):
        pytest.skip(f"{name} is not recorded")
    found = verify(name, jobs=1).jobs
    assert not found["drifts"].any(), found
