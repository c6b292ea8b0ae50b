"""The one numba decorator: every compiler flag of the library is decided here."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

_F = TypeVar("_F", bound=Callable[..., object])

# What kernels take: real arrays of either precision, row numbers, and the random streams' 64-bit words.
Floats = NDArray[np.floating]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


def kernel(
    *, parallel: bool = False, reassociate: bool = False, contract: bool = False, inline: bool = False
) -> Callable[[_F], _F]:
    """Compile a function in nopython mode, cached on disk and free of the interpreter lock.

    Arithmetic is IEEE by default, so a formula gives the same bits wherever it runs. ``reassociate`` lets the compiler
    split one sum over several vector lanes and contract products into it; the order is then fixed by the length of the
    sum alone, so callers keep that length fixed (see `leamvd.selection.TILE`) and thread counts do not change a bit.

    Parameters
    ----------
    parallel : bool
        Run `numba.prange` loops on all of numba's threads.
    reassociate : bool
        Allow the order of a sum to change; never set where not-a-number must survive or where bits must agree between
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
    decorator = numba.njit(
        cache=True, nogil=True, error_model="numpy", parallel=parallel, fastmath=flags, forceinline=inline
    )
    return cast("Callable[[_F], _F]", decorator)


def drop_stale_caches(package: Path) -> None:
    """Delete compiled kernels that are older than the newest source file of a package.

    Numba compiles a cached kernel anew when its own file changes, but not when a kernel that it calls does.
    """
    newest = max(source.stat().st_mtime for source in package.rglob("*.py"))
    for index in package.rglob("*.nbi"):
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:  # another process was quicker, or the folder is not ours to clean
            continue


drop_stale_caches(Path(__file__).parent)
