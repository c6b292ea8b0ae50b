"""Section 7, second half: what carries a search, and where the origin of the coordinates is.

Every generation ends with factors that act in proportion to the distance from the origin (R17).
What is a search worth when its optimum is somewhere else, and what is it worth without them?
"""

import dataclasses
import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from leamvd.networks.dbn import EXPERIMENT, layer_seed
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.methods import optimizer
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.sampling import Place
from leamvd_paper.data.functions import FUNCTIONS, Objective, ellipsoid

from .benchmarks import FirstRBM, generations
from .layers import Images
from .plots import BLUE, COLORS, GREEN, VERMILION, band, legend, log_scale, panels, styled
from .results import Plan, Recorded, Result, delayed
from .study_methods import FORMER, Method
from .words import named

# ---- settings

SIGMA0 = 0.3
EVALUATIONS = 100  # for each variable
PLACES = (0.0, 0.1, 1.0, 10.0, 100.0)  # of the optimum, in every coordinate
FACTOR = "factor"
ABOUT_X0 = "factor about x0"
ABOUT_MEAN = "factor about the mean"
SPARSE = "added, constant"
DENSE = "normal, constant"
ADDED = "added"
OFF = "none"
SIZES = (0.3, 1.0, 3.0)  # of constant noise, in units of the factor's at x0
NOISES = {kind: (kind, 1.0) for kind in (FACTOR, ABOUT_X0, ABOUT_MEAN)}  # by their names
for kind, times in product((SPARSE, DENSE), SIZES):
    NOISES[f"{kind}, {times:g}"] = (kind, times)
for kind in (ADDED, OFF):
    NOISES[kind] = (kind, 1.0)
PRINTED = "as printed"
UNBIASED = "unbiased"
BEFORE = "about the mean before"
CENTER = "about the center"
SPREADS = (PRINTED, UNBIASED, BEFORE, CENTER)
DEFAULT = "lea-mvd"
SMALL = "lea-mvd:population_size=8+reset=off"
METHODS = (DEFAULT, "lea-mvd:reset=off", FORMER, SMALL)
BASELINE = "sep-cma-es"
SEEDS = tuple(range(10))
RBM_1 = Images(dataset="mnist", side=28, n_images=10_000)

SETTINGS = {
    "functions": ("sphere", "rotated ellipsoid", "rastrigin"),
    "sizes": (10, 100),
    "methods": METHODS,
    "places": PLACES,
    "seeds": SEEDS,
    "evaluations": EVALUATIONS,
    "sigma0": SIGMA0,
    "noises": tuple(NOISES),
    "spreads": SPREADS,
    "images": RBM_1,
}


# ---- what is computed


def centered(function: str, n_var: int, seed: int) -> tuple[np.ndarray, Objective]:
    """Return a start solution, N(0, 1), and a function whose optimum is zero at zero."""
    start = np.random.default_rng([seed, n_var]).standard_normal(n_var)
    if function != "rotated ellipsoid":
        return start, FUNCTIONS[function]
    Q = stats.ortho_group.rvs(n_var, random_state=seed)
    return start, lambda X: ellipsoid(X @ Q)


def search(
    function: str,
    n_var: int,
    c: float,
    scale: float,
    method: str,
    noise: str,
    seed: int,
    spread: str,
    n_elite: int,
) -> Result:
    """Return the best value of a search whose optimum is at c in every coordinate, see `Varied`.

    `scale` is that of the start's distance and of sigma0. The factor acts about x0 where x0 is the
    origin.
    """
    start, objective = centered(function, n_var, seed)
    optimum = -scale * start if noise == ABOUT_X0 else np.full(n_var, c)
    x0 = optimum + scale * start
    parsed = Method.parse(method)
    budget = EVALUATIONS * n_var
    given: dict[str, Any] = {"sigma0": SIGMA0 * scale, "n_gen": budget, "seed": seed}
    varied = {"noise": noise, "spread": spread, "n_elite": n_elite, "sigma_min": 0}
    if parsed.trainer == BASELINE:
        opt = optimizer(BASELINE, x0, population_size=4 + int(3 * math.log(n_var)), **given)
    else:
        size = math.sqrt(np.mean((c + scale * start) ** 2))
        opt = Varied(x0, size=size, reading=parsed.reading(Reading()), **varied, **given)
    for _ in generations(opt, lambda X: objective(X - optimum), budget):
        pass
    return Result(pd.DataFrame({"best": [opt.best_fun], "evaluations": [opt.nfev]}))


