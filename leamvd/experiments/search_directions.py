"""LEA-MVD taken apart, generation by generation, for the section on the two directions."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support import checks
from leamvd._support.compile import Floats
from leamvd.data.functions import Objective, ellipsoid, sphere
from leamvd.experiments.searches import generations
from leamvd.experiments.selection_pressure import FALSE_ALARMS
from leamvd.optimizers.directions import RATE
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.state import State

OBJECTIVES: dict[str, Objective] = {"sphere": sphere, "ellipsoid": ellipsoid}
"""Objectives that the command line knows; any other callable serves in their place."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What the section on the directions runs: LEA-MVD from a start solution in N(0, I), unless it says otherwise."""

    objective: Objective = ellipsoid  # takes points, shape (m, n_var), and returns their values, shape (m,)
    n_var: int = 50  # this and the next six: as in `leamvd.LEAMVD` and `leamvd.Reading`
    n_gen: int = 60
    population_size: int = 24
    n_elite: int = 4
    exponent: float = 1.5
    shift: Literal["toward_best", "printed"] = "toward_best"
    dtype: str = "float64"
    seeds: tuple[int, ...] = tuple(range(10))
    n_populations: int = 200  # on which the sign of a shift is tested
    start: float = 0.01  # standard deviation of the start solution's coordinates where resets are compared

    def __post_init__(self) -> None:
        if not callable(self.objective):
            raise TypeError(f"objective must be callable, got {self.objective!r}")
        checks.integer("n_populations", self.n_populations, at_least=1)
        checks.real("start", self.start, at_least=0)
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if not self.seeds:
            raise ValueError("seeds must hold one or more seeds, got ()")

    @property
    def label(self) -> str:
        """The objective and the number of variables, for titles."""
        return f"{_name(self.objective)}, n = {self.n_var}"

    def run(self, seed: int, *, reset: Any = 1.0, start: float = 1.0) -> Iterator[LEAMVD]:
        """Yield an optimizer after each of its generations; the start solution is drawn from N(0, start^2 I)."""
        opt = LEAMVD(
            start * np.random.default_rng(seed).standard_normal(self.n_var),
            population_size=self.population_size,
            n_elite=self.n_elite,
            n_gen=self.n_gen,
            sigma_min=0,
            seed=seed,
            dtype=self.dtype,
            reading=Reading(exponent=self.exponent, shift=self.shift, reset=reset),
        )
        yield from generations(opt, self.objective)


PLANS = {"recorded": Plan(), "quick": Plan(), "paper": Plan(n_gen=300, seeds=tuple(range(30)), n_populations=2000)}


