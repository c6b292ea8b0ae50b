"""Section 11, second half: networks of any kind; and the recommended reading of Section 12.

Does LEA-MVD care what a network is made of (C14)? The same call of `minimize` trains five networks,
three of which have no gradient. Does it lack good settings alone? A reading is chosen on some
problems and judged on others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leamvd._support.threads import one_blas_thread
from leamvd.networks.dbn import Training, fitted
from leamvd.optimizers.minimize import minimize
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.functions import BBOB
from leamvd_paper.data.images import Dataset, load

from .benchmarks import MARKS, Comparison, FirstRBM, Function, Moved
from .layers import Images, Section
from .plots import BLUE, error_bars, legend, log_scale, method_look, panels, styled
from .results import Integers, Plan, Recorded, Result, Texts, delayed, read_recorded
from .statistics import Effect, paired, summarize
from .study_methods import FORMER, RECOMMENDED, Method, trainer_of
from .words import named

# ---- settings of networks

ACTIVATIONS = {
    "relu": lambda A: np.maximum(A, 0),
    "tanh": np.tanh,
    "step": lambda A: (A > 0).astype(A.dtype),
    "sign": lambda A: 2 * (A > 0).astype(A.dtype) - 1,
}
NETWORKS = {  # the activations of the hidden layers
    "rectified linear": ("relu",),
    "tangents": ("tanh",),
    "steps": ("step",),
    "signs": ("sign",),
    "tangents, steps": ("tanh", "step"),
}
MLP = "mlp"  # the method that is scikit-learn's MLPClassifier
MARKERS = {"lea-mvd": "o", "sep-cma-es": "s", "random": "^", MLP: "D"}  # in figures


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Networks, and methods that train them."""

    networks: Texts = tuple(NETWORKS)
    width: int = 16  # units of a hidden layer
    methods: Texts = ("lea-mvd", FORMER, "sep-cma-es", "random")
    seeds: Integers = tuple(range(12))
    budget: int = 24_000  # evaluations


PROFILES = {
    "quick": Settings(methods=("lea-mvd", "random"), seeds=(0, 1), budget=480),
    "paper": Settings(),
}

# ---- settings of the recommended reading

SEPARABLE = (
    "sep-cma-es:population_size=6",
    "sep-cma-es:population_size=8",
    "sep-cma-es:population_size=12",
    "sep-cma-es:population_size=16",
    "sep-cma-es:population_size=24",
    "sep-cma-es:population_size=48",
)
_GRID = tuple(product((8, 12, 24), (1.5, 3, 5), (1, "initial", "off")))


CANDIDATES = tuple(
    f"lea-mvd:population_size={size}+exponent={exponent}+reset={reset}"
    for size, exponent, reset in _GRID
)


def _on(
    kind: type[Function], names: Sequence[str], marks: Mapping[int, tuple[float, ...]]
) -> dict[Any, tuple[float, ...]]:
    return {kind(name, n_var): at for n_var, at in marks.items() for name in names}


_CHOSEN_ON = ("ellipsoid", "rosenbrock", "ackley")


_CHOSEN_AT = {100: (1, 10, 100), 1_000: (1, 10)}


_DIGITS = FirstRBM("RBM 1", Images(dataset="digits"), 30)


DEVELOPMENT = Comparison(
    problems={
        **_on(Function, _CHOSEN_ON, _CHOSEN_AT),
        **_on(Function, _CHOSEN_ON, {10_000: (1,)}),
        _DIGITS: (1, 10),
    },
    methods=CANDIDATES + SEPARABLE,
    seeds=(0, 1, 2),
)
_JUDGED_ON = {
    **_on(Function, ("sphere", "rastrigin"), {100: MARKS, 1_000: MARKS[:5], 10_000: MARKS[:2]}),
    **_on(
        Function,
        [f"{BBOB}{number}" for number in (8, 10, 12, 15, 17, 24)],
        {160: MARKS, 640: MARKS[:5]},
    ),
    FirstRBM("RBM 1", Images(dataset="mnist", n_images=10_000), 30): MARKS[:3],
    FirstRBM("RBM 1, 28×28", Images(dataset="mnist", side=28, n_images=1_000), 500): (
        0.001,
        0.0025,
    ),
}


