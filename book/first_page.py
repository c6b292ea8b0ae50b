"""The first page's picture in a clone, its data and a figure without JavaScript: `python
book/first_page.py`.
"""

import io
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from PIL import Image

from leamvd_paper.studies import error_measures, settings_map
from leamvd_paper.studies.claims import Margins
from leamvd_paper.studies.plots import GRAY, log_scale, method_look, panels, save, styled
from leamvd_paper.studies.results import read_recorded

SIZES = {"small": 7, "large": 28}  # pixels
METHODS = {"start": "no search", "lea-mvd": "lea-mvd", "printed": "lea-mvd:printed"}
LABELS = {"start": "no search", "lea-mvd": "LEA-MVD", "printed": "as printed"}
WORDS = {
    ("small", "CD"): {
        "start": (60, -15, "center"),
        "lea-mvd": (1, 8, "left"),
        "printed": (10, 6, "left"),
        "CD": (600, 8, "right"),
    },
    ("large", "CD"): {"start": (60, 6, "left"), "CD": (1, 3, "left")},
    ("small", "constant"): {
        "start": (30, 6, "left"),
        "lea-mvd": (1, -24, "left"),
        "printed": (10, -15, "left"),
        "constant": (1, 3, "left"),
        "CD": (600, -11, "right"),
    },
    ("large", "constant"): {
        "start": (30, 6, "left"),
        "constant": (600, 3, "right"),
        "CD": (1, 3, "left"),
    },
}
"""Where a word stands: at which mini-batches, how many points above its curve or level, and which
of its sides is there.
"""
MARKERS = {"start": "o", "lea-mvd": "D", "printed": "s"}
WHICH = "n_images == 60_000 and momentum_epochs == 5"
PNG = "data:image/png;base64,"
STEP = 255 // 15  # of gray levels


def data() -> pd.Series:
    """Return RBM 3's last errors over CD's and over a constant image's at both sizes, and the
    digits of seed 0.
    """
    small = error_measures.tables()
    lea_mvd = read_recorded("mnist_7x7", "pictures").query("method == 'lea-mvd'")
    of_small = [small.pictures.query(WHICH), lea_mvd.assign(batches=600)]  # 600 are an epoch
    cd = read_recorded("mnist_28x28", "pictures").query("method == 'cd'")
    of_large = [read_recorded("few_updates_28x28", "pictures"), cd.assign(batches=0)]
    found = {
        "small": shown(small.runs.query(WHICH), pd.concat(of_small)),
        "large": shown(error_measures.at_28x28(), pd.concat(of_large)),
    }
    return pd.Series(found)


def shown(runs: pd.DataFrame, pictures: pd.DataFrame) -> dict[str, Any]:
    """Return what is shown of a size: CD's ratio to the constant image, a line for each method, and
    the digits.

    The errors are geometric means. Rows of digits are the originals, those of CD, and those of each
    point of the lines.
    """
    table = error_measures.by_batches(error_measures.over_cd(runs)).query("layer == 3")
    found: dict[str, Any] = {"cd": digits_of(table.loc[table["method"] == "cd", "ratio"])[0]}
    rows = [("cd", 0, 0), ("cd", 0, 3)]
    for name, method in METHODS.items():
        line = table[table["method"] == method].sort_values("batches")
        if len(line):
            batches = [*line["batches"]]
            found[name] = {
                "batches": batches,
                "CD": digits_of(line["error"]),
                "constant": digits_of(line["ratio"]),
            }
            key = name if name == "start" else method
            rows += [(key, k, 3) for k in batches]
    of_seed = pictures.query("kind == 'digit' and seed == 0")
    digits = of_seed.groupby(["method", "batches", "layers"])
    grays = np.stack([digits.get_group(row)["gray"] for row in rows])
    found["digits"] = picture(grays)
    return found


def digits_of(values: pd.Series) -> list[float]:
    """Return numbers with four digits."""
    return [float(f"{value:.4g}") for value in values]


def picture(grays: np.ndarray) -> str:
    """Return rows of ten digits, shape (rows, 10 pixels), as a picture for a page: black, as opaque
    as they are dark.

    It has 16 levels, which take half the room of 256.
    """
    side = round((grays.shape[1] / 10) ** 0.5)
    digits = (STEP * np.rint(grays / STEP)).astype(np.uint8).reshape(-1, 10, side, side)
    apart = np.pad(digits, ((0, 0), (0, 0), (0, 0), (0, 1))).swapaxes(1, 2)
    opaque = apart.reshape(len(grays) * side, -1)[:, :-1]
    file = io.BytesIO()
    black = np.zeros_like(opaque)
    drawn = Image.fromarray(np.stack([black, opaque], axis=2), "LA")
    drawn.save(file, "PNG", optimize=True)
    return PNG + b64encode(file.getvalue()).decode()


