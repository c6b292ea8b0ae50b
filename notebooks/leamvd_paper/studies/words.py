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

COLUMNS = {
    "against": "generations in which C_ani has a negative inner product with P (%)",
    "all": "answer by all corrections together",
    "answer": "registered answer",
    "backend": "what computes the error, NumPy or PyTorch",
    "baseline": "method that is compared with",
    "batch_size": "images in a mini-batch",
    "batches": "mini-batches of CD behind the start; 0: an epoch, or all of CD's",
    "best": "lowest value of the objective so far",
    "c": "coordinate of the optimum, the same in each variable",
    "chains": "chains of annealed importance sampling so far",
    "compile_seconds": "time to compile (s)",
    "copy_seconds": "time to copy one array of n numbers (s)",
    "curvature": "trace of the error's Hessian",
    "device": "processor or graphics card",
    "direct_seconds": "time of a generation by one product after the other (s)",
    "direction": "whom the corrections move the answer to",
    "directions": "parts of the shift that are on: P and C_ani, or none",
    "dtype": "type of numbers",
    "early": "local minimum below the best point after 1,000 evaluations",
    "effect": "size of the effect",
    "end": "local minimum below the best point of the search",
    "epoch": "epochs of fine-tuning",
    "evaluations": "evaluations of the objective so far",
    "features": "whose features are the inputs: the method's, CD's, the start's",
    "features_std": "standard deviation of a feature over images, mean",
    "final_momentum": "momentum of CD after its first epochs",
    "first": "error at the start",
    "first_pass_seconds": "time of a generation's first pass over the population (s)",
    "flop": "floating-point operations of a generation",
    "fraction_of_products": "share of the time that matrix products alone take",
    "function": "test function",
    "generation_high": "time of a generation, longest (s)",
    "generation_low": "time of a generation, shortest (s)",
    "generation_seconds": "time of a generation, median (s)",
    "generations": "generations from the first with a path P on",
    "gradient": "norm of the gradient at the start",
    "gray": "gray level, 0 to 255",
    "image": "number of the image",
    "image_set": "number of the set of training images",
    "independent": "log-likelihood by independent pixels, mean over test images (nats)",
    "input_std": "standard deviation of an input over images, mean",
    "inputs": "what a layer sees: features of its own method, or shared ones, CD's",
    "instead": "what is measured instead",
    "iteration": "generations, or epochs of CD; 0: the start",
    "kind": "digit that is given back, or weights",
    "layer": "number of the RBM; 0: the images",
    "layers": "RBMs between a digit and what is shown; 0: the original",
    "learning_rate": "learning rate of CD",
    "least": "smallest eigenvalue of the Hessian at the start",
    "log_likelihood": "log-likelihood, mean over test images (nats)",
    "log_z": "logarithm of the partition function (nats)",
    "loss": "cross-entropy on training images, mean (nats)",
    "lower": "share of points around the start with a lower error",
    "margin": "margin that is another",
    "mark": "evaluations for each variable, or in all; 0: the start",
    "mean_field_ratio": "mean-field error / constant image's",
    "met": "whether the part of the claim is met",
    "method": "method, with settings of its own",
    "momentum_epochs": "first epochs of CD, with a smaller momentum",
    "most": "largest eigenvalue of the Hessian at the start",
    "n": "variables",
    "n_elite": "elites",
    "n_pairs": "pairs of points by which it is measured",
    "named": "digit that the network says",
    "network": "what the units of the network are",
    "nfev": "evaluations of the line search",
    "noise": "what acts at the end of a generation, and about which point",
    "none": "generations in which C_ani has no weight (%)",
    "normal_seconds": "time to draw one array of n normal samples (s)",
    "normals_seconds": "time for normal samples, in the second pass (s)",
    "objective_high": "time of a generation's errors, longest (s)",
    "objective_low": "time of a generation's errors, shortest (s)",
    "objective_seconds": "time of a generation's errors, median (s)",
    "optimizer_high": "time of the optimizer in a generation, longest (s)",
    "optimizer_low": "time of the optimizer in a generation, shortest (s)",
    "optimizer_seconds": "time of the optimizer in a generation, median (s)",
    "other answer": "answer by that margin or measurement",
    "p": "p of the test",
    "passes": "passes over the images so far",
    "peak_bytes": "memory at its peak, above that before (bytes)",
    "perturbation_seconds": "time for factors, in the second pass (s)",
    "population_bytes": "memory of a population (bytes)",
    "population_size": "individuals in a population",
    "precision": "precision of matrix products",
    "printed": "answer with LEA-MVD as printed, without other corrections",
    "problem": "test function, RBM or network",
    "product_seconds": "time of matrix products alone (s)",
    "products": "matrix products of images and weights so far",
    "protocol": "settings of CD: first weights/learning rate, or a name",
    "rate": "learning rate of fine-tuning",
    "ratio_to_copy": "time of a generation over that of copying",
    "ratio_to_normal": "time of a generation over that of normal samples",
    "ratio_to_sklearn": "time over scikit-learn's",
    "reading": "reading of LEA-MVD; default: the paper's for other methods",
    "registered": "answer by the registered rules",
    "rise": "mean rise of the error by factors at the start (%)",
    "rounds": "times that it is measured",
    "runs": "runs behind the effect",
    "sampled_ratio": "sampled error / constant image's",
    "scale": "scale of the start's distance and of σ0",
    "scatter": "standard deviation of z'Hz",
    "search": "what computes the errors that guide the search",
    "second_pass_seconds": "time of a generation's second pass over the population (s)",
    "seconds": "time so far (s)",
    "section": "section of the book",
    "seed": "number of the run, from which its random numbers come",
    "share": "length of C_ani's part of the shift over both parts' lengths (%)",
    "sigma": "σ, the step size at which it is measured",
    "slope": "norm of the error's gradient",
    "speedup_over_direct": "how many times as fast as one product after the other",
    "start": "local minimum where the search starts",
    "start_mean_field": "mean-field error of the start solution",
    "status": "ok, or why it was not measured",
    "std": "how the standard deviations are estimated",
    "std1": "standard deviation of layer 1's weights",
    "std2": "standard deviation of layer 2's weights",
    "std3": "standard deviation of layer 3's weights",
    "steps": "iterations of L-BFGS",
    "study": "stack of RBMs, by the size of its images",
    "test": "test of the effect",
    "test_error": "share of test images that are wrong",
    "test_mean_field_ratio": "mean-field error / constant image's, test images",
    "test_sampled_ratio": "sampled error / constant image's, test images",
    "tolerance": "fall from which on a minimum is another",
    "train_error": "share of training images that are wrong",
    "trainer": "who trains by CD",
    "unclaimed": "answer by the correction of parts that the paper does not claim",
    "undecided": "answer where a part that is too uncertain decides nothing",
    "unit": "unit of the effect and of its bounds",
    "upper": "upper bound that the claim sets",
    "value": "error at the start",
    "version": "version of the package",
    "view": "comparison as printed, or of methods: conclusion",
    "weights": "first weights: trained, or random of the same size",
    "where": "layer or measurement",
    "without": "error that L-BFGS reaches without a search",
    "without seeds 0 and 1": "registered answer without the runs that had been looked at",
    "words_seconds": "time for random bits, in the second pass (s)",
    "likelihoods.error": "standard error of the log-likelihood (nats)",
    "rates.error": "share of held-out images that are wrong",
    "rbms.error": "error at the start",
    "rbms.start": "what the search comes after: CD, or L-BFGS after it",
    "registered.low": "lower end of the effect's 95 % interval",
    "registered.high": "upper end of the effect's 95 % interval",
    "registered.lower": "lower bound that the claim sets",
    "objectives.seconds": "time of a generation's errors (s)",
    "training.seconds": "time of an epoch (s)",
}
"""Columns of recorded tables, or of one table, for those who read the files, with units in
parentheses; of all others see `named`.
"""


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


def described(column: str, table: str) -> tuple[str, str]:
    """Return what a column of a recorded table is, and its unit, or "" where there is none."""
    usual = COLUMNS.get(column, named(column))
    words, _, unit = COLUMNS.get(f"{table}.{column}", usual).partition(" (")
    return words, unit.rstrip(")")


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