JUDGED = Comparison(  # on problems that nothing was chosen on
    problems=_JUDGED_ON,
    # the best of the candidates
    methods=(
        FORMER,
        "lea-mvd",
        "lea-mvd:printed",
        "sep-cma-es:population_size=16",
        "sep-cma-es:population_size=24",
        "random",
    ),
    seeds=(0, 1, 2, 3, 4),
)
LAST_STEPS = "entry", "off", "added"
_GRID_AGAIN = tuple(product((8, 12, 24), LAST_STEPS, ("initial", "off")))
AGAIN = Comparison(  # and the last step of a generation
    problems={
        **_on(Function, _CHOSEN_ON, _CHOSEN_AT),
        _DIGITS: (1, 10),
        **_on(Moved, _CHOSEN_ON, _CHOSEN_AT),
    },
    methods=tuple(
        f"lea-mvd:population_size={size}+reset={reset}+perturbation={last}"
        for size, last, reset in _GRID_AGAIN
    ),
    seeds=(0, 1, 2, 3, 4),
)
WITHOUT = Settings(  # the networks, without the factors of R17
    methods=(
        "lea-mvd:perturbation=off",
        "lea-mvd:perturbation=added",
        f"{FORMER}+perturbation=off",
        f"{FORMER}+perturbation=added",
    )
)
JUDGED_NETWORK = Settings(
    networks=("rectified linear",), width=256, methods=JUDGED.methods, seeds=(0, 1, 2)
)
# the best candidate of `AGAIN`
JUDGED_AGAIN = replace(JUDGED, methods=(RECOMMENDED, FORMER))
NETWORK_AGAIN = replace(JUDGED_NETWORK, methods=(RECOMMENDED, FORMER))


class Tables(NamedTuple):
    """What is measured."""

    # of each network the start (mark 0) and the end; errors are shares of wrong images
    runs: pd.DataFrame


def recorded() -> Tables:
    """Return what is recorded."""
    return Tables(read_recorded("architectures"))


# ---- what is computed


def images() -> Dataset:
    """Return scikit-learn's digits, 1,297 for training and 500 for testing, the
    same for all seeds.
    """
    data = load("digits", side=8)
    V = np.concatenate([data.train, data.test])
    labels = np.concatenate([data.train_labels, data.test_labels])
    test, train = np.split(np.random.default_rng(0).permutation(len(V)), [500])
    return data._replace(
        train=V[train], train_labels=labels[train], test=V[test], test_labels=labels[test]
    )


class CrossEntropy:
    """Mean cross-entropy of a whole population of classifiers, each a flat vector: W row by row and
    b, layer by layer.

    Arithmetic is in the images' dtype.
    """

    def __init__(
        self, V: np.ndarray, labels: np.ndarray, hidden: Sequence[str], width: int = Settings.width
    ) -> None:
        self.V = V.T.copy()  # long rows keep the vector units busy
        self.labels = labels
        self.hidden = hidden
        self.sizes = (V.shape[1], *[width] * len(hidden), int(labels.max()) + 1)
        self.n_var = sum((n_in + 1) * n_out for n_in, n_out in pairwise(self.sizes))

    def start(self, seed: int) -> np.ndarray:
        """Return Glorot's uniform random weights, shape (n_var,), with biases of zero."""
        rng = np.random.default_rng(seed)
        parts = []
        for n_in, n_out in pairwise(self.sizes):
            limit = np.sqrt(6 / (n_in + n_out))
            parts += [rng.uniform(-limit, limit, n_in * n_out), np.zeros(n_out)]
        return np.concatenate(parts)

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs before the softmax, shape (m, classes, images), of the rows of `X`,
        shape (m, n_var).
        """
        X = X.astype(self.V.dtype)
        A = self.V
        with one_blas_thread():
            for layer, (n_in, n_out) in enumerate(pairwise(self.sizes)):
                W, b, X = np.split(X, [n_in * n_out, (n_in + 1) * n_out], axis=1)
                A = W.reshape(-1, n_in, n_out).transpose(0, 2, 1) @ A
                A += b[:, :, None]
                if layer < len(self.hidden):
                    A = ACTIVATIONS[self.hidden[layer]](A)
        return A

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the mean over images of -log P(label), shape (m,), of the rows of `X`."""
        A = self.outputs(X)
        A -= A.max(axis=1, keepdims=True)
        right = A[:, self.labels, np.arange(len(self.labels))]
        return np.asarray((np.log(np.exp(A).sum(axis=1)) - right).mean(axis=1, dtype=np.float64))

    def wrong(self, x: np.ndarray) -> float:
        """Return the share of images whose largest output is not their label's,
        of one classifier.
        """
        return float((self.outputs(x[None])[0].argmax(axis=0) != self.labels).mean())


