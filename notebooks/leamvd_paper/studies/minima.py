"""Section 11, first half: local minima.

Can LEA-MVD escape from them (C13)? Searches start where L-BFGS-B has ended, on functions of many
local minima and of RBMs. One has escaped if L-BFGS-B, started again from its best point, ends lower
than it does without the search.
"""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import optimize

from leamvd._support.threads import one_blas_thread
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import EXPERIMENT, Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective, error_and_gradient
from leamvd.optimizers.methods import optimizer
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.functions import MULTIMODAL, Objective, in_unit_cube

from .benchmarks import generations
from .layers import Images, Section
from .plots import facets, legend, log_scale, method_bands, styled
from .results import Floats, Integers, Plan, Recorded, Result, Table, Texts, delayed, read_recorded
from .statistics import Effect, share
from .study_methods import FORMER, Method

# ---- settings

IMAGES = Images(dataset="mnist", n_images=200)  # of the RBMs


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Searches from local minima of functions, and of RBMs."""

    functions: Texts = tuple(MULTIMODAL)
    sizes: Integers = (2, 5, 10, 20, 50)  # variables
    methods: Texts = (
        "lea-mvd",
        "lea-mvd:printed",
        FORMER,
        "cma-es",
        "sep-cma-es",
        "random",
    )
    # first standard deviations, in units of the domain's side
    sigmas: Floats = (0.01, 0.1, 0.3)
    seeds: Integers = tuple(range(30))
    images: Images = IMAGES
    rbm_seeds: Integers = tuple(range(30))  # of LEA-MVD's searches of RBMs


QUICK = Settings(
    functions=("rastrigin", "griewank"),
    sizes=(2, 10),
    methods=("lea-mvd", "sep-cma-es", "random"),
    sigmas=(0.1, 0.3),
    seeds=(0, 1),
    images=Images(n_images=200),
    rbm_seeds=(0,),
)
PAPER = Settings()
PROFILES = {"quick": QUICK, "paper": PAPER}
EARLY = 1_000  # evaluations of a search of the paper, about
BUDGET = 5_000  # and of the searches on functions
N_HIDDEN = 5  # of the RBMs
EPOCHS = 50  # of contrastive divergence
STARTS = {"cd": "contrastive divergence", "l-bfgs": "L-BFGS"}  # what a search of an RBM comes after

# rounding or the gradient ends it, not these
LBFGS = {"ftol": 0.0, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 40_000}
TRIES = 100  # points at most from which L-BFGS-B looks for a minimum that is not the global one
ROUND = 2_000  # evaluations after which it begins anew on an RBM, whose weights would grow forever
# how much lower an end must be: part of a function's mean over its domain, or of an RBM's error
TOLERANCE = 1e-6


class Tables(NamedTuple):
    """What is measured, a row for each search."""

    runs: Table  # on functions
    rbms: Table


def recorded() -> Tables:
    """Return what is recorded."""
    return Tables(*(read_recorded("local_minima", table) for table in Tables._fields))


# ---- what is computed: functions


class Valley(NamedTuple):
    """A function on the unit cube, and a local minimum of it."""

    value: Objective
    gradient: Objective
    tolerance: float
    x: np.ndarray = np.empty(0)  # the minimum, shape (n,)
    start: float = np.nan  # its value

    @one_blas_thread()
    def descend(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return where L-BFGS-B ends from a point, and the value there."""
        cube = [(0, 1)] * len(x)
        end = optimize.minimize(
            self.value, x, jac=self.gradient, method="L-BFGS-B", bounds=cube, options=LBFGS
        )
        return end.x, float(end.fun)


def valley(function: str, n_var: int, seed: int) -> Valley | None:
    """Return a function of `MULTIMODAL`, its minimum moved, and the local minimum that the searches
    of a seed start at.

    That is where L-BFGS-B ends from a uniform point, the first from which it does not end at the
    global minimum; None where it ends there from all.
    """
    rng = np.random.default_rng([seed, n_var])
    value, gradient = in_unit_cube(function, rng.uniform(0.1, 0.9, n_var))
    values = value(rng.random((1_000, n_var)))
    here = Valley(value, gradient, TOLERANCE * float(values.mean()))
    for _ in range(TRIES):
        x, start = here.descend(rng.random(n_var))
        if start > here.tolerance:
            return here._replace(x=x, start=start)
    return None


