"""What every test shares: no window, a fixed number of threads, and nothing written outside the
clone.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parent.parent

# Before the first import of numba or matplotlib, which read these once.
os.environ["MPLBACKEND"] = "Agg"
os.environ["NUMBA_NUM_THREADS"] = "2"
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / "_build" / "numba"))
os.environ.setdefault("MPLCONFIGDIR", str(ROOT / "_build" / "config" / "matplotlib"))


settings.register_profile("any machine", deadline=None)  # also one that is slow, or busy
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Keep what kernels plot, those of `sections.run` too; hold what nbval's draw to the rules.

    IPython runs both files as it starts.
    """
    folder = TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    startup = Path(folder.name, "profile_default", "startup", "rules.py")
    startup.parent.mkdir(parents=True)
    line = f"import sys; sys.path.append({str(ROOT / 'tests')!r}); import figures; figures."
    startup.write_text(f"{line}hold_to_rules()", encoding="utf-8")
    os.environ["IPYTHONDIR"] = folder.name
    kept = Path(folder.name, "kept.py")
    kept.write_text(f"{line}keep_arrays()", encoding="utf-8")
    os.environ["PYTHONSTARTUP"] = str(kept)


@pytest.fixture(autouse=True, scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the tests, and the programs they start, an empty home folder and cache."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(home / name.lower()))
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(home / name.lower()))
        yield home


@pytest.fixture
def torch() -> Any:
    """Return PyTorch, which only tests that need it import."""
    return pytest.importorskip("torch")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest, torch: Any) -> str:
    """Return where PyTorch computes, once for each place that it finds here."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return str(request.param)


SLOW = ("test_notebooks.py", "test_browser.py", "test_render.py", "test_cli.py", "test_compile.py")
"""Files of tests that begin first where several processes share the work."""


class Files(LoadFileScheduling):
    """Give whole files to processes, but quick runs of notebooks one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if "test_notebooks.py" in nodeid else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Files | None:
    return Files(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest; skip what needs a compiler where there is none."""
    items.sort(key=lambda item: SLOW.index(item.path.name) if item.path.name in SLOW else len(SLOW))
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="needs compiled kernels"))
