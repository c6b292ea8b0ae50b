"""Searches of several sections, on test functions and of a first RBM; what LEA-MVD's two directions
do in a search.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.methods import optimizer, unused_without_x0
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.state import State
from leamvd_paper.data import functions
from leamvd_paper.data.functions import Objective

from .layers import Images, last
from .natural_evolution import CLASSES as STRATEGIES
from .natural_evolution import usual_population_size
from .results import Integers, Plan, Result, Texts, delayed
from .statistics import compared, summarize
from .study_methods import Method


@dataclass(frozen=True)
class Function:
    """A test function whose optimum is moved with each seed, see
    `leamvd_paper.data.functions.problem`.
    """

    name: str
    n_var: int
    scale = 10.0  # of sigma0: 0.1, meant for weights of a network, becomes 1

    def __post_init__(self) -> None:
        checks.integer("n_var", self.n_var, at_least=2)

    def __str__(self) -> str:
        return f"{self.name}, n = {self.n_var:,}"

    def start(self, seed: int) -> tuple[np.ndarray, Objective]:
        """Return the start solution and the objective."""
        return functions.problem(self.name, self.n_var, seed)


@dataclass(frozen=True)
class Moved(Function):
    """The same, moved by a number in every coordinate, as if the origin were somewhere else."""

    by: float = 64.0

    def __str__(self) -> str:
        return f"{super().__str__()}, moved by {self.by:g}"

    def start(self, seed: int) -> tuple[np.ndarray, Objective]:
        """Return the start solution and the objective."""
        x0, objective = super().start(seed)
        return x0 + self.by, lambda X: objective(X - self.by)


@dataclass(frozen=True)
class FirstRBM:
    """The mean-field error of a first layer on images, from one epoch of
    contrastive divergence on.
    """

    name: str
    images: Images
    n_hidden: int
    scale = 1.0

    def __str__(self) -> str:
        return self.name

    @property
    def n_var(self) -> int:
        """The number of parameters."""
        return n_parameters(self.images.side**2, self.n_hidden)

    def start(self, seed: int) -> tuple[np.ndarray, Objective]:
        """Return the start solution and the objective."""
        V = self.images.load("float32").train
        cd = ContrastiveDivergence(V, self.n_hidden, seed=layer_seed(seed, 1))
        return cd.epoch().flat(), ReconstructionObjective(V, self.n_hidden)


Problem = Function | FirstRBM
# evaluations for each variable after which searches are looked at
MARKS = (0.5, 1, 2, 5, 10, 20, 50, 100)


def start(
    problem: Problem, trainer: str, training: Training, reading: Reading, seed: int, budget: int
) -> tuple[Optimizer, Objective]:
    """Return an optimizer before its first generation, and the objective; the budget counts
    evaluations.

    Of `training`, sigma0, x0 and n_elite act; of `reading` all but n_gen, and the population size
    alone on baselines.
    """
    x0, objective = problem.start(seed)
    options = {
        "sigma0": problem.scale * training.sigma0,
        "population_size": reading.population_size,
    }
    if trainer in STRATEGIES:
        return STRATEGIES[trainer](x0, **options, n_gen=budget, seed=seed), objective
    if trainer == "lea-mvd":
        options["n_elite"] = training.n_elite
        options["reading"] = reading
    if training.x0 != "none":
        options["x0"] = x0
    else:  # initialization (A)
        for name in unused_without_x0(trainer):
            options.pop(name, None)
        options["n_var"] = problem.n_var
        options["bounds"] = (-functions.LIMIT, functions.LIMIT)
    return optimizer(trainer, **options, n_gen=budget, seed=seed), objective


def generations(opt: Optimizer, objective: Objective, budget: float = math.inf) -> Iterator[Any]:
    """Yield an optimizer after each of its generations, until it stops or the next one would exceed
    the budget.
    """
    while not opt.stop() and opt.nfev + opt.n_candidates <= budget:
        X = opt.ask()
        opt.tell(X, objective(X))
        yield opt


def search(
    problem: Problem,
    trainer: str,
    training: Training,
    reading: Reading,
    seed: int,
    marks: tuple[float, ...],
) -> Result:
    """Return the best value after so many evaluations for each variable, a row for each mark, see
    `start`.

    It is that of the last generation that ends by then.
    """
    budgets = [round(mark * problem.n_var) for mark in marks]
    opt, objective = start(problem, trainer, training, reading, seed, budgets[-1])
    evaluations = [0]
    best = [math.nan]
    for _ in generations(opt, objective, budgets[-1]):
        evaluations.append(opt.nfev)
        best.append(opt.best_fun)
    at = np.searchsorted(evaluations, budgets, side="right") - 1
    rows = pd.DataFrame({"mark": marks})
    rows["evaluations"] = np.array(evaluations)[at]
    rows["best"] = np.array(best)[at]
    return Result(rows)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods on problems; each problem has the evaluations for each variable after which searches
    are looked at.
    """

    problems: dict[Problem, tuple[float, ...]]
    methods: Texts
    seeds: Integers

    def plan(self) -> Plan:
        """Return the plan of one table, "runs"."""
        calls = {}
        for (problem, marks), text in product(self.problems.items(), self.methods):
            method = Method.parse(text)
            base = Reading()
            if method.trainer in STRATEGIES:
                base = Reading(population_size=usual_population_size(method.trainer, problem.n_var))
            settings = (method.trainer, method.training(Training()), method.reading(base))
            for seed in self.seeds:
                call = delayed(search)(problem, *settings, seed, marks)
                calls[str(problem), text, seed] = call
        return {"runs": (["problem", "method", "seed"], calls)}


