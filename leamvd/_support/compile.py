"""The one numba decorator: every compiler flag of the library is decided here."""

import functools
import glob
import hashlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import config, event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numpy.typing import NDArray

_F = TypeVar("_F", bound=Callable[..., object])

# Arrays of any kind; and what kernels take: real arrays of either precision, row numbers, the random streams' words.
Array = NDArray[Any]
Floats = NDArray[np.floating]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


def kernel(
    *, parallel: bool = False, reassociate: bool = False, contract: bool = False, inline: bool = False
) -> Callable[[_F], _F]:
    """Compile a function in nopython mode, cached on disk and free of the interpreter lock.

    Arithmetic is IEEE by default, so a formula gives the same bits wherever it runs. ``reassociate`` lets the compiler
    split one sum over several vector lanes and contract products into it; the order is then fixed by the length of the
    sum alone, so callers keep that length fixed (see `leamvd.optimizers.random_streams.TILE`), and thread counts do not
    change a bit.

    Parameters
    ----------
    parallel : bool
        Run `numba.prange` loops on all of numba's threads.
    reassociate : bool
        Allow the order of a sum to change; never set where NaN must survive or where bits must agree between
        processors.
    contract : bool
        Let a product and a sum become one instruction, rounded once, on processors that have it.
    inline : bool
        Put the code into its callers whatever its length, so that their loops can become vector code.

    Returns
    -------
    Callable
        A decorator.

    Notes
    -----
    Run with ``NUMBA_DISABLE_JIT=1`` to step through, or to measure the coverage of, the same code uncompiled.
    """
    flags = {"reassoc", "contract", "nsz"} if reassociate else {"contract"} if contract else False
    compiled = numba.njit(nogil=True, error_model="numpy", parallel=parallel, fastmath=flags, forceinline=inline)

    def decorator(function: _F) -> _F:
        dispatcher = compiled(function)
        if not config.DISABLE_JIT:  # type: ignore[attr-defined]
            _keep(dispatcher)
        return cast("_F", dispatcher)

    return decorator


@functools.cache
def _sources() -> str:
    """Return a digest of every source file that holds or calls kernels: what any compiled kernel depends on."""
    package = Path(__file__).parent.parent
    texts = (path.read_bytes() for path in sorted(package.rglob("*.py")))
    digest = hashlib.sha256(b"\0".join(text for text in texts if b"_support.compile" in text))
    return digest.hexdigest()[:16]


class _Cache(FunctionCache):
    """Numba's cache of one function, in files that are named after the sources of all kernels.

    Numba itself compiles a function anew when its own file changes, but not when a kernel that it calls does.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._base = self._impl.filename_base
        name = f"{self._base}-{_sources()}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, _sources())  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel, and delete what other versions of the sources have left of it."""
        for path in Path(self._cache_path).glob(f"{glob.escape(self._base)}-*.nb[ic]"):
            if not path.name.startswith(f"{self._base}-{_sources()}"):
                path.unlink(missing_ok=True)
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _keep(dispatcher: Any) -> None:
    """Let compiled code be stored on disk; where nothing can be written, warn once and do without."""
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
    except (RuntimeError, OSError):  # numba finds no folder that it can write to
        _warn_of_no_cache()


@functools.cache
def _warn_of_no_cache() -> None:
    warnings.warn(
        f"compiled kernels cannot be stored: neither {Path(__file__).parent.parent} nor the user's cache folder can be "
        "written to, so every process compiles them anew, which takes up to a minute; "
        "set NUMBA_CACHE_DIR to a folder that can be written to",
        RuntimeWarning,
        stacklevel=2,
    )


class _Announcement(event.Listener):
    """Say on a terminal why the first call takes long."""

    def on_start(self, happening: event.Event) -> None:
        dispatcher = happening.data["dispatcher"]
        if dispatcher.py_func.__module__.startswith("leamvd.") and sys.stderr.isatty():
            _announce()

    def on_end(self, happening: event.Event) -> None:
        pass


@functools.cache
def _announce() -> None:
    print("leamvd: compiling for this processor; this takes up to a minute, once", file=sys.stderr, flush=True)


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]
