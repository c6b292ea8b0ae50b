"""What readers see: methods, settings and measures by their words, numbers by their digits, and tables.

Tables on disk, columns and the command line have codes; `named` and `shown` put words in their place where something is
shown. Figures write ``label=named(method)``; a cell of a notebook ends with::

    shown(ratios, rows=["method"], columns=["runs", "ratio"], across="layer", names={"ratio": "error / CD's"})
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from leamvd.networks.dbn import METHODS as TRAINERS

WORDS = {
    "cd": "CD",
    "cd:n_gen=1": "one epoch of CD",
    "lea-mvd": "LEA-MVD",
    "cma-es": "CMA-ES",
    "sep-cma-es": "separable CMA-ES",
    "random": "random search",
    "mlp": "gradients",
    "random-glorot": "random, Glorot and Bengio",
    "random-0.01": "random, N(0, 0.01)",
    "random-0.1": "random, N(0, 0.1)",
    "mnist-7x7": "7×7 pixels",
    "mnist-28x28": "28×28 pixels",
    "mean_field": "mean-field error",
    "sampled": "sampled error",
    "test_mean_field": "mean-field error, test images",
    "test_sampled": "sampled error, test images",
    "mean_field_ratio": "mean-field ratio",
    "sampled_ratio": "sampled ratio",
    "n_var": "variables",
    "n_visible": "visible units",
    "n_hidden": "hidden units",
    "n_images": "training images",
    "n_test_images": "test images",
    "sigma0": "σ0",
    "x0": "start",
}
"""Methods, measures and columns; of all others underscores become spaces."""

SETTINGS = {
    "printed": "as printed",
    "recommended": "preset",
    "x0-excluded": "start left out",
    "x0=none": "no start",
    "x0=batch": "start: 1 mini-batch",
    "x0_batches": "start: {} mini-batches",
    "x0_epochs": "start: {} epochs of CD",
    "x0_epochs=0": "start: random weights",
    "sigma0": "σ0 = {}",
    "n_gen": "{} generations",
    "population_size": "{} individuals",
    "n_elite": "{} elites",
    "n_elite=1": "1 elite",
    "reset": "reset to {}",
    "reset=initial": "reset to the first σ",
    "reset=off": "no reset",
    "path=off": "without P",
    "descent=off": "without C_ani",
    "descent=free": "C_ani not made orthogonal",
    "shift=printed": "shift as printed",
    "convergence=unscaled": "σ_min not scaled",
    "sigma_norm=spectral": "spectral norm of σ",
    "orientation=free": "Ĉ with any sign",
    "n_descent_rows": "{} columns in U",
    "first_direction=full": "first C_ani is Ĉ",
    "descent_scale=normalized": "C_ani of length 1",
    "step=sampled": "steps along C_ani drawn",
    "projections=repeated": "second row projected twice",
    "beta1_at_one=mirrored": "β1 = 1 mirrored",
    "elites=reevaluate": "elites evaluated again",
    "limits=clip": "clipped to the limits",
    "limits=reflect": "reflected at the limits",
    "perturbation=column": "one factor for each variable",
    "ties=newest": "newcomers first among equals",
    "initial_weights=uniform": "uniform first weights",
    "weight_scale": "weights N(0, {})",
    "persistent=true": "persistent chains",
}
"""Settings of a method, with one value or with any; of all others name and value are written."""


def named(text: str) -> str:
    """Return a method, measure or column in words: "LEA-MVD, σ0 = 0.01, no reset" for "lea-mvd:sigma0=0.01+reset=off".

    A setting without its method, as "reset=off", has its own words; a text for people stays as it is.
    """
    trainer, colon, settings = text.partition(":")
    if text in WORDS:
        return WORDS[text]
    if trainer in TRAINERS and colon:
        words = ", ".join([WORDS[trainer], *_settings(settings)]).replace(", as printed", " as printed", 1)
        return words.replace("generations", "epochs") if trainer == "cd" else words
    if "=" in text and " " not in text:
        return ", ".join(_settings(text))
    return text.replace("_", " ") if text.isidentifier() and text.islower() else text


def _settings(text: str) -> Iterator[str]:
    for setting in text.replace("x0=batch+x0_batches", "x0_batches").split("+"):
        name, _, value = setting.partition("=")
        yield SETTINGS.get(setting, SETTINGS.get(name, name.replace("_", " ") + " {}")).format(value)


# ---- numbers


def number(value: float) -> str:
    """Return a number with three significant digits, a whole one as it is: 60,000, 0.130, 7.52e-32; a dash for NaN."""
    return _rounded(value, _place(value) + 2 if value % 1 else 0)


def interval(value: float, low: float, high: float) -> str:
    """Return a number with its interval: 0.94 (0.92 to 0.96); the number alone where there is no interval.

    The last digit stands where the shorter half of the interval has its first one.
    """
    halves = [half for half in (value - low, high - value) if half > 0]
    if not halves:
        return number(value)
    return "{} ({} to {})".format(*(_rounded(end, _place(min(halves))) for end in (value, low, high)))


def _place(value: float) -> int:
    """Return behind which decimal the first digit of a number stands: 2 for 0.03, -1 for 45."""
    return -math.floor(math.log10(abs(value))) if np.isfinite(value) else 0


def _rounded(value: float, place: int) -> str:
    if not np.isfinite(value):
        return "–" if np.isnan(value) else str(value)
    if place > 6 and value:  # very small
        return f"{value:.{max(place - _place(value), 0)}e}"
    return f"{round(value, place) + 0.0:,.{max(place, 0)}f}"  # no minus sign before zero


# ---- tables


@dataclasses.dataclass(frozen=True, repr=False)
class Shown:
    """A table of texts: Jupyter shows it as HTML with one row of names, everything else as text."""

    cells: pd.DataFrame

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            html = self.cells.to_html(index_names=False)
        cell, names = "      <th>{}</th>\n", self.cells.index.names
        above, _, below = html.partition("</thead>")
        left, _, right = above.rpartition(cell.format("") * len(names))
        return "".join([left, *map(cell.format, names), right, "</thead>", below])

    def __repr__(self) -> str:
        return str(self.cells.reset_index().to_string(index=False))


def shown(
    table: pd.DataFrame | pd.Series,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    across: str = "",
    names: Mapping[Any, str] = {},
) -> Shown:
    """Return a table as people read it: in words, with the digits that are known, and intervals in one cell.

    Parameters
    ----------
    table : DataFrame or Series
        A column that is followed by its `low` and `high`, or by names that end so, is shown with this interval.
    rows, columns : sequences of str
        What names the rows, columns or levels of the index; and what is shown. Where they are not given: the index, or
        the first column where rows are only numbered; and all other columns.
    across : str
        A column or level whose values stand side by side, in order of appearance.
    names : mapping of codes to str
        Words for columns and values, beside or instead of those of `named`.
    """
    whole, numbered = pd.DataFrame(table), isinstance(table.index, pd.RangeIndex)
    levels = [name or " " * at for at, name in enumerate(whole.index.names, start=1)]
    cells = whole.reset_index(drop=numbered, names=None if numbered else levels)
    codes, first = [*cells], [*cells][:1] if numbered else [name for name in levels if name != across]
    for value, low, high in zip(codes, codes[1:], codes[2:], strict=False):
        if str(low).endswith("low") and str(high).endswith("high"):
            cells[value] = [*map(interval, *(cells.pop(name) for name in (value, low, high)))]
    rows = [*(rows or first)]
    columns = [*columns] or [name for name in codes if name in cells and name not in (*rows, across)]

    def word(value: Any, axis: Any = "") -> str:
        if isinstance(value, str):
            return names.get(value) or named(value)
        if isinstance(value, (bool, np.bool_)):
            return "yes" if value else "no"
        if not isinstance(value, (int, float, np.number)):
            return str(value)
        return f"RBM {value}" if axis == "layer" else f"{value:,.12g}" if axis else number(float(value))

    labels = [*rows, across] if across else rows
    texts = {name: [word(value, name in labels and name) for value in cells[name]] for name in (*labels, *columns)}
    texts = pd.DataFrame(texts).set_index(labels)
    if across:
        texts = texts.unstack(across, sort=False).fillna("–")
        texts = texts if len(columns) > 1 else texts[columns[0]]
    texts = texts.rename(columns=lambda name: word(name, whole.columns.name or " "))
    texts.index.names, texts.columns.names = [*map(word, texts.index.names)], [None] * texts.columns.nlevels
    return Shown(texts)