class Varied(LEAMVD):
    """LEA-MVD with another noise at the end of each generation, or other standard deviations.

    `size` is the root mean square of x0, with which constant noise has a factor's standard
    deviation in one step.
    """

    def __init__(
        self,
        x0: np.ndarray,
        *,
        noise: str,
        spread: str,
        size: float,
        reading: Reading,
        **given: Any,
    ) -> None:
        self.noise, times = NOISES[noise]
        self.spread = spread
        self.size = times * size
        last = "entry"
        if self.noise in (SPARSE, ADDED):
            last = "added"
        elif self.noise in (DENSE, OFF):
            last = "off"
        super().__init__(x0, reading=dataclasses.replace(reading, perturbation=last), **given)

    def _regenerate(self, place: Place) -> None:
        mean = self._vectors.mean.copy()
        if self.noise == ABOUT_MEAN:
            self._vectors.mean[:] = 0  # factors act about zero
        super()._regenerate(place)
        new = self._X[self.n_elite :]
        if self.noise == ABOUT_MEAN:
            new += mean
        elif self.noise == DENSE:
            z = np.random.default_rng([self.seed, self.generation]).standard_normal(new.shape)
            new += self.size * math.sqrt(self.reading.perturbation_share / 12) * z
        step = abs(self._descent_mean) if self.reading.descent != "off" else 0.0
        v = self._beta2 * self._vectors.path + (1 - self._beta2) * step * self._vectors.descent
        self._point = mean + self._beta1 * v if self.spread == CENTER else mean

    def _estimate(self) -> None:
        super()._estimate()
        std = self._vectors.std
        if self.spread == UNBIASED:
            std /= math.sqrt(1 - float(self._weights @ self._weights))
        # Hansen's tutorial on CMA-ES, on EMNA
        elif self.spread in (BEFORE, CENTER) and self.generation > 1:
            np.hypot(std, self._vectors.mean - self._point, out=std)
        self._std_norm = float(np.linalg.norm(std))
        if self.noise == SPARSE:
            self._added = np.full(1, self.size)


def about_start(images: Images, n_hidden: int, sigma0: float, seed: int) -> Result:
    """Return the error of a first layer after each generation, where factors act about its start
    solution.
    """
    x0, objective = FirstRBM("RBM 1", images, n_hidden).start(seed)
    opt = LEAMVD(
        np.zeros_like(x0),
        sigma0=sigma0,
        seed=layer_seed(seed, 1),
        dtype="float32",
        reading=EXPERIMENT,
    )
    best = [opt.best_fun for _ in generations(opt, lambda X: objective(x0 + X))]
    best.insert(0, float(objective(x0[None])[0]))
    return Result(pd.DataFrame({"mean_field": best}).rename_axis("iteration").reset_index())


def _places() -> Plan:
    """Return the plan of the searches by the place of their optimum."""
    where = list(product((FACTOR,), PLACES, (1.0,)))
    where += product((OFF, ADDED, ABOUT_X0), (1.0, 64.0), (1.0,))
    where += product((FACTOR, OFF, ADDED, ABOUT_X0), (10.0,), (10.0,))
    problems = list(product(SETTINGS["functions"], SETTINGS["sizes"]))
    cells = list(product(problems, METHODS, where))
    cells += product(problems, (BASELINE,), ((OFF, 1.0, 1.0),))
    far = product((FACTOR,), (1.0, 3.0, 10.0), (1.0,))
    large = product((("sphere", 1_000),), (DEFAULT, FORMER), far)
    calls = {}
    for (problem, method, at), seed in [*product(cells, SEEDS), *product(large, SEEDS[:5])]:
        noise, c, scale = at
        label = (*problem, method, *at, seed)
        calls[label] = delayed(search)(*problem, c, scale, method, noise, seed, PRINTED, 4)
    return {"runs": (["function", "n_var", "method", "noise", "c", "scale", "seed"], calls)}


