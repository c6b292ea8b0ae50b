"""What theory says of a search, from a few pairs around its start solution, before the search is run."""

import dataclasses
import io
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from scipy import optimize

from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.campaign.jobs import Job, Result, Step, unpacked
from leamvd.campaign.tables import read_table
from leamvd.data.images import Dataset
from leamvd.networks.dbn import Training, layer_input, layer_seed
from leamvd.networks.objective import ReconstructionObjective, error_and_gradient
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers.local_model import LocalModel, measure
from leamvd.optimizers.reading import Reading

REFERENCE = 0.01
"""Step size whose slope and curvature predict searches."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasurePairs(Job):
    """Slope and curvature of a layer's error around what the searches start from, at several step sizes."""

    start: Job  # trains the start solution, one epoch of contrastive divergence; it needs the layers below
    seed: int  # of the stack
    features: Literal["probabilities", "bits"]  # what layers hand on
    sigmas: tuple[float, ...]
    n_pairs: int

    @property
    def layer(self) -> int:
        """From 1."""
        return len(self.start.needs) + 1

    @property
    def name(self) -> str:
        """For a reader."""
        return f"pairs-layer{self.layer}-seed{self.seed}"

    @property
    def iterations(self) -> int:
        """Step sizes."""
        return len(self.sigmas)

    @property
    def needs(self) -> tuple[Job, ...]:
        """The start solution, and the layers below."""
        return (self.start, *self.start.needs)

    def steps(self, data: Dataset, needs: Sequence[Result], done: int, _arrays: Any) -> Iterator[Step]:
        """Yield a row for each step size; the array is the start solution."""
        V, x0, n_hidden = self.layer_given(data, needs)
        objective, seed = ReconstructionObjective(V, n_hidden), layer_seed(self.seed, self.layer)
        for number, sigma in enumerate(self.sigmas[done:], start=done + 1):
            model = measure(objective, x0, sigma=sigma, n_pairs=self.n_pairs, seed=seed)
            row = {"iteration": number, **model._asdict(), "n_var": len(x0), "n_images": len(V)}
            yield Step(number, [row], {"x0": x0}, number == len(self.sigmas))

    def layer_given(self, data: Dataset, needs: Sequence[Result]) -> tuple[Array, Array, int]:
        """Return what the layer sees, its start solution, and its hidden units."""
        start, *stack = (RBMParameters(**unpacked(need.arrays)) for need in needs)
        V = layer_input(stack, data.train, features=self.features, seed=self.seed)
        return V, start.flat(), len(start.c)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchSurrogate(Job):
    """LEA-MVD on f(x0) + |g| y_1 + tr(H) |y|^2 / (2 n), y the step from x0: what slope and curvature alone predict.

    The search has the start solution and the seed of the layer's.
    """

    pairs: MeasurePairs
    training: Training
    reading: Reading

    @property
    def name(self) -> str:
        """For a reader."""
        return f"surrogate-layer{self.pairs.layer}-seed{self.pairs.seed}"

    @property
    def iterations(self) -> int:
        """Generations."""
        return self.reading.n_gen

    @property
    def needs(self) -> tuple[Job, ...]:
        """The pairs."""
        return (self.pairs,)

    def steps(self, _data: Any, needs: Sequence[Result], done: int, _arrays: Any) -> Iterator[Step]:
        """Yield the best value of each generation; a search that goes on begins anew, which is quick."""
        model, x0 = reference(needs[0]), unpacked(needs[0].arrays)["x0"]
        direction = np.random.default_rng(self.pairs.seed).standard_normal(len(x0)).astype(x0.dtype)
        direction /= np.linalg.norm(direction)

        def objective(X: Array) -> Array:
            Y = X - x0
            quadratic = np.einsum("ij,ij->i", Y, Y, dtype=np.float64) * (model.curvature / (2 * len(x0)))
            with one_blas_thread():  # several would round otherwise
                along = Y @ direction
            return np.asarray(model.value + model.slope * along + quadratic, np.float64)

        seed = layer_seed(self.pairs.seed, self.pairs.layer)
        opt = self.training.optimizer("lea-mvd", x0, reading=self.reading, seed=seed)
        for iteration in range(1, self.iterations + 1):  # the whole budget is spent, whatever `stop` says
            X = opt.ask()
            opt.tell(X, objective(X))
            if iteration > done:
                rows = [{"iteration": 0, "best": model.value}] if iteration == 1 else []
                rows.append({"iteration": iteration, "best": opt.best_fun})
                yield Step(iteration, rows, {}, iteration == self.iterations)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientStep(Job):
    """One step of steepest descent from what the searches start from: a gradient, and a line search along it.

    The gradient costs about as much as three evaluations.
    """

    pairs: MeasurePairs  # around the same start solution

    @property
    def name(self) -> str:
        """For a reader."""
        return f"gradient-layer{self.pairs.layer}-seed{self.pairs.seed}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """What the pairs need."""
        return self.pairs.needs

    def steps(self, data: Dataset, needs: Sequence[Result], *_: Any) -> Iterator[Step]:
        """Yield the error before and after the step, and the evaluations that its length took."""
        V, x0, n_hidden = self.pairs.layer_given(data, needs)
        objective = ReconstructionObjective(V, n_hidden)
        with one_blas_thread():
            value, gradient = error_and_gradient(x0, V, n_hidden)
            length = value / float(gradient @ gradient)  # would end at zero if the error were linear
        found = optimize.minimize_scalar(
            lambda t: objective((x0 - t * gradient)[None])[0], bracket=(0.0, length), options={"maxiter": 10}
        )
        yield Step(1, [{"iteration": 1, "first": value, "best": found.fun, "nfev": found.nfev}], {}, True)


def reference(pairs: Result) -> LocalModel:
    """Return slope and curvature at the `REFERENCE` step size, or at the one that is nearest to it."""
    rows = read_table(io.BytesIO(pairs.rows))
    nearest = rows.loc[(np.log(rows["sigma"]) - np.log(REFERENCE)).abs().idxmin()]
    return LocalModel(**{name: nearest[name] for name in LocalModel._fields})
