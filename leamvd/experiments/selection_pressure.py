"""Tournaments and the weights of Eq. 1, exact and simulated, for the section on selection (R19)."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support.compile import Array, Floats
from leamvd.optimizers import selection

FALSE_ALARMS = 0.01
"""Rate of false alarms of all tests in one table together (Bonferroni)."""

BINARY, DOUBLE, FOUR = "binary tournament", "double binary tournament", "tournament of four"

STATED = {BINARY: 1.0, DOUBLE: 2.0}
"""The exponents that the paper calls equivalent to these tournaments (item R19)."""

TOURNAMENTS = {"recorded": 100_000, "quick": 100_000, "paper": 5_000_000}
"""How many of each kind a profile simulates; "recorded" is what the page shows."""

CURVE = tuple(np.linspace(0, 4, 81).tolist())
"""Exponents at which curves are drawn."""


def tournaments(population_size: int) -> dict[str, Floats]:
    """Return the exact probability that each rank wins, by tournament, best rank first.

    A double binary tournament fills a set of lambda members with winners of binary tournaments, and holds a binary
    tournament among its members. With probability 1/lambda that draws one member twice, who won once; otherwise two
    members, of whom the better is the best of four.
    """
    two, four = (selection.tournament(population_size, size) for size in (2, 4))
    return {BINARY: two, DOUBLE: four + (two - four) / population_size, FOUR: four}


def weights(population_size: int, exponents: Iterable[float]) -> pd.DataFrame:
    """Return the selection weight of every rank, from 1: Eq. 1 with each exponent, and the exact tournaments."""
    methods: list[tuple[str, float, Floats]] = [
        (f"exponent {a:g}", a, selection.fractional_tournament(population_size, a)) for a in exponents
    ]
    methods += [(name, np.nan, p) for name, p in tournaments(population_size).items()]
    ranks = np.arange(1, population_size + 1)
    return pd.concat(
        [pd.DataFrame({"method": name, "exponent": a, "rank": ranks, "weight": w}) for name, a, w in methods],
        ignore_index=True,
    )


def simulate(population_size: int, n_tournaments: int, seed: int) -> pd.DataFrame:
    """Hold tournaments and count who wins: the share of each rank, its standard error and its expectation, exact."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(1, population_size, size=(2, n_tournaments, 2), endpoint=True)
    one, other = draws.min(axis=2)  # winners of two binary tournaments
    same = rng.integers(population_size, size=n_tournaments) == 0  # the last round draws one member twice
    best = np.minimum(one, other)
    winners = {BINARY: one, DOUBLE: np.where(same, one, best), FOUR: best}
    frames = []
    for method, exact in tournaments(population_size).items():
        wins = np.bincount(winners[method], minlength=population_size + 1)[1:]
        share = wins / n_tournaments
        error = np.sqrt(exact * (1 - exact) / n_tournaments)
        ranks = np.arange(1, population_size + 1)
        frames.append(
            pd.DataFrame(
                {"method": method, "rank": ranks, "wins": wins, "share": share, "error": error, "exact": exact}
            )
        )
    return pd.concat(frames, ignore_index=True)


def goodness(simulated: pd.DataFrame) -> pd.DataFrame:
    """Test what `simulate` counted against the formulas, and against the exponents that the paper states.

    A pair is rejected at `FALSE_ALARMS` over the whole table. Ranks that expect fewer than five wins are counted with
    their neighbors.
    """
    rows = []
    for method, group in simulated.groupby("method", sort=False):
        wins = group["wins"].to_numpy()
        pairs = [("its formula", group["exact"].to_numpy())]
        if method in STATED:
            stated = STATED[str(method)]
            pairs.append((f"exponent {stated:g}", selection.fractional_tournament(len(wins), stated)))
        rows += [(method, against, *_chi_square(wins, p)) for against, p in pairs]
    table = pd.DataFrame(rows, columns=["tournament", "against", "chi-square", "degrees of freedom", "p"])
    return table.assign(rejected=table["p"] < FALSE_ALARMS / len(table))


def _chi_square(wins: Array, probability: Floats) -> tuple[float, int, float]:
    expected, starts, total = wins.sum() * probability, [0], 0.0
    for rank, value in enumerate(expected):
        if total >= 5:
            starts.append(rank)
            total = 0.0
        total += value
    if total < 5 and len(starts) > 1:
        starts.pop()
    test = stats.chisquare(np.add.reduceat(wins, starts), np.add.reduceat(expected, starts))
    return float(test.statistic), len(starts) - 1, float(test.pvalue)