def learn(network: str, method: str, seed: int, budget: int, width: int) -> Result:
    """Return loss and errors of a network before and after its training, by
    search or by gradients.
    """
    data = images()
    hidden = NETWORKS[network]
    train = CrossEntropy(data.train, data.train_labels, hidden, width)
    test = CrossEntropy(data.test, data.test_labels, hidden, width)
    if method == MLP:
        trained, evaluations = by_gradients(train, seed)
    else:
        trained, evaluations = by_search(train, method, seed, budget)
    rows = []
    for mark, x, n in ((0, train.start(seed), 0.0), (budget, trained, evaluations)):
        rows.append((mark, n, float(train(x[None])[0]), train.wrong(x), test.wrong(x)))
    return Result(
        pd.DataFrame(rows, columns=["mark", "evaluations", "loss", "train_error", "test_error"])
    )


def by_search(
    objective: CrossEntropy, method: str, seed: int, budget: int
) -> tuple[np.ndarray, float]:
    """Return the best weights that `minimize` finds, by the same call whatever the network is, and
    the evaluations.
    """
    parsed = Method.parse(method)
    training = parsed.training(Training(dtype="float64"))
    options = training.options(parsed.trainer, parsed.reading(Reading(n_gen=budget)))
    end = minimize(
        objective,
        objective.start(seed),
        vectorized=True,
        method=parsed.trainer,
        max_nfev=budget,
        seed=seed,
        **options,
    )
    return end.x, float(end.nfev)


def by_gradients(objective: CrossEntropy, seed: int) -> tuple[np.ndarray, float]:
    """Return the weights of scikit-learn's `MLPClassifier` by its defaults, without weight decay,
    and the epochs.
    """
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(
        objective.sizes[1:-1], activation=objective.hidden[0], alpha=0, random_state=seed
    )
    fitted(model, objective.V.T, objective.labels)
    parts = []
    for W, b in zip(model.coefs_, model.intercepts_, strict=True):
        parts += [W.ravel(), b]
    return np.concatenate(parts), float(model.n_iter_)


def plan(settings: Settings, *, gradients: bool = True) -> Plan:
    """Return the plan of the section's `Tables`: trainings by all methods, and by gradients where
    there are any.
    """
    calls = {}
    for network, seed in product(settings.networks, settings.seeds):
        methods = settings.methods
        if gradients and set(NETWORKS[network]) <= {"relu", "tanh"}:
            methods = (*methods, MLP)
        for method in methods:
            run = network, method, seed
            calls[run] = delayed(learn)(*run, settings.budget, settings.width)
    return {"runs": (["network", "method", "seed"], calls)}


tables = Section(Tables, PROFILES, plan, recorded, "networks")

