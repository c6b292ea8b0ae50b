"""Searches that are scored by their best value after some evaluations: on test functions, and on an RBM."""

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from leamvd._support.compile import Array
from leamvd.campaign.jobs import Job, Result, Step
from leamvd.data import functions
from leamvd.data.functions import Objective
from leamvd.data.images import Dataset, Images
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.base import Optimizer, as_told, tell_again
from leamvd.optimizers.methods import optimizer, packages
from leamvd.optimizers.reading import Reading

AnyOptimizer = TypeVar("AnyOptimizer", bound=Optimizer)

WIDTH = 10.0
"""What the weights of a network are multiplied by for the size of a function's variables: sigma0 = 0.1 becomes 1."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Search(Job):
    """A search that goes on until its evaluations are spent or it ends by itself."""

    trainer: str  # of `leamvd.optimizers.methods.METHODS`
    training: Training  # of which `sigma0`, `x0` and `n_elite` act
    reading: Reading  # of which all acts except `n_gen`
    seed: int  # of the problem and of the search
    marks: tuple[int, ...]  # evaluations after which the best value is noted, ascending; the last ones are the budget

    @abstractmethod
    def start(self, data: Any) -> tuple[Optimizer, Objective]:
        """Return the optimizer before its first generation, and the objective."""

    @property
    def budget(self) -> int:
        """Evaluations at most."""
        return self.marks[-1]

    @property
    def iterations(self) -> int:
        """Evaluations."""
        return self.budget

    @property
    def packages(self) -> tuple[str, ...]:
        """Those of the optimizer."""
        return packages(self.trainer)

    def _optimizer(self, scale: float, **start: Any) -> Optimizer:
        own: dict[str, Any] = (
            {"n_elite": self.training.n_elite, "reading": self.reading} if self.trainer == "lea-mvd" else {}
        )
        return optimizer(
            self.trainer, **start, sigma0=scale * self.training.sigma0, population_size=self.reading.population_size,
            n_gen=self.budget, seed=self.seed, **own,
        )  # fmt: skip

    def steps(self, data: Any, _: Sequence[Result], done: int, arrays: Mapping[str, Array]) -> Iterator[Step]:
        """Yield the generations; a mark's row has the best value of the last one that ends within it."""
        opt, objective = self.start(data)
        told = tell_again(opt, arrays) if done else []
        marks = [mark for mark in self.marks if mark >= opt.nfev]
        evaluations, best = (opt.nfev, opt.best_fun) if told else (0, math.nan)
        while True:
            over = bool(opt.stop()) or opt.nfev + opt.n_candidates > self.budget
            if not over:
                X = opt.ask()
                told.append(objective(X))
                opt.tell(X, told[-1])
            rows = []
            while marks and (over or opt.nfev > marks[0]):
                rows.append({"mark": marks.pop(0), "evaluations": evaluations, "best": best})
            evaluations, best = opt.nfev, opt.best_fun
            yield Step(self.iterations if over else opt.nfev, rows, {} if over else as_told(told), over)
            if over:
                return


@dataclasses.dataclass(frozen=True, kw_only=True)
class FunctionSearch(_Search):
    """A search on a test function, see `leamvd.data.functions.problem`; initialization (A) draws in [-5, 5]^n."""

    function: str  # see `leamvd.data.functions.problem`
    n_var: int

    @property
    def name(self) -> str:
        """For a reader."""
        return f"{self.trainer}-{self.function}-{self.n_var}-seed{self.seed}"

    @property
    def packages(self) -> tuple[str, ...]:
        """Those of the optimizer, and of the suite of functions."""
        return super().packages + ("coco-experiment",) * self.function.startswith(functions.BBOB)

    def start(self, data: Any) -> tuple[Optimizer, Objective]:
        """Return the optimizer before its first generation, and the function."""
        del data
        x0, objective = functions.problem(self.function, self.n_var, self.seed)
        if self.training.x0 == "none":
            return self._optimizer(WIDTH, n_var=self.n_var, bounds=(-functions.LIMIT, functions.LIMIT)), objective
        return self._optimizer(WIDTH, x0=x0), objective


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerSearch(_Search):
    """A search for the parameters of a first layer, from what one epoch of contrastive divergence reaches."""

    images: Images  # what the layer sees
    n_hidden: int

    @property
    def name(self) -> str:
        """For a reader."""
        return f"{self.trainer}-layer1-seed{self.seed}"

    def start(self, data: Dataset) -> tuple[Optimizer, Objective]:
        """Return the optimizer before its first generation, and the mean-field error of a layer."""
        x0 = ContrastiveDivergence(data.train, self.n_hidden, seed=layer_seed(self.seed, 1)).epoch().flat()
        return self._optimizer(1.0, x0=x0), ReconstructionObjective(data.train, self.n_hidden)


def generations(opt: AnyOptimizer, objective: Objective, budget: float = math.inf) -> Iterator[AnyOptimizer]:
    """Yield an optimizer after each of its generations, until it stops or the next one would exceed the budget."""
    while not opt.stop() and opt.nfev + opt.n_candidates <= budget:
        X = opt.ask()
        opt.tell(X, objective(X))
        yield opt
