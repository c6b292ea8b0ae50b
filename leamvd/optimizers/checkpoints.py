"""A search in a file: the values that it was told.

Told again, they bring an optimizer where it was, to the bit.
"""

import functools
import json
import os
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_name

from leamvd._support import checks, sources
from leamvd._support.compile import Array, Floats
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.reading import Reading

# limits, what follows from the values; a reading is taken apart
_OTHERS = ("n_gen", "sigma_min", "nfev", "n_nan", "n_inf", "reading")
# two values of one point differ by less, relative to the largest one of the generation
_SAME = 1e-6


class Checkpoint:
    """The file of one search in NumPy's format .npz, without pickles.

    It is replaced whole, or not at all.
    """

    def __init__(
        self, path: str | os.PathLike[str], fun: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ValueError(f"checkpoint must be the name of a file, got {checks.shown(path)}")
        self._path = Path(os.path.realpath(path))  # a link stays one
        if self._path.is_dir():
            raise ValueError(f"checkpoint must be the name of a file, got a folder: {str(path)!r}")
        named: Any = fun if hasattr(fun, "__qualname__") else type(fun)
        self._called = {
            "fun": f"{named.__module__}.{named.__qualname__}",
            "args": f"({', '.join(map(_text, args))})",
        }
        # of the search in the file, "seed" and "sigma0" among them
        self.arguments: dict[str, Any] = {}
        self._made_by: dict[str, str] = {}
        self._measured = 0  # evaluations before the first generation
        # of each generation, a checksum of its candidates, and their values
        self.told: list[tuple[int, Array]] = []
        if not (self._path.parent.is_dir() and os.access(self._path.parent, os.W_OK)):
            raise OSError(
                f"checkpoint={str(path)!r} must lie in a folder that is there and can be written"
            )
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                header = json.loads(file["header"].item())
                values = np.split(file["F"], np.cumsum(file["counts"]))
                self.told = list(zip(file["candidates"].tolist(), values[:-1], strict=True))
            self.arguments = header["arguments"]
            self._made_by = header["made_by"]
            self._measured = header["measured"]
        except Exception as error:
            raise ValueError(
                f"checkpoint={str(path)!r} cannot be read as one of this version ({error}): name"
                " another file, or delete this one"
            ) from error

    def begin(
        self,
        opt: Optimizer,
        tell: Callable[[Array], None],
        evaluate: Callable[[Any], Array],
        *,
        whole: bool,
    ) -> None:
        """Bring an optimizer, which has begun, to where the search is, by `tell`; a ValueError
        where it is another's.

        Values of the last generation are compared with what `evaluate` returns now: of `whole`
        generations, or else of the two points of the lowest and of the highest value.
        """
        arguments = _arguments(opt) | self._called
        changed = {}
        for name, value in arguments.items():
            stored = self.arguments.get(name, value)
            if stored != value:
                changed[name] = f"{name}={stored}, got {value}"
        if "generation" in changed:
            raise ValueError(
                f"checkpoint={str(self._path)!r} is of a search that began with"
                f" {changed['generation']}: give an optimizer that is where that one was, or name"
                " another file"
            )
        if changed:
            what = ", ".join(changed.values())
            raise ValueError(
                f"checkpoint={str(self._path)!r} is of a search with {what}: name another file"
            )
        if self.told:
            opt.nfev = self._measured
        self._measured = opt.nfev
        self.arguments = arguments
        before = self._made_by
        self._made_by = _made_by(opt)
        for number, (candidates, F) in enumerate(self.told, start=1):
            if checksum(opt.ask()) != candidates:
                changes = []
                for name, now in sorted(self._made_by.items() - before.items()):
                    changes.append(f"{name} {before.get(name)} became {now}")
                why = ", ".join(changes) or "with the same versions, code and processor"
                file = repr(str(self._path))
                best = f"np.load({file})['x'] of value {np.load(self._path)['fun']}"
                raise ValueError(
                    f"checkpoint={file} cannot go on, for generation {opt.generation + 1} has other"
                    f" candidates here ({why}): name another file, or take {best}"
                )
            if number == len(self.told):
                self._compare(opt, F, evaluate, whole=whole)
            tell(F)

    def _compare(
        self, opt: Optimizer, F: Array, evaluate: Callable[[Any], Array], *, whole: bool
    ) -> None:
        """Refuse a function that has other values than the file, unless it has others each time,
        which is warned of.
        """
        finite = np.flatnonzero(np.isfinite(F))
        if not finite.size:
            return
        points = opt.ask()
        told = F
        near = _SAME * np.abs(F[finite]).max()
        if not whole:
            ends = np.unique(finite[[F[finite].argmin(), F[finite].argmax()]])
            points = points[ends]
            told = F[ends]
        now = evaluate(points)
        close = np.isclose(now, told, rtol=0, atol=near)
        others = np.flatnonzero(np.isfinite(told) & ~close)
        if not others.size:
            return
        i = int(others[0])
        again = evaluate(points)
        same = np.isclose(again, now, rtol=0, atol=near, equal_nan=True)
        where = (
            f"of the same point of generation {opt.generation + 1}, where {str(self._path)!r} has"
            f" {told[i]}"
        )
        if same[others].all():
            raise ValueError(
                f"fun must be that of the checkpoint, got {now[i]} {where}: name another file"
            )
        checks.warn(
            f"fun has noise: it returns {now[i]} and {again[i]} {where}; the search goes on with"
            " the file's"
        )

    def write(self, opt: Optimizer) -> None:
        """Store what was told, with the best point and its value, or leave the
        earlier file there.
        """
        header = {
            "arguments": self.arguments,
            "measured": self._measured,
            "made_by": self._made_by,
        }
        candidates, values = zip(*self.told, strict=True)
        known: dict[str, Any] = {
            "header": json.dumps(header),
            "x": opt.result.x,
            "fun": opt.best_fun,
            "candidates": candidates,
            "F": np.concatenate(values),
            "counts": [*map(len, values)],
        }
        temporary = self._path.with_name(f".{self._path.name}.partial")
        try:
            with temporary.open("wb") as file:
                np.savez(file, **known)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)