def against(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """Compare the best values at each problem's last mark with those of one method, paired by seed.

    `best` and `own` are geometric means, `own` that of the one method; p tests whether their ratio
    is below 1: with ten pairs no two-sided test could be significant among so many.
    """
    ends = last(table, "mark")
    others = [(other, method) for other in ends["method"].unique() if other != method]
    rows = compared(ends, "best", others, by=["problem"], upper=1)
    by = ["problem", "method"]
    best = summarize(ends, "best", by, geometric=True).set_index(by)["mean"]
    rows = rows.join(best.rename("best"), on=by)
    rows = rows.join(best.rename("own"), on=["problem", "baseline"])
    return rows[["problem", "method", "runs", "best", "own", "ratio", "low", "high", "p"]]


def moved(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each method, problem and mark how many times as high it ends where the problem is
    moved, `ratio`.
    """
    end = f", moved by {Moved.by:g}"
    there = table["problem"].str.endswith(end).rename("moved")
    problem = table["problem"].str.removesuffix(end)
    both = problem.isin(problem[there])
    groups = [table["method"], problem, table["mark"], there]
    means = np.log(table["best"][both]).groupby(groups).mean().unstack()
    return np.exp(means[True] - means[False]).rename("ratio").reset_index()


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Return the cosine of the angle, to nine decimals: what rounding leaves is not shown; a zero
    vector has none.
    """
    length = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return round(float(np.sum(a * b)) / length, 9) + 0.0 if length > 0 else math.nan


def directions(state: State) -> dict[str, float]:
    """Return beta_2, the lengths of P and C_ani, their cosine, and C_ani's share of the lengths of
    both parts of v.

    The parts are beta_2 P and (1 - beta_2) |mu_ani| C_ani (Eq. 4).
    """
    P = state.path.astype(np.float64)
    C = state.descent.astype(np.float64)
    path = float(np.linalg.norm(P))
    descent = float(np.linalg.norm(C))
    part = (1 - state.beta2) * abs(state.descent_mean) * descent
    both = state.beta2 * path + part
    share = part / both if both != 0 else math.nan
    return {
        "beta2": state.beta2,
        "path_length": path,
        "descent_length": descent,
        "descent_path": cosine(C, P),
        "descent_share": share,
    }