RECORDED = {
    "architectures": Recorded(PROFILES["paper"], lambda: plan(PROFILES["paper"])),
    "preset_development": Recorded(DEVELOPMENT, DEVELOPMENT.plan),
    "preset_judged": Recorded(JUDGED, JUDGED.plan),
    "preset_networks": Recorded(JUDGED_NETWORK, lambda: plan(JUDGED_NETWORK)),
    "preset_last_step": Recorded(AGAIN, AGAIN.plan),
    "preset_again": Recorded(JUDGED_AGAIN, JUDGED_AGAIN.plan),
    "preset_again_network": Recorded(NETWORK_AGAIN, lambda: plan(NETWORK_AGAIN, gradients=False)),
    "last_step_networks": Recorded(WITHOUT, lambda: plan(WITHOUT, gradients=False)),
}

# ---- tables


def judged() -> pd.DataFrame:
    """Return the recorded searches by which the reading is judged, the network's last one with its
    loss as the best.

    Its own are of a later run than those of other methods.
    """
    names = ("preset_networks", "preset_again_network")
    networks = pd.concat(map(read_recorded, names))
    networks = networks.query("mark > 0 and method != @MLP")
    networks = networks.rename(columns={"loss": "best"}).assign(problem="network, 19,210 weights")
    both = pd.concat([read_recorded("preset_judged"), read_recorded("preset_again"), networks])
    both = both.query("method != @FORMER")
    return both.assign(problem=both["problem"].str.replace(BBOB, "BBOB F"))


def wrong(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the percentage of wrong test images by network and method, "start" among them, with 95
    % intervals.
    """
    start = runs.query("mark == 0 and method == 'lea-mvd'").assign(method="start")
    ends = pd.concat([start, runs.query("mark > 0")])
    return summarize(ends.assign(wrong=100 * ends["test_error"]), "wrong", ["network", "method"])


def learns(runs: pd.DataFrame) -> dict[str, Effect]:
    """Test for each network whether LEA-MVD ends below half of the start's share of wrong test
    images (C14).
    """
    tests = {}
    for network, run in runs.query("method == 'lea-mvd'").groupby("network", sort=False):
        first, last = sorted(run["mark"].unique())
        errors = run.set_index(["mark", "seed"])["test_error"]
        tests[network] = paired(errors[last], errors[first], upper=0.5)
    return tests


def scores(table: pd.DataFrame) -> pd.Series:
    """Return how far methods come, over problems and marks with equal weights, the best one first.

    A score is the ratio of the best value to its geometric mean over all methods, in the geometric
    mean over problems, marks and seeds: below 1 a method is better than most.
    """
    groups = np.log(table["best"]).groupby([table["method"], table["problem"], table["mark"]])
    logs = groups.mean().unstack("method")
    relative = logs.sub(logs.mean(axis=1), axis=0).mean()
    return np.exp(relative).sort_values().rename("score")


# ---- figures


def _look(method: str) -> dict[str, Any]:
    """Return the look of a method's markers, which are open where it has settings of its own."""
    look = {"markersize": 5, "linestyle": "", "label": named(method)}
    look["color"] = BLUE if method == MLP else method_look(method)["color"]
    look["marker"] = MARKERS[trainer_of(method)]
    look["fillstyle"] = "none" if ":" in method else "full"
    return look


@styled
def plot_networks(table: pd.DataFrame) -> Figure:
    """Plot the percentages of `wrong`: a column for each network, a marker for each method, a line
    at the start.
    """
    names = list(table["network"].unique())
    methods = [method for method in table["method"].unique() if method != "start"]
    figure, ((ax,),) = panels(1, 1, height=4.2)
    for method, rows in table.groupby("method", sort=False):
        places = rows["network"].map(names.index)
        mean = rows["mean"]
        if method == "start":
            ax.hlines(mean, places - 0.4, places + 0.4, color="k", linewidth=1, label="start")
        else:
            places += 0.15 * (methods.index(method) - (len(methods) - 1) / 2)
            ax.errorbar(places, mean, error_bars(rows), **_look(method))
    log_scale(ax, "y")
    ax.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names])
    ax.set_ylabel("wrong test images, %")
    legend(figure)
    return figure