def escape(function: str, n_var: int, method: str, sigmas: tuple[float, ...], seed: int) -> Result:
    """Return the ends of a method's searches from a local minimum of a function, a row for each
    sigma0.

    `early` and `end` are what L-BFGS-B makes of the best points after `EARLY` and `BUDGET`
    evaluations; all are NaN where there is no local minimum to start from.
    """
    columns = ["sigma0", "start", "tolerance", "early", "end", "best", "evaluations"]
    here = valley(function, n_var, seed)
    if here is None:
        return Result(pd.DataFrame({"sigma0": sigmas}).reindex(columns=columns))
    parsed = Method.parse(method)
    given = {}
    if parsed.trainer == "lea-mvd":
        given = {"reading": parsed.reading(Reading()), "limits": "clip"}
    elif parsed.trainer.endswith("cma-es"):
        given = {"population_size": 4 + int(3 * np.log(n_var))}  # pycma's
    rows = []
    for sigma0 in sigmas:
        given["sigma0"] = sigma0
        opt = optimizer(parsed.trainer, here.x, bounds=(0, 1), n_gen=BUDGET, seed=seed, **given)
        x = here.x
        for _ in generations(opt, here.value, BUDGET):
            if opt.nfev <= EARLY:
                x = opt.result.x
        early = here.descend(x)[1]
        end = here.descend(opt.result.x)[1]
        rows.append((sigma0, here.start, here.tolerance, early, end, opt.best_fun, float(opt.nfev)))
    return Result(pd.DataFrame(rows, columns=columns))


# ---- what is computed: RBMs


def curvatures(theta: np.ndarray, V: np.ndarray, n_hidden: int) -> np.ndarray:
    """Return the eigenvalues of the error's Hessian in ascending order, by central differences of
    gradients.
    """
    rows = []
    for step in 1e-4 * np.eye(len(theta)):
        after = error_and_gradient(theta + step, V, n_hidden)[1]
        before = error_and_gradient(theta - step, V, n_hidden)[1]
        rows.append(after - before)
    H = np.array(rows) / 2e-4
    return np.linalg.eigvalsh((H + H.T) / 2)


def descend_rbm(theta: np.ndarray, V: np.ndarray, n_hidden: int) -> tuple[np.ndarray, float]:
    """Return where L-BFGS ends from an RBM, and the error there."""
    before = np.inf
    options = LBFGS | {"maxfun": ROUND}
    while True:
        end = optimize.minimize(
            error_and_gradient, theta, (V, n_hidden), jac=True, method="L-BFGS-B", options=options
        )
        theta = end.x
        now = float(end.fun)
        if now >= before - TOLERANCE * now:
            return theta, now
        before = now


@one_blas_thread()
def escape_from_training(images: Images, method: str, seed: int) -> Result:
    """Return the ends of the paper's search of an RBM from each of `STARTS`.

    A row has the error there, the gradient's norm and the outer eigenvalues of the Hessian; the
    error `without` a search, which L-BFGS reaches from there; the `best` of the search, and the
    `end` that L-BFGS makes of it.
    """
    V = images.load("float64").train.astype(np.float64)
    parsed = Method.parse(method)
    training = parsed.training(Training(dtype="float64"))
    reading = parsed.reading(EXPERIMENT)
    trainer = ContrastiveDivergence(V, N_HIDDEN, settings=training, seed=layer_seed(seed, 1))
    trainer.fit(EPOCHS)
    theta = trainer.rbm.flat()
    objective = ReconstructionObjective(V, N_HIDDEN)
    rows = []
    for start in STARTS:
        error, gradient = error_and_gradient(theta, V, N_HIDDEN)
        hessian = curvatures(theta, V, N_HIDDEN)
        lower, without = descend_rbm(theta, V, N_HIDDEN)
        opt = training.optimizer(parsed.trainer, theta, reading=reading, seed=seed)
        for _ in generations(opt, objective):
            pass
        end = descend_rbm(opt.result.x, V, N_HIDDEN)[1]
        row = {
            "start": start,
            "n_var": len(theta),
            "error": error,
            "gradient": float(np.linalg.norm(gradient)),
            "least": hessian[0],
            "most": hessian[-1],
            "tolerance": TOLERANCE * error,
            "without": without,
            "best": opt.best_fun,
            "end": end,
        }
        rows.append(row)
        theta = lower
    return Result(pd.DataFrame(rows))


