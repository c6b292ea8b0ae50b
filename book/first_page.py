"""The first page's picture in a clone, its data and a figure without JavaScript: `python
book/first_page.py`.
"""

import io
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from leamvd_paper.studies import error_measures
from leamvd_paper.studies.plots import GRAY, legend, log_scale, method_look, panels, save, styled
from leamvd_paper.studies.results import read_recorded

SIZES = {"small": 7, "large": 28}  # pixels
METHODS = {"start": "no search", "lea-mvd": "lea-mvd", "printed": "lea-mvd:printed"}
LABELS = {"start": "no search", "lea-mvd": "LEA-MVD", "printed": "LEA-MVD as printed"}
MARKERS = {"start": "o", "lea-mvd": "D", "printed": "s"}
WHICH = "n_images == 60_000 and momentum_epochs == 5"
PNG, STEP = "data:image/png;base64,", 255 // 15  # of gray levels


def data() -> pd.Series:
    """Return RBM 3's last errors over CD's and over a constant image's at both sizes, and the
    digits of seed 0.
    """
    small, pictures = error_measures.tables(), []
    # 600 are an epoch
    for name, batches in (("mnist_7x7", {"lea-mvd": 600}), ("mnist_28x28", {"cd": 0})):
        own = read_recorded(name, "pictures").query("method in @batches")
        pictures.append(own.assign(batches=own["method"].map(batches)))
    of_small = pd.concat([small.pictures.query(WHICH), pictures[0]])
    of_large = pd.concat([read_recorded("few_updates_28x28", "pictures"), pictures[1]])
    return pd.Series(
        {
            "small": shown(small.runs.query(WHICH), of_small),
            "large": shown(error_measures.at_28x28(), of_large),
        }
    )


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
            ends = {"CD": digits_of(line["error"]), "constant": digits_of(line["ratio"])}
            found[name] = {"batches": [*line["batches"]]} | ends
            rows += [(name if name == "start" else method, k, 3) for k in line["batches"]]
    digits = pictures.query("kind == 'digit' and seed == 0").groupby(
        ["method", "batches", "layers"]
    )
    grays = np.stack([digits.get_group(row)["gray"] for row in rows])
    return found | {"digits": picture(grays)}


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
    Image.fromarray(np.stack([np.zeros_like(opaque), opaque], axis=2), "LA").save(
        file, "PNG", optimize=True
    )
    return PNG + b64encode(file.getvalue()).decode()


def rows_of(digits: str, side: int) -> np.ndarray:
    """Return the gray levels of a `picture`, shape (rows, side, width)."""
    opaque = np.array(Image.open(io.BytesIO(b64decode(digits.removeprefix(PNG)))))[:, :, 1]
    return opaque.reshape(-1, side, opaque.shape[1])


@styled
def figure(found: pd.Series) -> Figure:
    """Draw the errors, and the digits that stacks without a search give back: 7x7 pixels left,
    28x28 right.
    """
    drawn, axes = panels(3, 2, height=7.4, height_ratios=(3, 3, 2.2), sharey="row")
    for (size, side), (above, below, last) in zip(SIZES.items(), axes.T, strict=True):
        own = found[size]
        for name in METHODS:
            if name in own:
                look = method_look(METHODS[name]) | {
                    "marker": MARKERS[name],
                    "markersize": 4,
                    "label": LABELS[name],
                }
                above.plot(own[name]["batches"], own[name]["CD"], **look)
                below.plot(own[name]["batches"], own[name]["constant"], **look)
        for ax, error, k, name in (
            (above, 1, 1, "CD"),
            (below, own["cd"], 7, "CD"),
            (below, 1, 1, "constant"),
        ):
            ax.axhline(error, color=GRAY, linewidth=1)
            ax.text(k, error, name, va="bottom")
            log_scale(ax, "xy")
        above.set(title=f"{side}×{side} pixels", ylim=(0.03, 60))
        below.set(ylim=(0.01, 300), xlabel="mini-batches in each layer")
        batches = own["start"]["batches"]
        rows = {"original": 0, "CD": 1} | {
            f"{k}, no search": 2 + batches.index(k) for k in (10, 100, 600)
        }
        digits = np.pad(
            rows_of(own["digits"], side)[[*rows.values()]], ((0, 0), (0, side // 7), (0, 1))
        )
        if size == "large":  # half as many pixels each way
            digits = digits.reshape(len(rows), 16, 2, -1, 2).mean(axis=(2, 4)).round()
        look = {
            "cmap": "gray_r",
            "vmin": 0,
            "vmax": 255,
            "interpolation": "none",
            "aspect": "auto",
            "zorder": 3,
        }
        last.imshow(digits.reshape(-1, digits.shape[2]), extent=(0, 1, len(rows), 0), **look)
        last.set(frame_on=False, xticks=[])
        last.set_yticks(np.arange(len(rows)) + 0.5, [*rows])
    axes[2, 1].tick_params(labelleft=False)
    axes[0, 0].set_ylabel("error of RBM 3 / CD's")
    axes[1, 0].set_ylabel("error of RBM 3 / constant's")
    legend(drawn)
    return drawn


if __name__ == "__main__":
    data().to_json("book/static/first_page.json")
    save(figure(data()), "first_page", "book/static")
