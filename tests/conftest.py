"""What every test shares: no window, a fixed number of threads, and nothing written outside the clone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Before the first import of numba or matplotlib, which read these once.
os.environ["MPLBACKEND"] = "Agg"
os.environ["NUMBA_NUM_THREADS"] = "2"
os.environ.setdefault("MPLCONFIGDIR", str(ROOT / "_build" / "config" / "matplotlib"))


@pytest.fixture(autouse=True, scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the tests, and the programs they start, an empty home folder and cache."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "IPYTHONDIR"):
            patch.setenv(name, str(home / name.lower()))
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(home / name.lower()))
        yield home


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run checks of style first, figures after the notebooks that make them; skip what needs a compiler."""
    # interrupts come last: they trace the interpreter, after which a measurement of coverage sees nothing more
    order = {"test_structure.py": 0, "test_packaging.py": 0, "test_figures.py": 3, "test_interrupts.py": 4}
    items.sort(key=lambda item: order.get(item.path.name, 2 if item.path.suffix == ".ipynb" else 1))
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="needs compiled kernels"))
