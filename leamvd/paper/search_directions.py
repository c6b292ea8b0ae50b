"""LEA-MVD taken apart, generation by generation: what the section on the two directions measures."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from leamvd._support import checks
from leamvd.optimizers.directions import RATE
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.state import State

FALSE_ALARMS = 0.01
"""Rate of false alarms of all tests in one table together (Bonferroni)."""


def sphere(X: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of x_i^2 of every row."""
    return np.asarray((X**2).sum(axis=-1))


def ellipsoid(X: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of 100^((i - 1)/(n - 1)) x_i^2 of every row: condition number 100."""
    return np.asarray((np.logspace(0, 2, X.shape[-1]) * X**2).sum(axis=-1))


FUNCTIONS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {"sphere": sphere, "ellipsoid": ellipsoid}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What the section on the directions runs: LEA-MVD from a seed in N(0, I), unless it says otherwise.

    Attributes
    ----------
    function : str
        Of `FUNCTIONS`.
    n_var, n_gen, population_size, n_elite, exponent, shift, dtype
        As in `leamvd.LEAMVD` and `leamvd.Reading`.
    seeds : tuple of int
        Of the runs.
    n_populations : int
        On which the sign of a shift is tested.
    start : float
        Standard deviation, around the optimum, of the seed's coordinates where resets are compared.
    """

    function: str = "ellipsoid"
    n_var: int = 50
    n_gen: int = 60
    population_size: int = 24
    n_elite: int = 4
    exponent: float = 1.5
    shift: Literal["toward_best", "printed"] = "toward_best"
    dtype: str = "float64"
    seeds: tuple[int, ...] = tuple(range(10))
    n_populations: int = 200
    start: float = 0.01

    def __post_init__(self) -> None:
        checks.choice("function", self.function, tuple(FUNCTIONS))
        checks.integer("n_populations", self.n_populations, at_least=1)
        checks.real("start", self.start, at_least=0)
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if not self.seeds:
            raise ValueError("seeds must not be empty")

    def run(self, seed: int, *, reset: Any = 1.0, start: float = 1.0) -> Iterator[LEAMVD]:
        """Yield an optimizer after each of its generations; its seed's coordinates are drawn from N(0, start^2)."""
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
        while not opt.stop():
            X = opt.ask()
            opt.tell(X, FUNCTIONS[self.function](X))
            yield opt


PLANS = {"quick": Plan(), "paper": Plan(n_gen=300, seeds=tuple(range(30)), n_populations=2000)}


def plan(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with fields changed; a change to None is none."""
    checks.choice("profile", profile, tuple(PLANS))
    return dataclasses.replace(PLANS[profile], **{name: value for name, value in changes.items() if value is not None})


def _cosine(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
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


def trace(plan: Plan, *, reset: Any = 1.0, start: float = 1.0) -> pd.DataFrame:
    """Run every seed of the plan and record what the directions and the step sizes do.

    Returns
    -------
    DataFrame
        A row for each generation: seed, generation, best, success (a new best), reset (whether line 10 of Algorithm 1
        was reached), stagnation, beta1, beta2, std (norm of sigma over sqrt(n)), path_length, descent_length (norms of
        P and C_ani), hat_path, descent_path (cosines of C_hat and of C_ani with P; C_hat is recovered from two
        generations of C_ani), descent_share (length of C_ani's part of v over that of both parts).
    """
    rows = []
    for seed in plan.seeds:
        before: State | None = None
        for state in map(_state, plan.run(seed, reset=reset, start=start)):
            hat = state.descent - (0 if before is None else (1 - RATE) * before.descent)
            success = before is not None and bool(state.fitness[0] < before.fitness[0])
            stagnation = 0 if before is None or success else before.stagnation + 1
            path, descent = float(np.linalg.norm(state.path)), float(np.linalg.norm(state.descent))
            parts = state.beta2 * path, (1 - state.beta2) * abs(state.descent_mean) * descent
            rows.append(
                (seed, state.generation, state.fitness[0], success, state.stagnation < stagnation, state.stagnation,
                 state.beta1, state.beta2, state.std_norm / np.sqrt(plan.n_var), path, descent,
                 _cosine(hat, state.path), _cosine(state.descent, state.path),
                 parts[1] / sum(parts) if any(parts) else np.nan)
            )  # fmt: skip
            before = state
    columns = [
        "seed", "generation", "best", "success", "reset", "stagnation", "beta1", "beta2", "std", "path_length",
        "descent_length", "hat_path", "descent_path", "descent_share",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


RESETS: dict[str, Any] = {"1": 1.0, "initial": "initial", "off": "off"}
"""Readings of item R13 that are compared."""


def resets(plan: Plan) -> pd.DataFrame:
    """Run the plan from seeds close to the optimum, once with each of `RESETS`.

    Returns
    -------
    DataFrame
        As `trace`, with a column reading, and `relative`: the best value over that of the first generation.
    """
    frames = [trace(plan, reset=value, start=plan.start).assign(reading=name) for name, value in RESETS.items()]
    table = pd.concat(frames, ignore_index=True)
    first = table.groupby(["reading", "seed"])["best"].transform("first")
    return table.assign(relative=np.where(first > 0, table["best"] / first, 1.0))


class Scene(NamedTuple):
    """One generation, ready to be drawn; coordinates are columns x1, x2, ..."""

    points: pd.DataFrame  # rank, fitness, in_u (drawn for U), projection on C_ani, x.. and its foot on C_ani's line f..
    vectors: pd.DataFrame  # index: mean, P, C_hat, C_ani, toward, away, v descent, v printed
    slices: pd.DataFrame  # direction, distance, change: f along each direction from the mean, relative
    descent_mean: float
    descent_std: float
    beta2: float
    radius: float  # norm of sigma: how long a direction is drawn beside the population
    label: str


SLICES = {"P": "P", "$C_{ani}$, descent": "toward", "$C_{ani}$, printed": "away"}
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
         "v descent": _mix(now, toward), "v printed": _mix(now, away)},
        index=names,
    ).T  # fmt: skip
    unit = C / np.linalg.norm(C) if C.any() else C
    feet = X[0] + np.sum((X - X[0]) * unit, axis=1)[:, None] * unit
    points = pd.DataFrame(np.hstack([X, feet]), columns=names + [name.replace("x", "f") for name in names])
    points.insert(0, "rank", np.arange(1, len(X) + 1))
    points.insert(1, "fitness", now.fitness)
    points.insert(2, "in_u", np.isin(np.arange(len(X)), now.descent_rows))
    points.insert(3, "projection", np.sum((X - X[0]) * C, axis=1))
    radius = float(np.sqrt(np.sum(now.std**2)))
    label = f"{plan.function}, n = {n_var}, generation {now.generation}"
    return Scene(
        points, vectors, _slices(small, now, vectors), now.descent_mean, now.descent_std, now.beta2, radius, label
    )


def _mix(state: State, step: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return v (Eq. 4) for a step along C_ani."""
    return state.beta2 * state.path + (1 - state.beta2) * step


def _slices(plan: Plan, state: State, vectors: pd.DataFrame) -> pd.DataFrame:
    """Return the relative change of the objective along unit vectors, up to one standard deviation (rms) away."""
    f, frames = FUNCTIONS[plan.function], []
    distances = np.linspace(0, float(np.sqrt(np.mean(state.std**2))), 41)
    for label, name in SLICES.items():
        vector = vectors.loc[name].to_numpy(dtype=np.float64)
        length = float(np.linalg.norm(vector))
        X = state.mean + distances[:, None] * (vector / length if length > 0 else vector)
        frames.append(pd.DataFrame({"direction": label, "distance": distances, "change": f(X) / f(state.mean) - 1}))
    return pd.concat(frames, ignore_index=True)


SHIFTS = ("C_ani, descent", "C_ani, printed", "P", "v, descent", "v, printed")
"""What the mean is moved by: the whole step along C_ani in two readings, beta_1 P, and beta_1 v in two readings."""


def shifts(plan: Plan, generations: Sequence[int]) -> pd.DataFrame:
    """Move the mean of many independent populations by each of `SHIFTS`, and see what the objective does.

    Returns
    -------
    DataFrame
        Columns function, generation, seed, shift, change (of the objective, relative to its value at the mean) and
        moved (whether the shift is not zero). Both readings are judged on the same populations.
    """
    rows = []
    for name, f in FUNCTIONS.items():
        own = dataclasses.replace(plan, function=name, n_gen=max(generations))
        for seed in range(plan.n_populations):
            for opt in own.run(seed):
                if opt.generation in generations:
                    state = _state(opt)
                    toward, away = (step * state.descent for step in (abs(state.descent_mean), state.descent_mean))
                    v = [state.beta1 * shift for shift in (state.path, _mix(state, toward), _mix(state, away))]
                    value = float(f(state.mean))
                    rows += [
                        (name, state.generation, seed, label, float(f(state.mean + step)) / value - 1, bool(step.any()))
                        for label, step in zip(SHIFTS, [toward, away, *v], strict=True)
                    ]
    return pd.DataFrame(rows, columns=["function", "generation", "seed", "shift", "change", "moved"])


def signs(table: pd.DataFrame) -> pd.DataFrame:
    """Test with the sign test whether each shift of `shifts` lowers the objective, or raises it.

    Returns
    -------
    DataFrame
        A row for each function, generation and shift that ever moved: populations, lower (percent of them where the
        objective fell), median change (percent), two-sided p, and the verdict "descends", "climbs" or "undecided" at
        `FALSE_ALARMS` over the whole table.
    """
    rows = []
    for key, group in table[table["moved"]].groupby(["function", "generation", "shift"], sort=False):
        lower, count = int((group["change"] < 0).sum()), len(group)
        p = float(stats.binomtest(lower, count).pvalue)
        rows.append((*key, count, 100 * lower / count, 100 * group["change"].median(), p))
    names = ["function", "generation", "shift", "populations", "lower", "median change", "p"]
    result = pd.DataFrame(rows, columns=names)
    decided = result["p"] < FALSE_ALARMS / max(len(result), 1)
    words = np.where(result["lower"] > 50, "descends", "climbs")
    return result.assign(verdict=np.where(decided, words, "undecided"))


# ---- in words


def report_scene(scene: Scene) -> str:
    """Return as Markdown the numbers of one generation."""
    length = np.sqrt((scene.vectors**2).sum(axis=1))
    share = (1 - scene.beta2) * length["toward"], scene.beta2 * length["P"]
    return (
        f"{scene.label}: the projections on $C_{{ani}}$ have mean {scene.descent_mean:.3g} and standard deviation "
        f"{scene.descent_std:.3g}; P is {length['P']:.3g} long, $C_{{ani}}$ {length['C_ani']:.3g}, the step along it "
        f"{length['toward']:.3g}. With $\\beta_2$ = {scene.beta2:.2g} the shift v takes {share[1]:.3g} from P and "
        f"{share[0]:.3g} from $C_{{ani}}$."
    )


def report_directions(trace: pd.DataFrame) -> str:
    """Return as Markdown how orthogonal the directions are to P, and how long C_ani is."""
    hat, cosine, length = trace["hat_path"].abs().max(), trace["descent_path"].abs(), trace["descent_length"]
    last = trace[trace["generation"] == trace["generation"].max()]
    holds = "yes" if hat < 1e-5 else "no"
    return (
        f"- Is $\\hat C_{{ani}}$ orthogonal to P? **{holds}**: the largest cosine in {len(trace)} generations is "
        f"{hat:.1g} in size, rounded to nine decimals.\n"
        f"- Is $C_{{ani}}$, which the shift uses? The cosine with P has a median of {cosine.median():.2g} in size and "
        f"reaches {cosine.max():.2g}.\n"
        f"- Is $C_{{ani}}$ of unit length? It is {length.min():.2g} to {length.max():.2g} long, in the last generation "
        f"{last['descent_length'].median():.2g} in the median."
    )


def report_steps(trace: pd.DataFrame) -> str:
    """Return as Markdown how often the runs succeed, and what that does to beta_1 and beta_2."""
    later = trace[trace["generation"] > 1]
    full = (later["beta2"] == 1).mean()
    return (
        f"{100 * later['success'].mean():.3g} % of the generations found a new best. $\\beta_1$ moved between "
        f"{later['beta1'].min():.3g} and {later['beta1'].max():.3g}. $\\beta_2$ was 1 in {100 * full:.3g} % of the "
        f"generations: $C_{{ani}}$ then has no weight at all. In the median generation its part of v was "
        f"{100 * later['descent_share'].median():.3g} % of the length of both parts, in the mean "
        f"{100 * later['descent_share'].mean():.3g} %. Resets: {int(trace['reset'].sum())}."
    )


def stuck(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each reading of `resets` how many runs never improved on their first best, and where runs ended.

    Returns
    -------
    DataFrame
        Columns reading, runs, resets (of all runs), stuck, and final: the median of the last best over the first.
    """
    rows = []
    for reading, group in table.groupby("reading", sort=False):
        last = group[group["generation"] == group["generation"].max()]["relative"]
        rows.append((reading, len(last), int(group["reset"].sum()), int((last == 1).sum()), float(last.median())))
    return pd.DataFrame(rows, columns=["reading", "runs", "resets", "stuck", "final"])


def report_resets(table: pd.DataFrame) -> str:
    """Return as Markdown what the reset does to the standard deviation and to the search, in each reading."""
    lines = []
    for reading, runs, count, none, final in stuck(table).itertuples(index=False):
        own = table[table["reading"] == reading]
        widened = own["reset"].to_numpy()
        before, after = (own["std"].to_numpy()[np.flatnonzero(widened) - back] for back in (1, 0))
        jump = f", each from a standard deviation of {np.median(before):.2g} to {np.median(after):.2g}" if count else ""
        lines.append(
            f"- reset = {reading}: {count} resets in {runs} runs{jump}; {none} of {runs} runs never improved on their "
            f"start, and the median run ended at {final:.3g} times the value there."
        )
    return "\n".join(lines)


def report_signs(signs: pd.DataFrame) -> str:
    """Return as Markdown what each shift does, generation by generation, over both functions."""
    lines = []
    for shift, group in signs.groupby("shift", sort=False):
        parts = []
        for generation, rows in group.groupby("generation"):
            low, high = rows["lower"].min(), rows["lower"].max()
            span = f"{low:.3g} %" if low == high else f"{low:.3g}-{high:.3g} %"
            parts.append(f"generation {generation} {span} ({' / '.join(rows['verdict'].unique())})")
        name = str(shift).replace("C_ani", "$C_{ani}$")
        lines.append(f"- {name}: lowers the objective in {', '.join(parts)} of the populations.")
    printed = set(signs.loc[signs["shift"] == SHIFTS[1], "verdict"])
    answer = "yes" if printed == {"climbs"} else "undecided" if printed == {"undecided"} else "not always"
    lines.append(f"\nDoes the step along $C_{{ani}}$ climb as printed? **{answer.capitalize()}.**")
    return "\n".join(lines)