def plan(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with fields of `Plan` changed."""
    checks.choice("profile", profile, tuple(PLANS))
    return dataclasses.replace(PLANS[profile], **changes)


def parameters(namespace: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of `Plan` that a notebook's ``globals()``, say, have a value other than None for."""
    names = {field.name for field in dataclasses.fields(Plan)}
    return {name: namespace[name] for name in names & set(namespace) if namespace[name] is not None}


def _name(objective: Objective) -> str:
    return getattr(objective, "__name__", type(objective).__name__)


def _cosine(a: Floats, b: Floats) -> float:
    """Return the cosine of the angle, to nine decimals: what rounding leaves is not shown; a zero vector has none."""
    length = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return round(float(np.sum(a * b)) / length, 9) + 0.0 if length > 0 else np.nan


def _state(opt: LEAMVD) -> State:
    """Return the state, its arrays in double precision."""
    state = opt.state
    arrays = {
        name: getattr(state, name).astype(np.float64) for name in ("population", "mean", "std", "path", "descent")
    }
    return state._replace(**arrays)


# ---- whole runs


def trace(plan: Plan, *, reset: Any = 1.0, start: float = 1.0) -> pd.DataFrame:
    """Run every seed of the plan and record what the directions and the step sizes do: `followed`."""
    return followed({seed: plan.run(seed, reset=reset, start=start) for seed in plan.seeds})


def followed(runs: Mapping[int, Iterable[LEAMVD]]) -> pd.DataFrame:
    """Record what the directions and the step sizes do, from runs by seed: an optimizer after each of its generations.

    A row is a generation: success says whether it has a new best, reset whether line 10 of Algorithm 1 was reached. std
    is the norm of sigma over sqrt(n), path_length and descent_length are the norms of P and C_ani, hat_path and
    descent_path the cosines of C_hat and of C_ani with P (C_hat is recovered from two generations of C_ani), and
    descent_share is the length of C_ani's part of v over that of both parts.
    """
    rows = []
    for seed, run in runs.items():
        before: State | None = None
        for state in map(_state, run):
            hat = state.descent - (0 if before is None else (1 - RATE) * before.descent)
            success = before is not None and bool(state.fitness[0] < before.fitness[0])
            stagnation = 0 if before is None or success else before.stagnation + 1
            path, descent = float(np.linalg.norm(state.path)), float(np.linalg.norm(state.descent))
            parts = state.beta2 * path, (1 - state.beta2) * abs(state.descent_mean) * descent
            rows.append(
                (seed, state.generation, state.fitness[0], success, state.stagnation < stagnation, state.stagnation,
                 state.beta1, state.beta2, state.std_norm / np.sqrt(len(state.mean)), path, descent,
                 _cosine(hat, state.path), _cosine(state.descent, state.path),
                 parts[1] / sum(parts) if any(parts) else np.nan)
            )  # fmt: skip
            before = state
    columns = [
        "seed", "generation", "best", "success", "reset", "stagnation", "beta1", "beta2", "std", "path_length",
        "descent_length", "hat_path", "descent_path", "descent_share",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def angles(trace: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest, the median and the largest size of both cosines with P and of the length of C_ani."""
    names = {
        "hat_path": "cosine of C_hat and P",
        "descent_path": "cosine of C_ani and P",
        "descent_length": "length of C_ani",
    }
    sizes = trace[list(names)].abs().agg(["min", "median", "max"]).T.rename(names)
    return sizes.set_axis(["smallest", "median", "largest"], axis=1).rename_axis("size of the").reset_index()


def steps(trace: pd.DataFrame) -> pd.DataFrame:
    """Return how often each run of `trace` succeeds, and what that does to the step sizes, from generation 2 on.

    With beta_2 = 1, C_ani has no weight in v; "C_ani %" is the mean of the percentage that its part has of the length
    of both parts of v.
    """
    runs = trace[trace["generation"] > 1].assign(full=trace["beta2"] == 1).groupby("seed")
    return pd.DataFrame(
        {
            "new best %": 100 * runs["success"].mean(),
            "beta_1 min": runs["beta1"].min(),
            "beta_1 max": runs["beta1"].max(),
            "beta_2 = 1 %": 100 * runs["full"].mean(),
            "C_ani %": 100 * runs["descent_share"].mean(),
            "resets": runs["reset"].sum(),
        }
    )


RESETS: dict[str, Any] = {"1": 1.0, "initial": "initial", "off": "off"}
"""Readings of item R13 that are compared."""


def resets(plan: Plan) -> pd.DataFrame:
    """Run the plan from start solutions close to the optimum, once with each of `RESETS`.

    The table is that of `trace` with a column reading, and `relative`: the best value over that of generation 1.
    """
    frames = [trace(plan, reset=value, start=plan.start).assign(reading=name) for name, value in RESETS.items()]
    table = pd.concat(frames, ignore_index=True)
    first = table.groupby(["reading", "seed"])["best"].transform("first")
    return table.assign(relative=np.where(first > 0, table["best"] / first, 1.0))


def stuck(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each reading of `resets` what its resets did, how many runs never improved, and where runs ended.

    before and after are medians of std in the generations before and of a reset, final that of the last best over the
    first.
    """
    rows = []
    for reading, group in table.groupby("reading", sort=False):
        last = group[group["generation"] == group["generation"].max()]["relative"]
        std, marks = group["std"].to_numpy(), np.flatnonzero(group["reset"])
        before, after = (float(np.median(std[marks - back])) if len(marks) else np.nan for back in (1, 0))
        rows.append((reading, len(last), len(marks), before, after, int((last == 1).sum()), float(last.median())))
    columns = ["reading", "runs", "resets", "before", "after", "stuck", "final"]
    return pd.DataFrame(rows, columns=columns).set_index("reading")


# ---- one generation


class Scene(NamedTuple):
    """One generation as plain tables, ready to be drawn; coordinates are columns x1, x2, ..."""

    points: pd.DataFrame  # rank, fitness, in_u (drawn for U), projection on C_ani, x.. and its foot on C_ani's line f..
    vectors: pd.DataFrame  # index: mean, P, C_hat, C_ani, toward, away, v toward, v away
    numbers: pd.Series  # mu_ani, sigma_ani, beta_2, norms of sigma, P, C_ani and the step along it, parts of v
    slices: pd.DataFrame  # direction, distance, change: f along each direction from the mean, relative
    label: str


SLICES = {"P": "P", "$C_{ani}$, toward the best": "toward", "$C_{ani}$, as printed": "away"}
"""Directions along which the objective is shown, and their names among the vectors."""


def scene(plan: Plan, n_var: int, generation: int, seed: int) -> Scene:
    """Run the plan in `n_var` dimensions up to a generation, and take that one apart.

    The vectors `toward` and `away` are abs(mu_ani) C_ani and mu_ani C_ani: with a weight of 1 - beta_2, and P with
    beta_2, they make the shift v as this edition reads it and as the paper prints it (item R5).
    """
    small = dataclasses.replace(plan, n_var=n_var, n_gen=generation)
    *earlier, now = map(_state, small.run(seed))
    C, X = now.descent, now.population
    hat = (C - (1 - RATE) * (earlier[-1].descent if earlier else 0)) / RATE
    toward, away = abs(now.descent_mean) * C, now.descent_mean * C
    names = [f"x{i}" for i in range(1, n_var + 1)]
    vectors = pd.DataFrame(
        {"mean": now.mean, "P": now.path, "C_hat": hat, "C_ani": C, "toward": toward, "away": away,
         "v toward": _mix(now, toward), "v away": _mix(now, away)},
        index=names,
    ).T  # fmt: skip
    unit = C / np.linalg.norm(C) if C.any() else C
    feet = X[0] + np.sum((X - X[0]) * unit, axis=1)[:, None] * unit
    points = pd.DataFrame(np.hstack([X, feet]), columns=names + [name.replace("x", "f") for name in names])
    points.insert(0, "rank", np.arange(1, len(X) + 1))
    points.insert(1, "fitness", now.fitness)
    points.insert(2, "in_u", np.isin(np.arange(len(X)), now.descent_rows))
    points.insert(3, "projection", np.sum((X - X[0]) * C, axis=1))
    label = f"{small.label}, generation {now.generation}"
    return Scene(points, vectors, _numbers(now, toward), _slices(small, now, vectors), label)


def _mix(state: State, step: Floats) -> Floats:
    """Return v (Eq. 4) for a step along C_ani."""
    mixed: Floats = state.beta2 * state.path + (1 - state.beta2) * step
    return mixed


def _numbers(state: State, step: Floats) -> pd.Series:
    sigma, P, C, along = (float(np.sqrt(np.sum(x**2))) for x in (state.std, state.path, state.descent, step))
    return pd.Series(
        {
            "mu_ani": state.descent_mean, "sigma_ani": state.descent_std, "beta_2": state.beta2, "norm of sigma": sigma,
            "norm of P": P, "norm of C_ani": C, "step along C_ani": along, "part of P in v": state.beta2 * P,
            "part of C_ani in v": (1 - state.beta2) * along,
        }
    )  # fmt: skip


def _slices(plan: Plan, state: State, vectors: pd.DataFrame) -> pd.DataFrame:
    """Return the relative change of the objective along unit vectors, up to one standard deviation (rms) away."""
    frames = []
    distances = np.linspace(0, float(np.sqrt(np.mean(state.std**2))), 41)
    for label, name in SLICES.items():
        vector = vectors.loc[name].to_numpy(dtype=np.float64)
        length = float(np.linalg.norm(vector))
        X = state.mean + distances[:, None] * (vector / length if length > 0 else vector)
        values = pd.Series(plan.objective(X))  # the first is the mean's
        frames.append(pd.DataFrame({"direction": label, "distance": distances, "change": _change(values, values[0])}))
    return pd.concat(frames, ignore_index=True)


def _change(values: pd.Series, reference: Any) -> pd.Series:
    """Return the changes from a reference, relative to its size: negative where values are lower."""
    changes: pd.Series = (values - reference) / abs(reference)
    return changes


# ---- the sign of the shift

SHIFTS = ("C_ani, toward the best", "C_ani, as printed", "P", "v, toward the best", "v, as printed")
"""What the mean is moved by: the whole step along C_ani in two readings, beta_1 P, and beta_1 v in two readings."""


def shifts(plan: Plan, objectives: Iterable[Objective], generations: Sequence[int]) -> pd.DataFrame:
    """Move the mean of many independent populations by each of `SHIFTS`, and see what the objective does.

    Objectives take the place of the plan's own, one after the other; populations are looked at in some generations. In
    the table, change is relative to the objective's size at the mean, and moved says whether the shift is not zero.
    Both readings are judged on the same populations.
    """
    rows = []
    for objective in objectives:
        own = dataclasses.replace(plan, objective=objective, n_gen=max(generations))
        for seed in range(plan.n_populations):
            for opt in own.run(seed):
                if opt.generation in generations:
                    state = _state(opt)
                    toward, away = (step * state.descent for step in (abs(state.descent_mean), state.descent_mean))
                    v = [state.beta1 * shift for shift in (state.path, _mix(state, toward), _mix(state, away))]
                    moves = np.array([toward, away, *v])
                    here, *there = objective(np.vstack([state.mean, state.mean + moves])).tolist()
                    rows += [
                        (_name(objective), state.generation, seed, label, here, value, bool(move.any()))
                        for label, value, move in zip(SHIFTS, there, moves, strict=True)
                    ]
    columns = ["function", "generation", "seed", "shift", "here", "there", "moved"]
    table = pd.DataFrame(rows, columns=columns)
    table.insert(4, "change", _change(table["there"], table["here"]))
    return table.drop(columns=["here", "there"])


def signs(table: pd.DataFrame) -> pd.DataFrame:
    """Test with the sign test whether each shift of `shifts` lowers the objective, or raises it.

    Populations whose objective does not change speak for neither. lower is the percentage of populations where it fell,
    with the ends of its exact 95 % interval, low and high; p is two-sided, and the verdict "descends", "climbs" or
    "undecided" at `FALSE_ALARMS` over the whole table.
    """
    rows = []
    for key, group in table[table["moved"]].groupby(["function", "generation", "shift"], sort=False):
        falls, rises, count = int((group["change"] < 0).sum()), int((group["change"] > 0).sum()), len(group)
        p = float(stats.binomtest(falls, falls + rises).pvalue) if falls + rises else 1.0
        ends = stats.binomtest(falls, count).proportion_ci()
        direction = "descends" if falls > rises else "climbs"
        shares = [100 * share for share in (falls / count, ends.low, ends.high)]
        rows.append((*key, count, *shares, 100 * group["change"].median(), p, direction))
    names = ["function", "generation", "shift", "populations"]
    names += ["lower", "low", "high", "median change", "p", "verdict"]
    result = pd.DataFrame(rows, columns=names)
    decided = result["p"] < FALSE_ALARMS / max(len(result), 1)
    return result.assign(verdict=result["verdict"].where(decided, "undecided"))
