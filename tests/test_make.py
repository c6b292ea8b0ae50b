"""What `make test`, `.ci/run` and a release say to those who call them, with programs that only end
as they are told.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not shutil.which("make"), reason="needs make and a shell"
)


def program(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")), encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("tests", "figures", "works"), [(0, 0, True), (1, 0, False), (0, 1, False), (1, 1, False)]
)
def test_make_test_fails_where_tests_or_figures_fail(
    tests: int, figures: int, works: bool, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    ends = ('case "$*" in', f"*--nbval*) exit {tests};;", f"*test_figures*) exit {figures};; esac")
    program(venv / "bin" / "python", f'echo "$*" >> {tmp_path / "calls"}', *ends)
    (venv / "installed").touch()
    command = ["make", "test", f"VENV={venv}", f"NBVAL={tmp_path / 'nbval'}"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
    assert (done.returncode == 0) == works
    told, moved, compared = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert f" tests {tmp_path / 'nbval'}" in told
    assert "moved_figures.py" in moved
    assert "test_figures.py" in compared
    copied = {path.name for path in (tmp_path / "nbval").iterdir()}
    assert copied == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}


@pytest.mark.parametrize("hosted", [True, False])
def test_licenses_that_cannot_be_checked_fail_the_hosted_run_alone(
    hosted: bool, tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    program(tmp_path / ".venv" / "bin" / "python", "exit 1")  # installs nothing
    program(tmp_path / "bin" / "make", f'echo "$*" >> {tmp_path / "calls"}')
    env = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"}
    env["PATH"] = f"{tmp_path / 'bin'}:{env['PATH']}"
    if hosted:
        env["GITHUB_ACTIONS"] = "true"
    run = [str(tmp_path / ".ci" / "run")]
    done = subprocess.run(run, env=env, capture_output=True, check=False)
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert done.returncode == int(hosted)
    assert calls == [".venv/installed"] if hosted else [".venv/installed", "lint", "test"]


@pytest.mark.parametrize("staged", [True, False])
def test_a_release_is_what_is_committed(staged: bool, tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "release.py", tmp_path / ".ci")

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def released() -> str:
        run = [sys.executable, script]
        return subprocess.run(run, capture_output=True, text=True, check=False).stderr

    (tmp_path / "page").write_text("one", encoding="utf-8")
    git("init")
    git("add", "page")
    git("commit", "-m", "First")
    assert "commit your changes" not in released(), "files that git does not have are no changes"
    (tmp_path / "page").write_text("two", encoding="utf-8")
    if staged:
        git("add", "page")
    assert released() == "a release is what is committed: commit your changes first\n"
