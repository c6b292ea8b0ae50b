"""Studies: methods compared over seeds, layer by layer, by the errors that they make after each
iteration.

Their settings, the calls that train their layers, and the tables of errors that several sections
show.
"""

import functools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.optimize import OptimizeWarning

from leamvd._support import checks
from leamvd._support.threads import one_blas_thread
from leamvd.networks.dbn import (
    EXPERIMENT,
    METHODS,
    Training,
    fitted,
    layer_input,
    layer_seed,
    reconstruct,
    train,
)
from leamvd.networks.objective import Errors, reconstruction_errors
from leamvd.networks.rbm import RBMParameters, n_parameters
from leamvd.networks.torch_backend import Computation, import_torch
from leamvd.optimizers.methods import unused_without_x0
from leamvd.optimizers.reading import Reading
from leamvd_paper.data import images as data_sets
from leamvd_paper.data.images import Dataset

from . import results
from .results import Call, Integers, Plan, Result, Texts, canonical, delayed
from .statistics import paired, summarize, unpaired
from .study_methods import Method

# ---- settings


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images by what they are made of, see `leamvd_paper.data.images.load`."""

    dataset: str = "digits"
    side: int = 7
    pooling: str = "mean"
    binarize: str = "gray"
    n_images: int | None = None  # for training
    image_set: int = 0
    checksum: str = ""  # of the data set, where results depend on it

    def load(self, dtype: Any) -> Dataset:
        """Return the images; a data set other than the checksum's is an error."""
        # of a file, which may be another one by now
        checksum = self.checksum or data_sets.known(self.dataset)[0]
        return _load(
            self.dataset,
            checksum,
            str(dtype),
            side=self.side,
            pooling=self.pooling,
            binarize=self.binarize,
            n_train=self.n_images,
            image_set=self.image_set,
        )

    def known(self) -> Self:
        """Return the same images with their checksum and number; those of MNIST
        need not be here.
        """
        checksum, count = data_sets.known(self.dataset)
        if self.n_images is not None:
            count = checks.integer("n_images", self.n_images, at_least=1, at_most=count)
        return replace(self, checksum=checksum, n_images=count)


@functools.lru_cache(2)
def _load(dataset: str, checksum: str, dtype: str, **options: Any) -> Dataset:
    data = data_sets.load(dataset, dtype=dtype, **options)
    if data.checksum != checksum:
        raise ValueError(
            f"{dataset} is another data set here than where it was asked for: checksums differ"
        )
    return data


