"""The accepted figures of the quick run: which runs they come from, and in what another run's figures differ.

A figure has moved where its words, colors or arrays differ, or else its pixels. Figures named timing-* show seconds or
bytes and are not compared.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.testing.compare import calculate_rms
from PIL import Image

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "tests" / "figures"
RUNS = ROOT / "tests" / "accepted.json"
SAME_FONTS, OTHER_FONTS = 2.0, 20.0  # RMS in gray levels; text alone differs by up to 18 between releases of FreeType


def figures(folder: Path) -> dict[str, Path]:
    """Return the arrays of the figures somewhere in a folder, by name; each one's picture lies beside them."""
    found = {path.stem: path for path in folder.rglob("figures/*.json")}
    return {name: found[name] for name in sorted(found) if not name.startswith("timing-")}


def shown(notebook: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the cells of a notebook that show a figure, by its name."""
    names = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", "") for cell in notebook["cells"]]
    return {name.removeprefix("fig-"): cell for name, cell in zip(names, notebook["cells"], strict=True) if name}


def runs() -> dict[str, dict[str, Any]]:
    """Return for each accepted figure what its run has said of itself, see `leamvd.book.runs.describe`."""
    entries = json.loads(RUNS.read_text(encoding="utf-8"))
    return {name: entry["run"] for entry in entries for name in entry["figures"]}


def write_runs(of: dict[str, dict[str, Any]]) -> None:
    """Store for each accepted figure what its run has said of itself, once for all figures of a run."""
    entries: dict[str, dict[str, Any]] = {}
    for name, about in sorted(of.items()):
        run = {key: value for key, value in about.items() if key != "studies"}
        entries.setdefault(json.dumps(run, sort_keys=True), {"run": run, "figures": []})["figures"].append(name)
    RUNS.write_text(json.dumps([*entries.values()], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def moved(before: Path, after: Path) -> list[str]:
    """Return in words what differs between two figures, given by their arrays; nothing where they are the same."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    return content(old, new) + pixels(before.with_suffix(".png"), after.with_suffix(".png"))


def content(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return in words what differs between what two figures show, see `leamvd.paper.figures.style.shown`."""
    found = [_change(name, old[name], new[name]) for name in ("titles", "legends") if old[name] != new[name]]
    if len(old["axes"]) != len(new["axes"]):
        found.append(f"{len(new['axes'])} axes, were {len(old['axes'])}")
    for number, (a, b) in enumerate(zip(old["axes"], new["axes"], strict=False), start=1):
        title = f" ({a['title']!r})" if a["title"] else ""
        words = [name for name in a | b if name != "arrays" and a.get(name) != b.get(name)]
        changes = [_change(name, a.get(name), b.get(name)) for name in words] + _numbers(a, b)
        found += [f"axes {number}{title}: {change}" for change in changes]
    return found


def _change(name: str, old: Any, new: Any) -> str:
    """Return a name and its two values; of lists of one length, only what differs in them."""
    alike = isinstance(old, list) and isinstance(new, list) and len(old) == len(new)
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a != b] if alike else [(old, new)]
    return f"{name}: " + "; ".join(f"{a!r} became {b!r}" for a, b in pairs)


def _numbers(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return how many numbers of one of the axes have moved, and by how much, as a list of at most one sentence."""
    before, after = ([_flat(array) for array in axes.get("arrays", [])] for axes in (old, new))
    sizes = [[array.size for array in arrays] for arrays in (before, after)]
    if sizes[0] != sizes[1]:
        return [f"{sum(sizes[1])} numbers in {len(after)} arrays, were {sum(sizes[0])} in {len(before)}"]
    pairs = []
    for a, b in zip(before, after, strict=True):
        scale = np.nanmax(np.abs(a), initial=0.0)
        far = ~np.isclose(b, a, rtol=1e-6, atol=1e-6 * scale, equal_nan=True)
        pairs += [*zip(a[far], b[far], strict=True)]
    if not pairs:
        return []
    a, b = np.array(pairs).T
    with np.errstate(divide="ignore"):
        change = np.nan_to_num(np.abs(b - a) / np.abs(a), nan=np.inf)
    most = np.argmax(change)
    return [
        f"{len(a)} of {sum(sizes[0])} numbers moved; largest relative change "
        f"{100 * change[most]:.3g} % ({a[most]:.8g} became {b[most]:.8g})"
    ]


def _flat(array: Any) -> np.ndarray[Any, Any]:
    """Return a nested list as one array, with None as NaN."""

    def flat(value: Any) -> list[float]:
        return [x for v in value for x in flat(v)] if isinstance(value, list) else [np.nan if value is None else value]

    return np.array(flat(array), dtype=float)


def pixels(before: Path, after: Path) -> list[str]:
    """Return in words how far the pixels of two pictures lie apart, as a list of at most one sentence."""
    with Image.open(before) as old, Image.open(after) as new:
        if old.size != new.size:
            return [f"the picture's size in pixels: {old.size} became {new.size}"]
        same = old.info.get("Software") == new.info.get("Software")
        rms = calculate_rms(*(np.asarray(image.convert("RGB"), np.int16) for image in (old, new)))
    allowed = SAME_FONTS if same else OTHER_FONTS
    return [] if rms <= allowed else [f"pixels: {rms:.3g} gray levels apart (RMS), where {allowed:g} are allowed"]
