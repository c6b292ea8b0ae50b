"""What readers see: methods, settings and measures by their words, numbers by their digits, and
tables.

Tables on disk, columns and the command line have codes. A figure has ``label=named(method)``, a
cell ends with ``shown(ratios, ["method"], ["runs", "ratio"], across="layer", names={"ratio": "error
/ CD's"})``.
"""

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import HTML

from .study_methods import RECOMMENDED, TRAINERS

WORDS = {
    "cd": "CD",
    "lea-mvd": "LEA-MVD",
    "cma-es": "CMA-ES",
    "sep-cma-es": "separable CMA-ES",
    "mlp": "gradients",
    "snes": "SNES",
    "cr-fm-nes": "CR-FM-NES",
    "cd:n_gen=1": "one epoch of CD",
    "random": "random search",
    "random-glorot": "random, Glorot and Bengio",
    "random-0.01": "random, N(0, 0.01)",
    "random-0.1": "random, N(0, 0.1)",
    "random-0.3": "random, N(0, 0.3)",
    "random-1": "random, N(0, 1)",
    "mnist-7x7": "7×7 pixels",
    "mnist-28x28": "28×28 pixels",
    "mean_field": "mean-field error",
    "test_mean_field": "mean-field error, test images",
    "sampled": "sampled error",
    "test_sampled": "sampled error, test images",
    "mean_field_ratio": "mean-field ratio",
    "sampled_ratio": "sampled ratio",
    "n_var": "variables",
    "n_visible": "visible units",
    "n_hidden": "hidden units",
    "sigma0": "σ0",
    "x0": "start",
    "n_images": "training images",
    "n_test_images": "test images",
    RECOMMENDED: "LEA-MVD, recommended",
}
"""Methods, measures and columns. In all others underscores become spaces."""

SETTINGS = {
    "printed": "as printed",
    "recommended": "recommended",
    "x0-excluded": "start left out",
    "x0=none": "no start",
    "x0=batch": "start: 1 mini-batch",
    "x0_batches": "start: {} mini-batches",
    "x0_epochs": "start: {} epochs",
    "sigma0": "σ0 = {}",
    "n_gen": "{} generations",
    "population_size": "{} individuals",
    "n_elite": "{} elites",
    "n_elite=1": "1 elite",
    "n_descent_rows": "{} columns of U",
    "beta1_at_one=mirrored": "β1 at 1 mirrored",
    "sigma_norm=spectral": "spectral norm of σ",
    "descent_scale=normalized": "C_ani of length 1",
    "reset=initial": "reset to σ0",
    "ties=newest": "ties to the newest",
    "persistent=true": "persistent",
    "reset=off": "no reset",
    "reset": "reset to {}",
    "path=off": "without P",
    "descent=off": "without C_ani",
    "descent=free": "C_ani not made orthogonal",
    "shift=printed": "shift as printed",
    "step=sampled": "steps drawn",
    "elites=reevaluate": "elites evaluated again",
    "perturbation=column": "one factor for each variable",
    "perturbation=off": "without factors",
    "perturbation=added": "added steps",
    "perturbation=entry": "factors",
    "weight_scale": "weights N(0, {})",
    "limits=clip": "clipped to bounds",
    "limits=reflect": "reflected at bounds",
}
"""Settings of a method, with one value or with any. Of all others name and value are written."""


def named(text: str) -> str:
    """Return a method, measure or column in words: "LEA-MVD, σ0 = 0.01, no reset" for
    "lea-mvd:sigma0=0.01+reset=off".

    A text that is for people stays as it is.
    """
    trainer, colon, settings = text.partition(":")
    if text in WORDS:
        return WORDS[text]
    if text.isidentifier() and text.islower():
        return text.replace("_", " ")
    of_method = colon and trainer in TRAINERS
    if not of_method and not re.fullmatch(r"\w+=[^\s=]+", text):
        return text
    words = [WORDS.get(trainer, trainer)] if colon else []
    for setting in (settings or text).replace("x0=batch+x0_batches", "x0_batches").split("+"):
        name, _, value = setting.partition("=")
        usual = name.replace("_", " ") + " {}"
        shape = SETTINGS.get(setting, SETTINGS.get(name, usual))
        words.append(shape.format(value))
    joined = ", ".join(words).replace(", as printed", " as printed")
    return joined.replace("generations", "epochs") if trainer == "cd" else joined


# ---- numbers