def total_variation(p: Floats, q: Floats) -> float:
    """Return the total variation distance: the largest difference in probability of any set of ranks."""
    return float(np.abs(p - q).sum() / 2)


def closest(population_size: int) -> pd.DataFrame:
    """Return for each tournament the exponent, to 0.001 and at most 8, whose weights are closest to it.

    Distances are in total variation; "distance there" is that of the exponent that the paper states.
    """
    grid = np.linspace(0, 8, 8001)
    candidates = np.array([selection.fractional_tournament(population_size, a) for a in grid])
    rows = []
    for method, exact in tournaments(population_size).items():
        distances = np.abs(candidates - exact).sum(axis=1) / 2
        stated = STATED.get(method, np.nan)
        here = np.nan
        if method in STATED:
            here = total_variation(selection.fractional_tournament(population_size, stated), exact)
        best = int(np.argmin(distances))
        rows.append((method, stated, here, grid[best], distances[best]))
    return pd.DataFrame(rows, columns=["tournament", "stated", "distance there", "closest", "distance"])


def differences(simulated: pd.DataFrame, closest: pd.DataFrame) -> pd.DataFrame:
    """Return, rank by rank, what is counted and what exponents weigh, less the exact probability.

    In percentage points; error is the standard error, and stated is NaN where the paper states no exponent.
    """
    frames = []
    for method, stated, best in closest[["tournament", "stated", "closest"]].itertuples(index=False):
        own = simulated[simulated["method"] == method]
        exact = own["exact"].to_numpy()
        shown = {
            name: np.nan if np.isnan(a) else 100 * (selection.fractional_tournament(len(own), a) - exact)
            for name, a in (("stated", stated), ("closest", best))
        }
        counted = {"simulated": 100 * (own["share"] - exact), "error": 100 * own["error"]}
        frames.append(pd.DataFrame({"method": method, "rank": own["rank"], **counted, **shown}))
    return pd.concat(frames, ignore_index=True)


def pressure(population_sizes: Iterable[int], exponents: Iterable[float]) -> pd.DataFrame:
    """Return how sharply each method selects, by population size.

    expected_rank is the sum of k G_k, effective_size 1 / sum of G_k^2; rank_share and size_share are these as parts of
    the population size.
    """
    exponents = tuple(exponents)
    rows = [
        (size, method, group["exponent"].iloc[0], (group["rank"] * group["weight"]).sum(),
         selection.effective_sample_size(group["weight"]))
        for size in population_sizes
        for method, group in weights(size, exponents).groupby("method", sort=False)
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["population_size", "method", "exponent", "expected_rank", "effective_size"])
    size = table["population_size"]
    return table.assign(rank_share=table["expected_rank"] / size, size_share=table["effective_size"] / size)


def normal_models(population_size: int, exponents: Iterable[float], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Weigh one population of the plane, drawn from N(0, I), by several exponents (Eqs. 2 and 3).

    The objective is (x1 - 1)^2 + 4 (x2 - 1)^2, so the optimum is (1, 1). The second table has the models: distance is
    that of the mean to the optimum, and area std1 std2, as a multiple of what equal weights give.
    """
    X = np.random.default_rng(seed).standard_normal((population_size, 2))
    X = X[np.argsort((X[:, 0] - 1) ** 2 + 4 * (X[:, 1] - 1) ** 2, kind="stable")]
    equal = float(np.prod(X.std(axis=0)))
    points, rows = [], []
    for a in exponents:
        G = selection.fractional_tournament(population_size, a)
        mean, std = selection.mean_and_std(X, G)
        ranks = np.arange(1, population_size + 1)
        points.append(pd.DataFrame({"exponent": a, "rank": ranks, "weight": G, "x1": X[:, 0], "x2": X[:, 1]}))
        rows.append((a, *mean, *std, np.linalg.norm(mean - 1), np.prod(std) / equal))
    columns = ["exponent", "mean1", "mean2", "std1", "std2", "distance", "area"]
    return pd.concat(points, ignore_index=True), pd.DataFrame(rows, columns=columns)