def _arguments(opt: Optimizer) -> dict[str, Any]:
    """Return what a search depends on, except its limits, as text that other values do not have."""
    bounds = f"{_text(opt._low)} to {_text(opt._high)}" if opt._low.size else "None"
    known: dict[str, Any] = {
        "method": type(opt).__name__,
        "x0": _text(opt._x0),
        "bounds": bounds,
        "x0_in_population": str(opt._x0_in_population),
        "seed": opt.seed,
        "sigma0": opt.sigma0,
    }
    others = vars(opt).copy()
    reading = others.get("reading")
    if isinstance(reading, Reading):
        others = vars(reading) | others
    for name, value in others.items():
        if name[0] != "_" and name not in _OTHERS:
            known.setdefault(name, str(value))
    return known


def _text(value: Any) -> str:
    """Return text that another number, text or array does not have; of what else there is, the
    type.
    """
    if type(value) is np.ndarray and not value.dtype.hasobject:
        start = checks.shown(value.flat[:3].tolist())
        return f"{value.dtype} {value.shape} {start} {zlib.crc32(value.tobytes()):x}"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and len(value) >= 80:
        return f"{checks.shown(value)} {zlib.crc32(repr(value).encode()):x}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str | int | float | complex | None):
        return repr(value)
    return type(value).__qualname__


def checksum(X: Floats) -> int:
    """Return a checksum of at most 4,096 columns of a generation: of 10^6 it would take a quarter
    of LEA-MVD's time.
    """
    # another constant moves nearly all entries; so does another rounding, by the sums that make the
    # next generation
    return zlib.crc32(np.asarray(X)[:, :: -(-X.shape[1] // 4096)].tobytes())


def _made_by(opt: Optimizer) -> dict[str, str]:
    """Return the versions, the code and the processor that draw an optimizer's candidates."""
    packages = ["leamvd", "numpy", "scipy", "numba"]
    if isinstance(opt, CMAES):
        packages.append("cma")
    made_by = {name: import_module(name).__version__ for name in packages}
    made_by["code"] = _code()
    made_by["processor"] = get_host_cpu_name()
    return made_by


@functools.cache
def _code() -> str:
    """Return a digest of the sources that draw candidates."""
    texts = sources.read(Path(__file__).parents[1])
    trees = sources.with_imports(["leamvd/optimizers/methods.py"], texts)
    return sources.digest(trees)[:8]