def number(value: float) -> str:
    """Return a number with three significant digits, a whole one as it is: 60,000, 0.130; a dash
    for NaN.
    """
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return str(value)
    return f"{value:,.0f}" if value % 1 == 0 else _rounded(value, abs(value) / 100)


def interval(value: float, low: float, high: float) -> str:
    """Return a number with its interval, 0.94 (0.92 to 0.96), or the number alone where there is
    none.

    The last digit stands where the shorter half of the interval has its first one, or its second
    after a 1 or 2: 55 (44 to 69), which with one digit less would be 60 (40 to 70).
    """
    halves = [half for half in (value - low, high - value) if half > 0]
    if not halves:
        return number(value)
    unit = min(halves) / 3
    return f"{_rounded(value, unit)} ({_rounded(low, unit)} to {_rounded(high, unit)})"


def _rounded(value: float, unit: float) -> str:
    place = -math.floor(math.log10(unit))  # behind the point, where the unit has its first digit
    if place > 6 and abs(value) < 1e-4:
        return f"{value:.1e}"
    digits = min(place, 6)
    return f"{round(value, digits) + 0.0:,.{max(digits, 0)}f}"  # +0.0: no -0


# ---- tables


def shown(
    table: pd.DataFrame | pd.Series,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    across: str = "",
    names: Mapping[str, str] = {},
) -> HTML:
    """Return a table as people read it: in words, with the digits that are known, and intervals in
    one cell.

    `rows` are columns or levels of the index that name the rows, `columns` what is shown. By
    default the index names the rows, or the first column where they are only numbered. The values
    of `across` stand side by side. A column that is followed by its "low" and "high", or by names
    that end so, has this interval. `names` are words for columns and values beside those of
    `named`.
    """
    release = [int(part) for part in pd.__version__.split(".")[:2]]
    if release < [3, 1]:
        raise ImportError(
            f"tables need pandas 3.1 or newer, got {pd.__version__}, which puts numbers into wrong"
            " columns: pip install 'pandas>=3.1'"
        )
    whole = pd.DataFrame(table)
    numbered = isinstance(table.index, pd.RangeIndex)
    levels = [name or " " * at for at, name in enumerate(whole.index.names, start=1)]
    cells = whole.reset_index(drop=True) if numbered else whole.reset_index(names=levels)
    codes = list(cells)
    _join_intervals(cells)
    usual = codes[:1] if numbered else [name for name in levels if name != across]
    rows = list(rows) or usual
    labels = [*rows, across] if across else rows
    columns = list(columns) or [name for name in codes if name in cells and name not in labels]

    words = {}
    for name in (*labels, *columns):
        axis = name if name in labels else ""
        words[name] = [_word(value, names, axis) for value in cells[name]]
    texts = pd.DataFrame(words).set_index(labels)
    if across and len(texts):
        texts = texts.unstack(across, sort=False).fillna("–")
        if len(columns) == 1:
            texts = texts[columns[0]]
    of_columns = whole.columns.name or " "
    texts = texts.rename(columns=lambda name: _word(name, names, of_columns))
    texts.index.names = [_word(name, names) for name in texts.index.names]
    texts.columns.names = [None] * texts.columns.nlevels
    return HTML(_html(texts, len(rows)))


def _join_intervals(cells: pd.DataFrame) -> None:
    """Write each value with its interval into one cell, and take the columns of the ends away."""
    codes = list(cells)
    for value, low, high in zip(codes, codes[1:], codes[2:], strict=False):
        if str(low).endswith("low") and str(high).endswith("high"):
            ends = zip(cells[value], cells.pop(low), cells.pop(high), strict=True)
            cells[value] = [interval(*end) for end in ends]


def _word(value: Any, names: Mapping[str, str], axis: Any = "") -> str:
    """Return a value in words; a number on an axis names something, and keeps all its digits."""
    if isinstance(value, str):
        return names.get(value) or named(value)
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if not isinstance(value, Real):
        return str(value)
    if axis == "layer":
        return f"RBM {value}"
    return f"{value:,}" if axis else number(float(value))


def _html(texts: pd.DataFrame, n_names: int) -> str:
    """Return a table with the names of its rows beside those of its columns, where pandas would
    have another row of names.
    """
    with pd.option_context("display.max_colwidth", None):
        above, _, below = texts.to_html(index_names=False).partition("</thead>")
    cell = "      <th>{}</th>\n"
    headings = [cell.format(name) for name in texts.index.names]
    left, _, right = above.rpartition(cell.format("") * n_names)
    return "".join([left, *headings, right, "</thead>", below])