def _parts() -> Plan:
    """Return the plan of the searches by their parts."""
    calls = {}
    off = {"both": "lea-mvd:reset=off", "none": "lea-mvd:reset=off+path=off+descent=off"}
    cells = product(SETTINGS["functions"][:2], (1.0, 10.0), NOISES, SPREADS, (4, 1), off, SEEDS)
    for function, c, noise, spread, n_elite, both, seed in cells:
        label = function, c, noise, spread, n_elite, both, seed
        calls[label] = delayed(search)(
            function, 100, c, 1.0, off[both], noise, seed, spread, n_elite
        )
    return {"runs": (["function", "c", "noise", "std", "n_elite", "directions", "seed"], calls)}


def _layers() -> Plan:
    calls = {}
    for seed in range(3):
        calls[1, seed] = delayed(about_start)(RBM_1.known(), 500, 0.01, seed)
    return {"runs": (["layer", "seed"], calls)}


RECORDED = {
    "origin": Recorded(SETTINGS, _places),
    "carries": Recorded(SETTINGS, _parts),
    "about_start": Recorded(SETTINGS, _layers),
}

# ---- tables


def medians(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the median of the best values over seeds, with the quartiles, by some columns in order
    of appearance.
    """
    best = table.groupby(by, sort=False)["best"]
    ends = {"median": best.median(), "low": best.quantile(0.25), "high": best.quantile(0.75)}
    return pd.DataFrame(ends).reset_index()


def carries(parts: pd.DataFrame) -> pd.DataFrame:
    """Return in how many cells each noise, with directions and without, and both directions carry a
    search.

    That is where leaving the part out raises the median end at least tenfold; a cost is by how many
    times.
    """
    cells = ["function", "c", "std", "n_elite"]
    best = medians(parts, [*cells, "noise", "directions"]).pivot(
        index=cells, columns=["directions", "noise"]
    )["median"]
    costs = {
        "noise": best["both"][[OFF]].to_numpy() / best["both"],
        "noise, without directions": best["none"][[OFF]].to_numpy() / best["none"],
        "directions": best["none"] / best["both"],
    }
    table = pd.concat(costs, axis=1).T.rename_axis(["part", "noise"])
    ends = {
        "carries": (table >= 10).sum(axis=1),
        "least": table.min(axis=1),
        "most": table.max(axis=1),
    }
    found = pd.DataFrame({"cells": table.shape[1], **ends})
    return found.reindex(
        pd.MultiIndex.from_product([costs, NOISES], names=table.index.names)
    ).reset_index()


# ---- figures

LOOKS = {
    FACTOR: (VERMILION, "-", "o"),
    ABOUT_X0: ("0.3", "--", "s"),
    OFF: (BLUE, ":", "^"),
    ADDED: (GREEN, "-.", "D"),
}


@styled
def plot_places(places: pd.DataFrame, function: str, n_var: int) -> Figure:
    """Plot the best value against the place of the optimum: medians of ten seeds, bands between the
    quartiles.

    What does not depend on the place by construction was measured at two, and is drawn through.
    """
    here = (places["function"] == function) & (places["n_var"] == n_var)
    rows = places[here & (places["scale"] == 1)]
    figure, axes = panels(1, 2, height=3.6, sharey=True)
    baseline = medians(rows[rows["method"].str.startswith(BASELINE)], ["noise"]).iloc[0]
    for ax, method in zip(axes[0], (DEFAULT, SMALL), strict=True):
        ends = medians(rows[rows["method"] == method], ["noise", "c"])
        for noise, line in ends.groupby("noise", sort=False):
            color, style, marker = LOOKS[noise]
            if noise == FACTOR:
                band(
                    ax,
                    line,
                    "c",
                    "median",
                    color=color,
                    marker=marker,
                    linestyle=style,
                    label=noise,
                )
            else:
                ax.plot(
                    line["c"], line["median"], color=color, marker=marker, linestyle="", label=noise
                )
                ax.axhline(line["median"].median(), color=color, linestyle=style)
                ax.axhspan(
                    line["low"].median(), line["high"].median(), color=color, alpha=0.2, linewidth=0
                )
        ax.axhline(baseline["median"], color=COLORS[BASELINE], label=named(BASELINE))
        ax.set_xscale("symlog", linthresh=0.1, linscale=0.5)
        ax.set_xticks(PLACES, [f"{c:g}" for c in PLACES])
        ax.minorticks_off()
        log_scale(ax, "y")
        ax.set(
            title=named(method).removeprefix("LEA-MVD, "),
            xlabel="place of the optimum",
            xlim=(-0.03, 150),
        )
    axes[0, 0].set_ylabel("best value")
    legend(figure)
    return figure