def plan(settings: Settings) -> Plan:
    """Return the plan of the section's `Tables`."""
    images = settings.images.known()
    labels = product(settings.functions, settings.sizes, settings.methods, settings.seeds)
    runs = {}
    for label in labels:
        *problem, seed = label
        runs[label] = delayed(escape)(*problem, settings.sigmas, seed)
    rbms = {}
    for seed in settings.rbm_seeds:
        rbms["lea-mvd", seed] = delayed(escape_from_training)(images, "lea-mvd", seed)
    return {
        "runs": (["function", "n_var", "method", "seed"], runs),
        "rbms": (["method", "seed"], rbms),
    }


def plan_here(settings: Settings) -> Plan:
    """Return the plan, where this machine has the images."""
    settings.images.load("float64")  # says now, and not after hours, what is missing
    return plan(settings)


tables = Section(Tables, PROFILES, plan_here, recorded, "local minima")

# without the factors of R17
WITHOUT = Settings(
    methods=(
        "lea-mvd:perturbation=off",
        "lea-mvd:perturbation=added",
        f"{FORMER}+perturbation=off",
        f"{FORMER}+perturbation=added",
    ),
    sigmas=(Training.sigma0,),
    rbm_seeds=(),
)

RECORDED = {
    "local_minima": Recorded(PAPER, lambda: plan(PAPER)),
    "last_step_minima": Recorded(WITHOUT, lambda: {"runs": plan(WITHOUT)["runs"]}),
}

# ---- tables


def escaped(table: pd.DataFrame) -> pd.DataFrame:
    """Return the searches that had something to escape from, with whether they have `escaped`.

    They have where L-BFGS-B ends lower after them than without them; from a local minimum that is
    where they start.
    """
    before = "without" if "without" in table else "start"
    there = table.dropna(subset=[before])
    return there.assign(escaped=there["end"] < there[before] - there["tolerance"])


def most_escape(measured: Tables) -> dict[str, Effect]:
    """Test whether more than half of LEA-MVD's searches escape, with the paper's first standard
    deviation (C13).

    The tests are by the number of a function's variables, and by the start of an RBM.
    """
    ours = escaped(measured.runs).query("method == 'lea-mvd' and sigma0 == @Training.sigma0")
    tests = {}
    for n_var, group in ours.groupby("n_var"):
        tests[f"{n_var} variables"] = share(group["escaped"], lower=0.5)
    of_rbms = escaped(measured.rbms).set_index("start")["escaped"]
    for start, name in STARTS.items():
        tests[f"RBM after {name}"] = share(of_rbms[[start]], lower=0.5)
    return tests


# ---- figures


@styled
def plot_escapes(shares: pd.DataFrame) -> Figure:
    """Plot shares of searches that escape in percent against the number of variables, a panel for
    each sigma0.
    """
    percent = shares.assign(**100 * shares[["mean", "low", "high"]])
    figure, parts = facets(percent, "sigma0", 1.7, sharex=True)
    for ax, sigma0, rows in parts:
        method_bands(ax, rows, "n_var")
        ax.axhline(50, color="k", linewidth=0.8, linestyle=":")
        log_scale(ax, "x")
        ax.set(title=f"σ0 = {sigma0:g}", ylim=(-3, 103))
        ax.set_xticks(sorted(shares["n_var"].unique()), minor=False)
        ax.minorticks_off()
    ax.set_xlabel("variables")
    figure.supylabel("searches that escape, %")
    legend(figure, ncols=2)
    return figure