def with_changes(settings: Any, parts: Iterable[str], changes: Mapping[str, Any]) -> Any:
    """Return settings with fields of them, or of some of their parts, changed; a change to None is
    none.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    for part in parts:
        value = given.pop(part, getattr(settings, part))
        fields = {name: given.pop(name) for name in vars(value) if name in given}
        settings = replace(settings, **{part: replace(value, **fields)})
    return replace(settings, **given)


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is compared: methods on the same images, layers and budget, over seeds."""

    images: Images = Images()
    layers: Integers = (30, 30, 120)  # hidden units
    # "lea-mvd:sigma0=0.01+reset=off" has settings of its own
    methods: Texts = ("cd", "lea-mvd", "cma-es")
    # a layer sees its method's features or those of CD (item E7)
    inputs: Texts = ("own", "shared")
    seeds: Integers = (0,)
    features: str = "probabilities"  # what a layer hands on
    training: Training = field(default_factory=Training)
    reading: Reading = EXPERIMENT
    # whose errors are kept, the last one ends a search; None keeps all
    iterations: Integers | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "reading", self.reading.complete())
        for name in ("layers", "methods", "inputs", "seeds"):
            values = checks.several(name, getattr(self, name))
            alike = {*values}
            if name == "methods":
                methods = [Method.parse(value) for value in values]
                values = tuple(map(str, methods))
                # one may have its settings in another order
                alike = {(method.trainer, frozenset(method.settings)) for method in methods}
            object.__setattr__(self, name, values)
            if not values or (len(alike) < len(values) and name != "layers"):
                raise ValueError(f"{name} must be one or more different values, got {values!r}")
        if self.iterations is not None:
            object.__setattr__(self, "iterations", checks.several("iterations", self.iterations))
        for n_hidden in self.layers:
            checks.integer("layers", n_hidden, at_least=1)
        for seed in self.seeds:
            checks.integer("seeds", seed, at_least=0)
        for value in self.inputs:
            checks.choice("inputs", value, ("own", "shared"))
        for method in map(Method.parse, self.methods):
            # a natural evolution strategy trains no layer
            checks.choice("methods", method.trainer, METHODS)
            # refuses now, and not after hours, a population that it cannot have
            if method.trainer == "lea-mvd":
                settings = method.training(self.training)
                reading = method.reading(self.reading)
                settings.optimizer("lea-mvd", np.zeros(1), reading=reading, seed=0)

    @property
    def size(self) -> str:
        """The name of the images' size in tables of several studies."""
        return f"mnist-{self.images.side}x{self.images.side}"

    def changed(self, **changes: Any) -> Self:
        """Return the study with fields of it, its images, training or reading changed; a change to
        None is none.
        """
        changed = with_changes(self, ("images", "training", "reading"), changes)
        changed._warn_of_unused({name for name, value in changes.items() if value is not None})
        return changed

    def _warn_of_unused(self, given: set[str]) -> None:
        """Warn of what is given about a start solution, for all methods or one, where there is
        none.
        """
        told = []
        for method in map(Method.parse, self.methods):
            if method.trainer != "cd" and method.training(self.training).x0 == "none":
                asked = given | {name for name, _ in method.settings}
                for name in unused_without_x0(method.trainer):
                    if name in asked:
                        told.append(f"{method} has no use for {name}")
        if told:
            checks.warn(f"{', '.join(told)} without a start, x0='none'", OptimizeWarning)

    def known(self) -> Self:
        """Return the study of images with their checksum, see `Images.known`."""
        return replace(self, images=self.images.known())

    def on_disk(self) -> Self:
        """Return the same, where this machine has the images and what computes the error that
        optimizers see.
        """
        known = self.known()
        known.images.load(self.training.dtype)  # as its calls do, which find them in the cache
        if self.training.backend == "torch":
            import_torch()
        return known


class Section(NamedTuple):
    """What gives a section's tables: called, it is the function `tables` of the section's file."""

    kind: Any  # a named tuple of the tables
    profiles: dict  # settings by name
    plan: Any  # a function of settings that returns a `Plan`
    recorded: Any  # a function that returns the tables that ship
    label: str  # of the progress bar

    def __call__(
        self,
        profile: str = "recorded",
        folder: str | Path = ".",
        *,
        n_jobs: int = 1,
        **changes: Any,
    ) -> Any:
        """Return the tables of a profile: what is recorded, or what is computed here."""
        if profile == "recorded":
            results.refuse(changes)
            return self.recorded()
        calls = self.planned(profile, **changes)
        return self.kind(**results.tables(calls, folder, n_jobs=n_jobs, label=self.label))

    def planned(self, profile: str, **changes: Any) -> Plan:
        """Return the plan of a profile with changes."""
        settings = results.profile(profile, self.profiles)
        if hasattr(settings, "changed"):
            settings = settings.changed(**changes).on_disk()
        else:
            settings = replace(settings, **changes)
        whole = self.plan(settings)
        return {name: whole[name] for name in self.kind._fields}


