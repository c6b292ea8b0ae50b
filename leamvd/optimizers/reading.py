"""A reading: one way to run what the paper prints, item by item of its ambiguities (R1-R19), whole
or in part (C11).
"""

import dataclasses
from typing import Any, Literal, Self, get_args

from leamvd._support import checks
from leamvd.optimizers.base import DEFAULT_N_GEN


def _item(default: Any, item: str, doc: str) -> Any:
    return dataclasses.field(default=default, metadata={"item": item, "doc": doc})


# named readings
_CHANGES: dict[str, dict[str, Any]] = {
    "default": {},
    "printed": {
        "shift": "printed",
        "projections": "repeated",
        "elites": "reevaluate",
        "limits": "first",
        "x0_in_population": False,
        "perturbation": "column",
    },
    "x0-excluded": {"x0_in_population": False},
    "recommended": {"population_size": 8, "reset": "off", "perturbation": "added"},
}
PRESETS = tuple(_CHANGES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """The choices that turn the paper's text into an algorithm; the default of each is the most
    defensible one.

    A reading is a value: it prints itself, compares equal by value, and is saved with every result.
    The constructor's `population_size` and `n_gen` are used where `leamvd.LEAMVD` is not told
    otherwise. Two fields may be left open, as None: then `complete` says what acts, except in
    `leamvd.minimize`, which knows about bounds and other budgets.

    Attributes
    ----------
    population_size : int
        R2. lambda is 24 in the paragraph on input parameters and 20 in the section before; at least
        2.
    n_gen : int or None
        R3. 30 generations by the stopping criteria, 50 in the experiments. None is 30; in
        `leamvd.minimize` with another budget it is no limit.
    convergence : {"scaled", "unscaled"}
        R1. Stop once norm(sigma) < sigma_min sqrt(n), as the stopping criteria say, or < sigma_min,
        as the listing says (whose loop, entered while the norm is *below* sigma_min, would never
        run).
    sigma_norm : {"euclidean", "spectral"}
        R4. Sigma as a vector of standard deviations, or as a diagonal matrix whose 2-norm is its
        largest element.
    shift : {"toward_best", "printed"}
        R5. Shift by +abs(mu_ani) C_ani, toward the best; or by mu_ani C_ani as printed, which
        points away from it.
    orientation : {"oriented", "free"}
        R6. The sign of C_hat such that the summed projections of U's columns are positive; or as a
        randomly started power method leaves it.
    n_descent_rows : {4, 3}
        R7. abs(ir) = 4 in the text; U is written with three columns.
    first_direction : {"zero", "full"}
        R8. C_ani before the first generation is zero, so that the first average is 0.1 C_hat; or
        the first C_ani is C_hat itself. P starts at zero, and projecting out a zero vector does
        nothing.
    descent_scale : {"literal", "normalized"}
        R9. Project on C_ani as it is; or on, and shift along, C_ani / norm(C_ani).
    step : {"mean", "sampled"}
        R10. Every new individual takes the mean step along C_ani (the equation of v); or draws its
        own from N(step, sigma_ani) (the conclusions).
    projections : {"distinct", "repeated"}
        R11. mu_ani and sigma_ani over k = 2..lambda; or with ix_2 twice, as the list is printed.
    beta1_at_one : {"printed", "mirrored"}
        R12. At beta_1 = 1 exactly a success multiplies by 1.4 and a failure by 0.5, as the branches
        are printed; or by 1.1 and 0.8.
    reset : float or {"initial", "off"}
        R13. The standard deviation after ten generations without a better best: 1 as printed, any
        positive number, the standard deviations of the first population, or no reset at all (of
        beta_1 neither).
    elites : {"keep", "reevaluate"}
        R14. Elites keep their value; or are evaluated again with every generation. On a noisy
        objective their value then changes every time, which counts as a success every time.
    limits : {"first", "clip", "reflect", None}
        R15. The search limits shape a first population that is drawn in them, and nothing else; or
        every individual is clipped to, or reflected into, them. None is "first"; in
        `leamvd.minimize` with bounds it is "clip".
    x0_in_population : bool
        R16. Whether the start solution x0 itself is row 1 of an initial population drawn around it.
    perturbation : {"entry", "column", "off", "added"}
        R17. The perturbation draws for each entry; or for each dimension, one factor for the whole
        column. No ambiguity, but to measure what it does: no perturbation; then standard
        deviations shrink by themselves, and `sigma_min` ends the search far from any minimum. Or
        the same entries get, in place of a factor from U(0.5, 1.5), sigma0 U(-0.5, 0.5) added,
        which does not depend on the origin of the coordinates; without a start solution the first
        population's standard deviation stands for sigma0.
    perturbation_share : float
        R17. The probability that an entry is perturbed, 0.02 in the paper; in (0, 1].
    ties : {"keep", "newest"}
        R18. Lowest value first; equal values keep their order (elites before newcomers), or
        newcomers go first.
    exponent : float
        R19. Exponent of the fractional tournament, at least 0.
    path : {"on", "off"}
        C11, which is no ambiguity but what the claim is about: the path P as in the paper; or zero
        in all generations.
    descent : {"orthogonal", "free", "off"}
        C11. C_hat orthogonal to P, as in the paper; or wherever the columns of U have the largest
        projections; or no step along C_ani.

    Raises
    ------
    ValueError, TypeError
        If a value is not among its options, naming both.
    """

    population_size: int = _item(24, "R2", "individuals in a population")
    n_gen: int | None = _item(None, "R3", "generations")
    convergence: Literal["scaled", "unscaled"] = _item(
        "scaled", "R1", "whether sigma_min is times sqrt(n)"
    )
    sigma_norm: Literal["euclidean", "spectral"] = _item("euclidean", "R4", "norm of sigma")
    shift: Literal["toward_best", "printed"] = _item(
        "toward_best", "R5", "sign of the step along C_ani"
    )
    orientation: Literal["oriented", "free"] = _item("oriented", "R6", "sign of C_hat")
    n_descent_rows: Literal[4, 3] = _item(4, "R7", "columns of U")
    first_direction: Literal["zero", "full"] = _item("zero", "R8", "C_ani of the first generation")
    descent_scale: Literal["literal", "normalized"] = _item("literal", "R9", "length of C_ani")
    step: Literal["mean", "sampled"] = _item("mean", "R10", "step along C_ani")
    projections: Literal["distinct", "repeated"] = _item(
        "distinct", "R11", "rows that are projected"
    )
    beta1_at_one: Literal["printed", "mirrored"] = _item("printed", "R12", "branch at beta_1 = 1")
    reset: float | Literal["initial", "off"] = _item(
        1.0, "R13", "standard deviation after stagnation"
    )
    elites: Literal["keep", "reevaluate"] = _item("keep", "R14", "value of the elites")
    limits: Literal["first", "clip", "reflect", None] = _item(
        None, "R15", "what the search limits do"
    )
    x0_in_population: bool = _item(True, "R16", "whether the start solution x0 is row 1")
    perturbation: Literal["entry", "column", "off", "added"] = _item(
        "entry", "R17", "what the perturbation is"
    )
    perturbation_share: float = _item(0.02, "R17", "entries that are perturbed")
    ties: Literal["keep", "newest"] = _item("keep", "R18", "order of equal values")
    exponent: float = _item(1.5, "R19", "exponent of the fractional tournament")
    path: Literal["on", "off"] = _item("on", "C11", "whether there is a path P")
    descent: Literal["orthogonal", "free", "off"] = _item("orthogonal", "C11", "C_ani next to P")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _checked(field, getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    def complete(self) -> Self:
        """Return the reading with what acts where it leaves `n_gen` or `limits` open: 30
        generations, and "first".
        """
        n_gen = DEFAULT_N_GEN if self.n_gen is None else self.n_gen
        return dataclasses.replace(self, n_gen=n_gen, limits=self.limits or "first")

    @classmethod
    def printed(cls) -> Self:
        """Return the reading that follows the text to the letter wherever the letter can be run at
        all.

        It differs from the default in R5 (the step as printed), R11 (ix_2 projected twice), R14 (X
        evaluated whole), R16 (every row is sampled around the start solution) and R17 (one factor
        for each dimension). It writes R15, so that limits shape the first population alone in
        `leamvd.minimize`, too; of R3 the text prints both numbers.
        """
        return cls(**_CHANGES["printed"])

    @classmethod
    def recommended(cls) -> Self:
        """Return the reading for problems that the paper does not have: the best candidate that
        does not depend on the place of the origin.

        Separable CMA-ES ended lower on 17 of the 21 recorded problems. It differs from the default
        in R2 (a population of 8), R13 (no reset) and R17 (steps that are added). Added steps, of up
        to half of `sigma0`, do not shrink, and bound how near a search comes: take a smaller
        `sigma0` for a nearer end. With as many generations it makes a fifth of the default's
        evaluations: give `n_gen`, or `max_nfev` to `leamvd.minimize`.
        """
        return cls(**_CHANGES["recommended"])

    @classmethod
    def named(cls, name: str, base: Self | None = None) -> Self:
        """Return one of `PRESETS`.

        "x0-excluded" is the default except for R16: the start solution is not in the first
        population. With `base`, it is `base` changed in what the preset changes of the default.
        """
        changes = _CHANGES[checks.choice("reading", name, PRESETS)]
        return dataclasses.replace(base or cls(), **changes)

    def __str__(self) -> str:
        """Return a table: row, field, the value that acts, and a star where the field is not left
        at its default.
        """
        acting = self.complete()
        lines = []
        for item in [*(f"R{i}" for i in range(1, 20)), "C11"]:
            for f in dataclasses.fields(self):
                if f.metadata["item"] == item:
                    star = " " if getattr(self, f.name) == f.default else "*"
                    value = f"{getattr(acting, f.name)!s:<12}{star}"
                    lines.append(f"{item:>3}  {f.name:<19}{value} {f.metadata['doc']}")
        return "\n".join(lines)


def _checked(field: dataclasses.Field[Any], value: Any) -> Any:
    """Return a field's value, checked."""
    name = field.name
    if name == "population_size":
        return checks.count(name, value, at_least=2)
    if name == "n_gen":
        return None if value is None else checks.count(name, value, at_least=1)
    if name == "exponent":
        return checks.real(name, value, at_least=0)
    if name == "perturbation_share":
        return checks.real(name, value, above=0, at_most=1)
    if name == "reset":
        if value in ("initial", "off"):
            return value
        return checks.real("reset, if not 'initial' or 'off',", value, above=0)
    options = (True, False) if field.type is bool else get_args(field.type)
    return checks.choice(name, value, options)
