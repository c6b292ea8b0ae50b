"""A search in a file: the values that it was told. Told again, they bring an optimizer where it was, to the bit."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from leamvd._support.compile import Array
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.reading import Reading

_OTHERS = ("n_gen", "sigma_min", "nfev", "n_nan", "n_inf", "best_fun")  # limits, and what follows from the values


class Checkpoint:
    """The file of one search in NumPy's format .npz, without pickles. It is replaced whole, or not at all."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(os.path.realpath(path))  # a link stays one
        self.arguments: dict[str, Any] = {}  # of the search in the file, "seed" and "sigma0" among them
        self.measured = 0  # evaluations before the first generation
        self.told: list[Array] = []  # the values of each generation
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                header, counts = json.loads(file["header"].item()), file["counts"]
                self.arguments, self.measured = header["arguments"], header["measured"]
                self.told = np.split(file["F"], np.cumsum(counts))[:-1]
            self.arguments["seed"], self.arguments["sigma0"]
        except Exception as error:
            raise ValueError(
                f"checkpoint={str(path)!r} cannot be read as one ({error}): name another file, or delete this one"
            ) from error

    def begin(self, opt: Optimizer) -> list[Array]:
        """Return the values that the optimizer, which has begun, is to be told; a ValueError where it is another's."""
        arguments = _arguments(opt)
        if changed := [name for name in arguments if arguments[name] != self.arguments.get(name, arguments[name])]:
            what = ", ".join(f"{name}={self.arguments[name]}, got {arguments[name]}" for name in changed)
            raise ValueError(f"checkpoint={str(self._path)!r} is of a search with {what}: name another file")
        opt.nfev = self.measured = self.measured if self.told else opt.nfev
        self.arguments = arguments
        return self.told

    def write(self) -> None:
        """Store the values that have been told, or leave the earlier file there."""
        header = json.dumps({"arguments": self.arguments, "measured": self.measured})
        F, counts = np.concatenate(self.told), np.array([len(F) for F in self.told])
        temporary = self._path.with_name(f".{self._path.name}.partial")
        try:
            with temporary.open("wb") as file:
                np.savez(file, header=np.array(header), F=F, counts=counts)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)


def _arguments(opt: Optimizer) -> dict[str, Any]:
    """Return what a search depends on, except its limits; of arrays a digest."""
    found = {name: value for name, value in vars(opt).items() if name[0] != "_" and name not in _OTHERS}
    if isinstance(reading := found.pop("reading", None), Reading):
        found |= {name: value for name, value in dataclasses.asdict(reading).items() if name not in ("n_gen", *found)}
    start = hashlib.sha256(b"".join(part.tobytes() for part in (opt.ask(), opt._low, opt._high)))
    known = {"method": type(opt).__name__} | {name: str(value) for name, value in found.items()}
    return known | {"seed": opt.seed, "sigma0": opt.sigma0, "first candidates and bounds": start.hexdigest()[:16]}
