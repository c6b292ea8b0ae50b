"""Make the first page's picture in a clone, its data and a figure without JavaScript: `python book/first_page.py`."""

from base64 import b64decode, b64encode
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leamvd.paper import error_measures
from leamvd.paper.plots import GRAY, legend, log_scale, method_look, panels, save, styled
from leamvd.paper.results import read_recorded

METHODS, BATCHES = {"start": "no search", "lea-mvd": "LEA-MVD"}, [1, 3, 10, 30, 60, 100, 200, 300, 600]


def data() -> pd.Series:
    """Return RBM 3's last errors over CD's and over a constant image's, geometric means, and the digits of seed 0."""
    starts, which = error_measures.tables(), "n_images == 60_000 and momentum_epochs == 5"
    rows = error_measures.by_batches(error_measures.over_cd(starts.runs)).query(f"{which} and layer == 3")
    means = rows.set_index(["method", "batches"])[["error", "ratio"]].set_axis(["CD", "constant"], axis=1)
    means = means.map(lambda mean: float(f"{mean:.4g}"))
    full = read_recorded("mnist_7x7", "pictures").query("method == 'lea-mvd'").assign(batches=600)  # an epoch
    digits = pd.concat([starts.pictures.query(which), full]).query("kind == 'digit' and seed == 0")
    digits = digits.groupby(["method", "batches", "layers"])
    shown = [digits.get_group(row) for row in (("cd", 0, 0), ("cd", 0, 3), *product(METHODS, BATCHES, [3]))]
    found = {
        method: means.loc[name].loc[BATCHES].to_dict("list")
        for method, name in zip(METHODS, ("no search", "lea-mvd"), strict=True)
    }
    found |= {"batches": BATCHES, "CD": means.loc[("cd", 0), "constant"]}
    return pd.Series(found | {"digits": b64encode(bytes([*pd.concat(shown)["gray"]])).decode()})


@styled
def figure(found: pd.Series) -> Figure:
    """Draw the errors, and the digits that three stacks without a search give back."""
    drawn, ((above,), (below,), (last,)) = panels(3, 1, height=7.4, height_ratios=(3, 3, 2.8))
    for method, (ax, over) in product(METHODS, ((above, "CD"), (below, "constant"))):
        look = method_look(method) | {"marker": "o" if method == "start" else "D", "label": METHODS[method]}
        ax.plot(BATCHES, found[method][over], **look)
    for ax, error, k, name in ((above, 1, 20, "CD"), (below, found["CD"], 20, "CD"), (below, 1, 1, "constant image")):
        ax.axhline(error, color=GRAY, linewidth=1)
        ax.text(k, error, name, va="bottom")
        log_scale(ax, "xy")
    above.set(title="error of RBM 3 over CD's", ylim=(0.03, 3))
    below.set(title="error of RBM 3 over a constant image's", ylim=(0.1, 300), xlabel="mini-batches in each layer")
    rows = {"original": 0, "CD": 1, "10, no search": 4, "100, no search": 7, "600, no search": 10}
    grays = np.frombuffer(b64decode(found["digits"]), np.uint8).reshape(-1, 10, 7, 7)[[*rows.values()]]
    framed = np.pad(grays, ((0, 0), (0, 0), (0, 1), (0, 1))).swapaxes(1, 2).reshape(-1, 80)
    last.imshow(framed, cmap="gray_r", vmin=0, vmax=255, interpolation="none", zorder=3)  # over the grid
    last.set(frame_on=False, xticks=[], yticks=range(3, 43, 8), yticklabels=rows)
    legend(drawn)
    return drawn


if __name__ == "__main__":
    data().to_json("book/static/first_page.json")
    save(figure(data()), "first_page", "book/static")