def spelled(settings: Any) -> Any:
    """Return settings with nothing left to defaults, as provenance has them: each method's text
    field by field.
    """
    if isinstance(settings, (tuple, list)):
        return [spelled(value) for value in settings]
    if isinstance(settings, dict):  # problems are its keys, or names are
        named = {}
        for name, value in settings.items():
            marks = value if isinstance(name, str) else {"problem": name, "marks": value}
            named[str(name)] = spelled(marks)
        return named
    if not is_dataclass(settings):
        return canonical(settings)
    if isinstance(settings, Images):
        settings = settings.known()
    fields = vars(settings).copy()
    if "methods" in fields:
        base = (fields.pop("training", Training()), fields.pop("reading", Reading()))
        fields["methods"] = {text: Method.parse(text).spelled(*base) for text in fields["methods"]}
    return {name: spelled(value) for name, value in fields.items()}


# ---- what is computed


def layer(
    images: Images,
    trainer: str,
    n_hidden: int,
    seed: int,
    training: Training,
    reading: Reading,
    features: Literal["probabilities", "bits"] = "probabilities",
    below: Result | None = None,
    iterations: tuple[int, ...] | None = None,
) -> Result:
    """Return the errors of a layer after each iteration from 0, its start solution, on; and the
    stack it is on.

    Of `iterations`, if given, which end with the last one: with 0 alone, nothing is searched.
    """
    lower = rbms(below)
    number = len(lower) + 1
    V = layer_inputs(lower, images, features, seed, training.dtype)
    T = layer_inputs(lower, images, features, seed, training.dtype, test=True)
    own_seed = layer_seed(seed, number)
    mean = V.mean(axis=0, dtype=np.float64)
    rows = []
    previous = None
    for step in train(trainer, V, n_hidden, training=training, reading=reading, seed=own_seed):
        if iterations and step.iteration not in iterations:
            continue
        flat = step.rbm.flat()
        # most searches stay where they are for long
        if previous is None or not np.array_equal(flat, previous):
            on_images = reconstruction_errors(step.rbm, V, seed=own_seed)
            on_test_images = reconstruction_errors(step.rbm, T, seed=own_seed, train_mean=mean)
            previous = flat
        rows.append((step.iteration, *on_images, *on_test_images, *step[2:]))
        if iterations and step.iteration == max(iterations):
            break
    n_visible = V.shape[1]
    table = pd.DataFrame(rows, columns=COLUMNS).assign(
        n_visible=n_visible,
        n_hidden=n_hidden,
        n_var=n_parameters(n_visible, n_hidden),
        n_images=len(V),
        n_test_images=len(T),
        input_std=_mean_std(V),
    )
    arrays = {} if below is None else dict(below.arrays)
    for name, values in step.rbm._asdict().items():
        arrays[f"{name}{number}"] = values
    return Result(table, arrays)


def _mean_std(V: np.ndarray) -> float:
    """Return the mean of the standard deviations of units, shape (m, n)."""
    return float(V.std(axis=0, dtype=np.float64).mean())


COLUMNS = [
    # errors are sums over images
    *("iteration", *Errors._fields, *(f"test_{name}" for name in Errors._fields)),
    *("evaluations", "passes", "products", "seconds"),  # what the layer has cost so far
]


