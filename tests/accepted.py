"""What is accepted of the profiles "recorded" and "quick", and in what another run differs.

A figure has moved where its words, colors or arrays differ, or else, with "recorded", its pixels. The notebooks that
ship hold the tables and the pasted numbers of "recorded"; those of "quick" are in accepted.json. What is measured in
seconds and bytes is not compared: figures named timing-*, and all of section 5 with "quick".
"""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.testing.compare import calculate_rms
from PIL import Image

from leamvd.book import pasted

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "tests" / "figures"
PROFILES = ("recorded", "quick")
MEASURED = "linear-cost"  # the section that measures
RUNS = ROOT / "tests" / "accepted.json"
SAME_FONTS, OTHER_FONTS = 2.0, 20.0  # RMS in gray levels; text alone differs by up to 18 between releases of FreeType


def place(profile: str) -> Path:
    """Return the folder of a profile's accepted figures; with "quick" there are arrays alone."""
    return FIGURES if profile == "recorded" else FIGURES / profile


def compared(about: dict[str, Any]) -> bool:
    """Return whether a run, given what it says of itself, is one that is accepted or compared."""
    profile = about["parameters"].get("profile")
    return profile in PROFILES and (profile, about["section"]) != ("quick", MEASURED)


def figures(folder: Path) -> dict[str, Path]:
    """Return the arrays of the figures somewhere in a folder, by name; each one's picture lies beside them."""
    found = {path.stem: path for path in folder.rglob("figures/*.json")}
    return {name: found[name] for name in sorted(found) if not name.startswith("timing-")}


def shown(notebook: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the cells of a notebook that show a figure, by its name."""
    names = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", "") for cell in notebook["cells"]]
    return {name.removeprefix("fig-"): cell for name, cell in zip(names, notebook["cells"], strict=True) if name}


def entries() -> dict[str, dict[str, Any]]:
    """Return what is accepted of each `key`: what its "run" says of itself, its "figures", what its notebook `told`."""
    found: dict[str, dict[str, Any]] = json.loads(RUNS.read_text(encoding="utf-8"))
    return found


def write(found: dict[str, dict[str, Any]]) -> None:
    """Store `entries`."""
    text = json.dumps({name: found[name] for name in sorted(found)}, indent=1, ensure_ascii=False)
    RUNS.write_text(f"{text}\n", encoding="utf-8")


def key(about: dict[str, Any]) -> str:
    """Return under what a run is accepted: its profile and section."""
    return f"{about['parameters'].get('profile')} {about['section']}"


def names(profile: str) -> dict[str, str]:
    """Return the names of a profile's accepted figures, and the section of each."""
    own = [entry for name, entry in entries().items() if name.startswith(f"{profile} ")]
    return {name: entry["run"]["section"] for entry in own for name in sorted(entry["figures"])}


def told(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return what an executed notebook tells: what it lets pages paste, and what its cells print and return.

    Lines that a cell prints one after the other are one text, however many pieces a busy machine sends them in.
    """
    cells = [cell for cell in notebook["cells"] if "nbval-ignore-output" not in cell["metadata"].get("tags", [])]
    texts = []
    for cell in cells:
        for kind, outputs in groupby(cell.get("outputs", []), key=lambda output: output["output_type"]):
            found = ["".join(it.get("text", it.get("data", {}).get("text/plain", ""))) for it in outputs]
            texts += ["".join(found)] if kind == "stream" else found
    return {"pasted": pasted.read(notebook), "texts": list(filter(None, texts))}


def moved(before: Path, after: Path) -> list[str]:
    """Return in words what differs between two figures, given by their arrays; nothing where they are the same."""
    old, new = read(before), read(after)
    pictures = [path.with_suffix(".png") for path in (before, after)]
    return content(old, new) + (pixels(*pictures) if pictures[0].exists() else [])


def read(figure: Path) -> dict[str, Any]:
    """Return what a figure shows, given the path of one of its files, or of both without an ending."""
    shown: dict[str, Any] = json.loads(figure.with_suffix(".json").read_text(encoding="utf-8"))
    return shown


def content(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return in words what differs between what two figures show, see `leamvd.figures.style.shown`."""
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
    before, after = ([np.ravel(np.array(array, float)) for array in axes.get("arrays", [])] for axes in (old, new))
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


def pixels(before: Path, after: Path) -> list[str]:
    """Return in words how far the pixels of two pictures lie apart, as a list of at most one sentence."""
    with Image.open(before) as old, Image.open(after) as new:
        if old.size != new.size:
            return [f"the picture's size in pixels: {old.size} became {new.size}"]
        same = old.info.get("Software") == new.info.get("Software")
        rms = calculate_rms(*(np.asarray(image.convert("RGB"), np.int16) for image in (old, new)))
    allowed = SAME_FONTS if same else OTHER_FONTS
    return [] if rms <= allowed else [f"pixels: {rms:.3g} gray levels apart (RMS), where {allowed:g} are allowed"]