def rows_of(digits: str, side: int) -> np.ndarray:
    """Return the gray levels of a `picture`, shape (rows, side, width)."""
    file = io.BytesIO(b64decode(digits.removeprefix(PNG)))
    opaque = np.array(Image.open(file))[:, :, 1]
    return opaque.reshape(-1, side, opaque.shape[1])


def _digits(ax: Axes, own: dict[str, Any], side: int) -> None:
    """Draw the original digits, those of CD, and those that stacks without a search give back."""
    batches = own["start"]["batches"]
    rows = {"original": 0, "CD": 1}
    for k in (10, 100, 600):
        rows[f"{k}, no search"] = 2 + batches.index(k)
    grays = rows_of(own["digits"], side)[[*rows.values()]]
    digits = np.pad(grays, ((0, 0), (0, side // 7), (0, 1)))
    if side == SIZES["large"]:  # half as many pixels each way
        digits = digits.reshape(len(rows), 16, 2, -1, 2).mean(axis=(2, 4)).round()
    ax.imshow(
        np.vstack(digits),
        extent=(0, 1, len(rows), 0),
        cmap="gray_r",
        vmin=0,
        vmax=255,
        interpolation="none",
        aspect="auto",
        zorder=3,
    )
    ax.set(frame_on=False, xticks=[])
    ax.set_yticks(np.arange(len(rows)) + 0.5, [*rows])


def _curves(ax: Axes, size: str, own: dict[str, Any], over: str) -> None:
    """Draw a size's errors over CD's or a constant image's, each curve and level with its name."""
    words = WORDS[size, over]
    for name, method in METHODS.items():
        if name in own:
            line = own[name]
            look = {**method_look(method), "marker": MARKERS[name]}
            ax.plot(line["batches"], line[over], markersize=4, **look)
            k = words[name][0]
            error = line[over][line["batches"].index(k)]
            _word(ax, LABELS[name], error, words[name], look["color"])
    levels = {"CD": 1}
    if over == "constant":
        levels = {"constant": 1, "CD": own["cd"]}
    for name, error in levels.items():
        ax.axhline(error, color=GRAY, linewidth=1)
        _word(ax, name, error, words[name], GRAY)


def _word(ax: Axes, text: str, error: float, place: tuple[int, int, str], color: str) -> None:
    """Write a word at its place, over a light ground."""
    k, above, side = place
    words = ax.annotate(
        text, (k, error), (0, above), textcoords="offset points", ha=side, color=color
    )
    words.set_path_effects([withStroke(linewidth=2, foreground="white")])


@styled
def figure(found: pd.Series) -> Figure:
    """Draw the errors, and the digits that stacks without a search give back: 7x7 pixels left,
    28x28 right.
    """
    drawn, axes = panels(3, 2, height=6.8, height_ratios=(3, 3, 2.2), sharey="row")
    for (size, side), (above, below, last) in zip(SIZES.items(), axes.T, strict=True):
        own = found[size]
        for ax, over in ((above, "CD"), (below, "constant")):
            _curves(ax, size, own, over)
            log_scale(ax, "xy")
        above.set(title=f"{side}×{side} pixels", ylim=(0.012, 60))
        below.set(ylim=(0.01, 300), xlabel="mini-batches in each layer")
        _digits(last, own, side)
    axes[2, 1].tick_params(labelleft=False)
    axes[0, 0].set_ylabel("error of RBM 3 / CD's")
    axes[1, 0].set_ylabel("error of RBM 3 / constant's")
    return drawn


def parts(found: settings_map.Tables) -> pd.DataFrame:
    """Return every part of the claims that are asked by the settings that the paper does not print,
    by these settings.
    """
    margins = Margins()
    networks = settings_map.evidence_of_networks(settings_map.networks(), margins)
    evidence = settings_map.evidence(found.runs, margins)
    large = settings_map.evidence_of_large(found.large, found.runs, margins)
    return pd.concat([evidence, large, networks])


def answers(found: settings_map.Tables, judged: pd.DataFrame) -> Figure:
    """Draw the answers to the claims of which there are `parts`."""
    marked = settings_map.untold(found.runs)
    return settings_map.plot_answers(settings_map.answers(judged), [*marked])


if __name__ == "__main__":
    data().to_json("book/static/first_page.json")
    on_map = settings_map.recorded()
    save(answers(on_map, parts(on_map)), "map", "book/static")
    save(figure(data()), "first_page", "book/static")