def rbms(result: Result | None) -> list[RBMParameters]:
    """Return the layers of a stack, the first one first."""
    if result is None:
        return []
    layers = []
    for number in range(1, len(result.arrays) // 3 + 1):
        parts = (result.arrays[f"{name}{number}"] for name in "Wbc")
        layers.append(RBMParameters(*parts))
    return layers


def layer_inputs(
    lower: list[RBMParameters],
    images: Images,
    features: str,
    seed: int,
    dtype: Any,
    *,
    test: bool = False,
) -> np.ndarray:
    """Return what the layer above a stack sees, shape (m, n_visible)."""
    data = images.load(dtype)
    V = data.test if test else data.train
    return layer_input(lower, V, features=features, seed=seed, test=test)


# ---- what a stack gives back, and what its features are good for


def pictures(top: Result, source: Images, dtype: str) -> Result:
    """Return gray levels from 0 to 255, of test images, one of each class, and of the first ten
    units' weights.

    `layers` is how many layers of the stack an image went up and came down again: none, the first
    and all. Weights are divided by the largest one; 0 is gray level 127.5.
    """
    stack = rbms(top)
    data = source.load(dtype)
    _, first = np.unique(data.test_labels, return_index=True)
    V = data.test[first[:10]]
    W = stack[0].W[:, :10].T
    gray = {}
    for n in sorted({0, 1, len(stack)}):
        gray["digit", n] = _levels(reconstruct(stack[:n], V))
    gray["weights", 1] = _levels((W / np.abs(W).max() + 1) / 2)
    rows = pd.concat(gray, names=["kind", "layers", "image", "pixel"]).rename("gray").reset_index()
    return Result(rows.drop(columns="pixel"))


def _levels(X: np.ndarray) -> pd.Series:
    return pd.DataFrame(np.rint(255 * X).astype(np.uint8)).stack()


PENALTY = 0.01  # of the probe: scikit-learn's C
STEPS = 100  # and the solver's steps at most


def probe(
    V: np.ndarray, labels: np.ndarray, T: np.ndarray, test_labels: np.ndarray
) -> tuple[float, float, int]:
    """Return training and test error of logistic regression on features, shape (m, n), and the
    steps it took.

    Features are standardized: a layer's scale is no merit of its own, but it would decide how
    strongly the penalty acts and how fast the solver converges.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(V)
    V = scaler.transform(V)
    T = scaler.transform(T)
    classifier = fitted(LogisticRegression(C=PENALTY, max_iter=STEPS), V, labels)
    with one_blas_thread():
        train_error = float(np.mean(classifier.predict(V) != labels))
        test_error = float(np.mean(classifier.predict(T) != test_labels))
    return train_error, test_error, int(classifier.n_iter_[0])


def probes(top: Result, source: Images, dtype: str, first: int = 0) -> Result:
    """Return the errors of linear probes of each layer's features from the `first` on; layer 0 are
    the images.
    """
    data = source.load(dtype)
    stack = rbms(top)
    rows = []
    began = time.perf_counter()
    for number in range(first, len(stack) + 1):
        V = layer_input(stack[:number], data.train)
        T = layer_input(stack[:number], data.test)
        scored = probe(V, data.train_labels, T, data.test_labels)
        rows.append((number, *scored, _mean_std(V), time.perf_counter() - began))
    return Result(
        pd.DataFrame(
            rows, columns=["layer", "train_error", "test_error", "steps", "features_std", "seconds"]
        )
    )


# ---- the layers of a study


def layer_call(study: Study, method: str, n_hidden: int, seed: int, below: Call | None) -> Call:
    """Return the call that trains a layer of a study by one of its methods."""
    parsed = Method.parse(method)
    settings = (parsed.training(study.training), parsed.reading(study.reading))
    features = study.features if below else "probabilities"
    return delayed(layer)(
        study.images, parsed.trainer, n_hidden, seed, *settings, features, below, study.iterations
    )


@functools.cache
def stack(study: Study, method: str, seed: int, inputs: str = "own") -> tuple[Call, ...]:
    """Return the calls that train a stack, each layer on its method's features
    or on those of CD.
    """
    calls = []
    handed_on = calls if inputs == "own" else stack(study, "cd", seed)
    below = None
    for number, n_hidden in enumerate(study.layers):
        calls.append(layer_call(study, method, n_hidden, seed, below))
        below = handed_on[number]
    return tuple(calls)


LABELS = ["inputs", "layer", "method", "seed"]


def searches(study: Study) -> dict[tuple[Any, ...], Call]:
    """Return every layer of a study by its `LABELS`, in the order of its table."""
    numbers = range(1, len(study.layers) + 1)
    calls = {}
    for label in product(study.inputs, numbers, study.methods, study.seeds):
        inputs, number, method, seed = label
        calls[label] = stack(study, method, seed, inputs)[number - 1]
    return calls


# ---- tables of errors

MEASURES = ("mean_field", "sampled")  # the errors of item E2

GROUP = ["inputs", "layer", "method"]  # what tells one group of seeds from another
OF_STUDIES = (  # and where a table has several studies
    "study",
    "section",
    "problem",
    "image_set",
    "search",
    "n_images",
    "features",
    "protocol",
    "batches",
    "momentum_epochs",
)

ONE_EPOCH = "cd:n_gen=1"  # the start solution of searches by itself

PRINTED = {("cd", 2): 50_000.0, ("lea-mvd", 2): 5_000.0, ("lea-mvd", 3): 900.0}
"""Errors that the paper prints, by method and layer of 28 x 28; taken to be of 10,000 images."""


def scaled(table: pd.DataFrame, measure: str) -> pd.Series:
    """Return a column for reading: an error per 10,000 images, everything else as it is."""
    if measure.removeprefix("test_") not in MEASURES:
        return table[measure]
    count = "n_test_images" if measure.startswith("test_") else "n_images"
    return 1e4 * table[measure] / table[count]


def last(table: pd.DataFrame, step: str = "iteration") -> pd.DataFrame:
    """Return the last row of every run, by a column that counts; runs may differ in how far they
    went.
    """
    run = [name for name in (*OF_STUDIES, *GROUP, "seed") if name in table]
    return table[table[step] == table.groupby(run)[step].transform("max")]


def errors(table: pd.DataFrame, measures: Iterable[str] = MEASURES) -> pd.DataFrame:
    """Return measures at the last iteration, errors per 10,000 images: means over runs and their 95
    % intervals.
    """
    return summarize(_at_the_end(table, measures), "value", ["measure", *GROUP])


def _at_the_end(table: pd.DataFrame, measures: Iterable[str]) -> pd.DataFrame:
    """Return measures at the last iteration, one below the other: their names and their values."""
    ends = last(table)
    rows = []
    for measure in measures:
        rows.append(ends[GROUP].assign(measure=measure, value=scaled(ends, measure)))
    return pd.concat(rows)


def bands(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the mean of a measure over runs at each iteration, with its 95 % interval and its
    passes and seconds.

    Errors are per 10,000 images. Where there is one run both ends are its value.
    """
    by = [*GROUP, "iteration"]
    intervals = summarize(table.assign(value=scaled(table, measure)), "value", by)
    means = table.groupby(by, sort=False)[["passes", "seconds"]].mean().reset_index()
    rows = means.merge(intervals.drop(columns="runs"), on=by)
    for end in ("low", "high"):
        rows[end] = rows[end].fillna(rows["mean"])
    return rows


def ratios(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the last errors of `b` over those of `a`, per image, with its 95
    % interval.

    It is of the pairs where two seeds or more are shared, else of two samples; `paired` is how many
    seeds are shared.
    """
    ours = last(a).set_index("seed").groupby(GROUP, sort=False)
    theirs = dict([*last(b).set_index("seed").groupby(GROUP, sort=False)])
    rows = []
    for measure, (cell, group) in product(MEASURES, ours):
        if cell in theirs:
            x = group[measure] / group["n_images"]
            y = theirs[cell][measure] / theirs[cell]["n_images"]
            shared = len(x.index.intersection(y.index))
            test = paired if shared >= min(2, len(x), len(y)) else unpaired
            effect = test(y, x)
            rows.append((measure, *cell, shared, effect.low, effect.effect, effect.high))
    return pd.DataFrame(rows, columns=["measure", *GROUP, "paired", "low", "ratio", "high"])


def beside_constant(table: pd.DataFrame) -> pd.DataFrame:
    """Return `errors`, with those of the start, and the geometric mean of the last ones over the
    constant image's.

    An interval of errors that reaches zero is left out.
    """
    by = ["measure", *GROUP]
    whole = errors(table).set_index(by)
    whole["start"] = errors(table.query("iteration == 0")).set_index(by)["mean"]
    ratios = _at_the_end(table, [f"{measure}_ratio" for measure in MEASURES])
    ratios["measure"] = ratios["measure"].str.removesuffix("_ratio")
    over = summarize(ratios, "value", by, geometric=True).set_index(by)
    for end, name in {"mean": "", "low": "_low", "high": "_high"}.items():
        whole[f"over_constant{name}"] = over[end]
    whole.loc[whole["low"] <= 0, ["low", "high"]] = np.nan
    return whole.reset_index()


def summary(
    table: pd.DataFrame,
    study: Study | None = None,
    recorded: Iterable[tuple[Study, pd.DataFrame]] = (),
) -> pd.DataFrame:
    """Return the last errors of a study, and their ratios to those of a recorded study that has the
    same settings.

    Errors are as of `beside_constant`. Methods, inputs and seeds may differ, and what computes the
    errors that optimizers see; of several recorded studies it is the one that shares most methods
    and inputs.
    """
    last_errors = beside_constant(table)
    alike = {}
    for known, rows in recorded:
        free = {"methods": known.methods, "inputs": known.inputs, "seeds": known.seeds}
        computed = {name: getattr(known.training, name) for name in Computation._fields}
        training = replace(study.training, **computed)
        methods = {*known.methods} & {*study.methods}
        inputs = {*known.inputs} & {*study.inputs}
        if not methods or not inputs:
            continue
        if study.changed(checksum="", training=training, **free) == known:
            alike[len(methods) * len(inputs)] = rows
    if not alike:
        return last_errors
    ends = ratios(alike[max(alike)], table).rename(
        columns={"low": "ratio_low", "high": "ratio_high"}
    )
    return last_errors.merge(ends, how="left", on=["measure", *GROUP])


def left_at(table: pd.DataFrame, value: str, run: list[str]) -> pd.Series:
    """Return the first iteration in which each run's value is below that of iteration 0, infinite
    where it never is.
    """
    start = table.query("iteration == 0").set_index(run)[value].rename("start")
    lower = table.join(start, on=run).query(f"{value} < start").groupby(run)["iteration"].min()
    return lower.reindex(start.index).fillna(np.inf)


# ---- seconds by count

# matrix products of images and weights in an epoch of CD-1; an evaluation makes two
CD_PRODUCTS = 5


def timed(table: pd.DataFrame, objectives: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose seconds are counts of evaluations and epochs times what Section 5 has
    measured of each.

    Its tables `objectives` and `training` are read for one thread and float32. For a layer between
    their sizes v h an evaluation is interpolated, in logarithms, and so is the ratio of an epoch to
    an evaluation; beyond them both stay as they are. What an optimizer needs for itself is not
    among the seconds.
    """
    numpy_rows = objectives.query(
        "backend == 'numpy' and precision == 'float32' and threads == 1 and status == 'ok'"
    )
    evaluated = _per_image(numpy_rows, numpy_rows.eval("seconds / population_size"))
    epochs = training.query("trainer == 'leamvd' and threads == 1")
    trained = _per_image(epochs, epochs["seconds"])
    size = np.log(table.eval("n_visible * n_hidden"))
    evaluation = np.exp(np.interp(size, evaluated.index, evaluated))
    ratio = trained - np.interp(trained.index, evaluated.index, evaluated)
    epoch = evaluation * np.exp(np.interp(size, ratio.index, ratio))
    # an epoch of CD-k is one or more
    trainings = table.eval("products - 2 * evaluations") / CD_PRODUCTS
    return table.assign(
        seconds=table["n_images"] * (table["evaluations"] * evaluation + trainings * epoch)
    )


def _per_image(rows: pd.DataFrame, seconds: pd.Series) -> pd.Series:
    """Return the logarithms of the seconds for one image by those of v h, in ascending order."""
    size = np.log(rows.eval("n_visible * n_hidden"))
    return pd.Series(np.log(seconds / rows["n_images"]).to_numpy(), size.to_numpy()).sort_index()
