"""LEA-MVD on a graphics card: the generations of ``leamvd.LEAMVD(..., device="cuda")``.

What the processor decides between two passes over the population (ranks, beta_1 and beta_2, the rows and coefficients
of the descent) a block of threads decides on the card, by the same functions. So nothing crosses the bus: `ask` and
`tell` start one graph of kernels each, and what ends a search is copied behind them, for the host to read later.

Random numbers are the processor's, and the first population is, to the bit. Inner products are summed in another
order, which is fixed: searches with one seed have the same bits, and those of the processor up to rounding.
"""

import functools
import math
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba import float64, int32, int64, uint64

from leamvd._support import checks
from leamvd._support.compile import Array, Floats
from leamvd._support.threads import uninterrupted
from leamvd.optimizers import directions, random_streams, sampling
from leamvd.optimizers.base import Generation, history_row
from leamvd.optimizers.directions import RATE, RESOLUTION, Descent, Products, Vectors
from leamvd.optimizers.lea_mvd import LEAMVD, STAGNATION, adapt
from leamvd.optimizers.random_streams import NORMAL, TILE, UNIFORM
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.state import State

config: Any = numba.config
SIMULATED = bool(config.ENABLE_CUDASIM)  # by Numba, in threads of Python
if not SIMULATED:
    checks.needs("device='cuda'", "cuda", "numba_cuda")
    driver: Any = import_module("cuda.bindings.driver")
cuda: Any = import_module("numba.cuda")

MOST, MOST_ELITES = 32, 8  # individuals, and those that are kept
WARP = 32  # threads that run in step
SPANS = 4  # runs of columns that a block of `scan` sums, one after the other, in their own precision
WRITERS, SCANNERS = 2, 4  # blocks that a multiprocessor is to hold at least: the fastest that were tried on an H200

# Places in `told`, float64, which the host gets after each generation; the first three are those of `adapt`.
BETA1, BETA2, STUCK, BEST, NORM, WIDEST, OVERFLOWN, DESCENT_MEAN, DESCENT_STD, FIRST_NORM = range(10)
START, VALUES, FITNESS = 12, 16, 16 + MOST  # of the power method; values as they were told; best first
# In `ranks`: the rows of X best first, then those of the descent, their ranks, and the generation.
ROWS, RANKS, COUNT = MOST, MOST + 4, MOST + 8
# In `numbers`, of the dtype of X, what the next generation is made of: `Combination`, `Shift`, whether sigma is reset.
PATH_WEIGHT, FRESH, SHIFT_PATH, STEP, RESET, ROW_WEIGHTS = range(6)


@contextmanager
def uncontracted() -> Iterator[None]:
    """Compile what is launched within without fused multiply-adds, for which numba-cuda has no option.

    Nothing may be linked by nvJitLink either, which would make them. Grids of one block are no reason to warn.
    """
    if SIMULATED:
        yield
        return
    nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
    decorators: Any = import_module("numba.cuda.decorators")
    before = nvvm.compile_ir, decorators._have_nvjitlink, config.CUDA_LOW_OCCUPANCY_WARNINGS
    nvvm.compile_ir = lambda ir, **options: before[0](ir, **(options | {"fma": 0}))
    decorators._have_nvjitlink, config.CUDA_LOW_OCCUPANCY_WARNINGS = (lambda: False), 0
    try:
        yield
    finally:
        nvvm.compile_ir, decorators._have_nvjitlink, config.CUDA_LOW_OCCUPANCY_WARNINGS = before


@functools.cache
def kernels(dtype: str, reading: Reading, size: int, n_elite: int, uniform: bool, threads: int, summers: int) -> Any:
    """Return the kernels of one reading, `size` individuals and blocks of so many threads; `uniform` is (A)."""
    plain, writing, scanning = (
        {} if SIMULATED else {"lto": False} | bounds
        for bounds in ({}, {"launch_bounds": (threads, WRITERS)}, {"launch_bounds": (threads, SCANNERS)})
    )
    real, single, m = np.dtype(dtype).type, dtype == "float32", reading.n_descent_rows
    old, zero, resolution = real(1 - RATE), real(0), RESOLUTION[np.dtype(dtype)]
    blocks = TILE // 4 if single else TILE // 2  # counter blocks a tile
    each, columns, warps, span = blocks // threads, TILE // threads, threads // WARP, 2 * threads
    of_warp = -(-(size - 1) // warps)  # individuals whose inner products a warp sums
    listed, n_own, n_scratch, n_packed = 1 + of_warp * warps, 6 * of_warp + 6, 3 * m + 3, m + 3 + size
    # the reading, as constants: a kernel has no trace of what is not chosen
    toward_best, oriented = reading.shift == "toward_best", reading.orientation == "oriented"  # R5, R6
    full, normalized = reading.first_direction == "full", reading.descent_scale == "normalized"  # R8, R9
    repeated, mirrored = reading.projections == "repeated", reading.beta1_at_one == "mirrored"  # R11, R12
    resets, to_first = reading.reset != "off", reading.reset == "initial"  # R13
    level = 0.0 if isinstance(reading.reset, str) else float(real(reading.reset))
    reevaluated, limits = reading.elites == "reevaluate", sampling.LIMITS.index(str(reading.limits))  # R14, R15
    with_x0, newest = reading.x0_in_population, reading.ties == "newest"  # R16, R18
    perturbs, by_column, adds = (reading.perturbation == name for name in ("off", "column", "added"))  # R17
    perturbs, by_std = not perturbs, adds and uniform
    has_path, moves, orthogonal = reading.path == "on", reading.descent != "off", reading.descent != "free"  # C11

    @cuda.jit(device=True)
    def draw(seed, generation, row, tile, t, width, z):
        """Draw the numbers of the columns t, t + threads, ... below `width` of a tile."""
        first = uniform and generation == 1
        for i in range(each):
            if i * threads + t >= width:
                return
            block = tile * blocks + i * threads + t
            w0, w1, w2, w3 = random_streams.words(seed, UNIFORM if first else NORMAL, generation, row, block)
            if first and single:
                z[i], z[each + i] = random_streams.uniform24(w0), random_streams.uniform24(w1)
                z[2 * each + i], z[3 * each + i] = random_streams.uniform24(w2), random_streams.uniform24(w3)
            elif first:
                z[i], z[each + i] = random_streams.uniform64(w0, w1), random_streams.uniform64(w2, w3)
            elif single:
                z[i], z[each + i] = random_streams.single_pair(np.uint32(w0), np.uint32(w1))
                z[2 * each + i], z[3 * each + i] = random_streams.single_pair(np.uint32(w2), np.uint32(w3))
            else:
                z[i], z[each + i] = random_streams.normal_pair(w0, w1, w2, w3)

    @cuda.jit(device=True)
    def perturb(X, wide, first, rows, start, width, seed, generation, unit, sigma0, gaps):
        """As `sampling.perturb`, in one tile of the rows first, first + 1, ...: a warp a row, a thread a hit."""
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        row, column, busy, block = first + warp, np.int32(-1), warp < rows, start + lane // 2
        drawn = size if by_column else row
        while cuda.syncthreads_or(np.int32(busy)):
            w0, w1, w2, w3 = random_streams.words(seed, random_streams.PERTURBATION, generation, drawn, block)
            gap, factor = sampling.gap_and_factor(w0, w1) if lane % 2 == 0 else sampling.gap_and_factor(w2, w3)
            gaps[warp, lane] = np.int32(1) + np.int32(gap)
            cuda.syncthreads()
            hit = column
            for i in range(WARP):
                column = np.int32(column + gaps[warp, i])
                hit = column if i == lane else hit
            if busy and hit < width:
                at, times = np.uint64(row) * wide + np.uint64(start + hit), np.float64(factor)
                if adds:
                    X[at] += (unit[start + hit] if by_std else sigma0) * (times - 1)
                else:
                    X[at] *= times
            busy = busy and column < width
            block += WARP // 2

    @cuda.jit(**writing)
    def initialize(X, n, center, sigma0, low, high, seed):
        """As `sampling.initialize`; row 0 becomes the start solution, if it is to be there."""
        tile, t = cuda.blockIdx.x, cuda.threadIdx.x
        z = cuda.local.array(columns, dtype)
        for r in range(size):
            draw(seed, 1, r, tile, t, n - tile * TILE, z)
            for j in range(columns):
                c = tile * TILE + t + j * threads
                if c < n:
                    at = np.uint64(r) * np.uint64(n) + np.uint64(c)
                    if uniform:
                        X[at] = sampling.between(low[c], high[c], z[j])
                    else:
                        x = center[c] if with_x0 and r == 0 else center[c] + sigma0 * z[j]
                        X[at] = sampling.limited(x, low[c], high[c], limits) if limits else x

    @cuda.jit(**writing)
    def regenerate(X, n, vectors, low, high, unit, sigma0, ranks, numbers, seed):
        """As `sampling.regenerate`, a block a tile."""
        tile, t, generation = cuda.blockIdx.x, cuda.threadIdx.x, int64(ranks[COUNT]) + 1
        start, wide = tile * TILE, np.uint64(n)
        width = min(TILE, n - start)
        gaps = cuda.shared.array((warps, WARP), int32)
        z = cuda.local.array(columns, dtype)
        sigma = cuda.local.array(columns, dtype)
        center = cuda.local.array(columns, dtype)
        C = cuda.local.array(columns, dtype)
        elite = cuda.local.array(n_elite, dtype)
        fresh, path_weight, shift_path = numbers[FRESH], numbers[PATH_WEIGHT], numbers[SHIFT_PATH]
        step, reset = numbers[STEP], numbers[RESET] != 0
        path = has_path and generation > 2  # line 5: P is zero at first
        for j in range(columns):
            i = t + j * threads
            if i < width:
                c = np.uint64(start + i)
                best = X[ranks[0] * wide + c]
                P = real(directions.path_entry(best, vectors[4, c], vectors[2, c])) if path else zero
                D = old * vectors[3, c] + fresh * path_weight * P
                for k in range(m):
                    D += fresh * numbers[ROW_WEIGHTS + k] * (best - X[ranks[ROWS + k] * wide + c])
                sigma[j], C[j], center[j] = vectors[1, c], D, vectors[0, c] + shift_path * P
                vectors[2, c], vectors[3, c], vectors[4, c] = P, D, best
                if reset:
                    sigma[j] = unit[c] if to_first else real(level)
                for k in range(n_elite):
                    if ranks[k] != np.uint64(k):
                        elite[k] = X[ranks[k] * wide + c]
                for k in range(n_elite):
                    if ranks[k] != np.uint64(k):
                        X[np.uint64(k) * wide + c] = elite[k]
        for first in range(n_elite, size, warps):
            rows = min(warps, size - first)
            for r in range(first, first + rows):
                draw(seed, generation, r, tile, t, width, z)
                at = np.uint64(r) * wide + np.uint64(start)
                for j in range(columns):
                    i = t + j * threads
                    if i < width:
                        X[at + np.uint64(i)] = z[j] * sigma[j] + (center[j] + step * C[j])
            if perturbs:
                perturb(X, wide, first, rows, start, width, seed, generation, unit, sigma0, gaps)
            if limits:
                cuda.syncthreads()
                for r in range(first, first + rows):
                    for i in range(t, width, threads):
                        c, at = start + i, np.uint64(r) * wide + np.uint64(start + i)
                        X[at] = sampling.limited(X[at], low[c], high[c], limits)

    @cuda.jit(device=True)
    def reduce(values, own, offset, out, k, active):
        """Add six numbers of each lane of a warp in double precision, to row k of `out` where the warp is active."""
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        cuda.syncthreads()
        for j in range(6):
            values[warp, lane, j] = own[offset + j]
        cuda.syncthreads()
        if active and lane < 6:
            total = values[warp, 0, lane]
            for i in range(1, WARP):
                total += values[warp, i, lane]
            out[k, lane] = total

    @cuda.jit(**scanning)
    def scan(X, n, ranks, G, vectors, sums):
        """As `directions.scan`: row k of a block's sums is of x_k - x_best with the d_r, P and C, the last of these."""
        t, wide, path = cuda.threadIdx.x, np.uint64(n), has_path and ranks[COUNT] > 1
        warp, lane = t // WARP, t % WARP
        basis = cuda.shared.array((8, span), dtype)  # the d_r, P and C in rows 0 to 5; x_best; sigma
        values = cuda.shared.array((warps, WARP, 6), float64)
        rows = cuda.shared.array(listed, uint64)
        for j in range(t, listed, threads):
            rows[j] = ranks[min(j, size - 1)] * wide
        own = cuda.local.array(n_own, dtype)
        d = cuda.local.array(of_warp, dtype)
        mean = cuda.local.array(2, dtype)
        variance = cuda.local.array(2, dtype)
        for j in range(n_own):
            own[j] = zero
        k0, last, stop, one = 1 + of_warp * warp, np.uint64(n - 1), np.uint64(size), np.uint64(1)
        run = cuda.blockIdx.x * SPANS * span
        for start in range(run, min(n, run + SPANS * span), span):
            width = min(span, n - start)
            cuda.syncthreads()
            mean[0] = mean[1] = variance[0] = variance[1] = zero
            if t < width:
                k: Any = np.uint64(0)
                while k < stop:  # a range takes twenty instructions to count
                    for e in range(2):
                        mean[e] += G[k] * X[rows[k] + min(np.uint64(start + t + e * threads), last)]
                    k += one
                k = np.uint64(0)
                while k < stop:
                    for e in range(2):
                        away = X[rows[k] + min(np.uint64(start + t + e * threads), last)] - mean[e]
                        variance[e] += G[k] * away * away
                    k += one
                for e in range(2):
                    i = t + e * threads
                    if i < width:
                        c = np.uint64(start + i)
                        sigma, best = real(math.sqrt(variance[e])), X[rows[0] + c]
                        vectors[0, c], vectors[1, c] = mean[e], sigma
                        for j in range(6):
                            basis[j, i] = X[ranks[ROWS + j] * wide + c] - best if j < m else zero
                        if path:
                            basis[m, i] = directions.path_entry(best, vectors[4, c], vectors[2, c])
                        basis[m + 1, i], basis[6, i], basis[7, i] = vectors[3, c], best, sigma
            cuda.syncthreads()
            column: Any = np.uint64(lane)
            while column < np.uint64(width):
                for q in range(of_warp):
                    d[q] = X[rows[k0 + q] + np.uint64(start) + column] - basis[6, column]
                for j in range(6):
                    for q in range(of_warp):
                        own[6 * q + j] = cuda.fma(d[q], basis[j, column], own[6 * q + j])
                if warp == warps - 1:
                    P, C, sigma = basis[m, column], basis[m + 1, column], basis[7, column]
                    own[6 * of_warp] += P * P
                    own[6 * of_warp + 1] += P * C
                    own[6 * of_warp + 2] += C * C
                    own[6 * of_warp + 3] += sigma * sigma
                column += np.uint64(WARP)
        out = sums[cuda.blockIdx.x]
        for q in range(of_warp):
            reduce(values, own, 6 * q, out, k0 + q, k0 + q < size)
        reduce(values, own, 6 * of_warp, out, size, warp == warps - 1)

    @cuda.jit(**plain)
    def add_up(sums, total):
        """Add up the blocks' sums in a fixed order."""
        k, j, lane = cuda.blockIdx.x, cuda.threadIdx.x % 6, cuda.threadIdx.x // 6
        values = cuda.shared.array((summers, 6), float64)
        value = 0.0
        for b in range(lane, sums.shape[0], summers):
            value += sums[b, k, j]
        values[lane, j] = value
        half = summers // 2
        while half > 0:
            cuda.syncthreads()
            if lane < half:
                values[lane, j] += values[lane + half, j]
            half //= 2
        if lane == 0:
            total[k, j] = values[0, j]

    @cuda.jit(**plain)
    def select(values, ranks, told, seed):
        """Rank the population, adapt beta_1 and beta_2, draw the rows of the descent: lines 14 to 30."""
        t, generation = cuda.threadIdx.x, int64(ranks[COUNT]) + 1
        f = cuda.shared.array(MOST, float64)
        ranked = cuda.shared.array(MOST, int64)
        kept = n_elite if generation > 1 and not reevaluated else 0
        ahead = n_elite if generation > 1 and newest else 0  # the row from which on equal values go first
        f[t] = math.inf
        if t < size:
            value = told[FITNESS + t] if t < kept else np.float64(values[t - kept])
            f[t] = value if value > -math.inf else math.inf  # NaN, and what the host refuses
            if t >= kept:
                told[VALUES + t - kept] = value
        cuda.syncthreads()
        if t < size:
            rank = 0
            for k in range(size):
                first = (k - ahead + size) % size < (t - ahead + size) % size
                rank += f[k] < f[t] or (f[k] == f[t] and first)
            ranked[rank], ranks[rank], told[FITNESS + rank] = t, uint64(t), f[t]
        cuda.syncthreads()
        if t > 0:
            return
        ranks[COUNT] = uint64(generation)
        if generation > 1:
            steps = cuda.local.array(3, float64)
            steps[0], steps[1], steps[2] = told[BETA1], told[BETA2], told[STUCK]
            adapt(steps, f[ranked[0]] != told[BEST], mirrored)
            told[BETA1], told[BETA2], told[STUCK] = steps[0], steps[1], steps[2]
        told[BEST] = f[ranked[0]]
        pool = cuda.local.array(MOST, int64)
        ir = cuda.local.array(m, int64)
        random_streams.distinct(seed, random_streams.DESCENT_ROWS, generation, pool[: size - 1], ir)
        for i in range(m):
            ranks[ROWS + i], ranks[RANKS + i] = uint64(ranked[ir[i]]), uint64(ir[i])
            told[START + i] = random_streams.row_normal(seed, random_streams.DESCENT_START, generation, i)

    @cuda.jit(**plain)
    def combine(total, n, ranks, numbers, told):
        """Find C_ani and the step sizes of the next generation: lines 7 to 11, and v of Sec. 3.4."""
        rows = cuda.shared.array((MOST, 6), float64)
        for i in range(cuda.threadIdx.x, size * 6, WARP):
            rows[i // 6, i % 6] = total[i // 6, i % 6]
        cuda.syncthreads()
        if cuda.threadIdx.x > 0:
            return
        ir = cuda.local.array(m, int64)
        start = cuda.local.array(m, float64)
        scratch = cuda.local.array((n_scratch, m), float64)
        packed = cuda.local.array(n_packed, float64)
        for i in range(m):
            ir[i], start[i] = int64(ranks[RANKS + i]), told[START + i]
        first, path_path, std_square = ranks[COUNT] == 1, total[size, 0], total[size, 3]
        fresh, of_path = 1.0 if full and first else RATE, path_path if orthogonal else 0.0
        products = Products(rows[:size], of_path, total[size, 1], total[size, 2], std_square, 0.0, resolution)
        directions.combine(products, ir, start, oriented, fresh, scratch, packed)
        p, square, mean, std = packed[m], packed[m + 1], packed[m + 2], packed[m + 3]
        if repeated:
            mean = (mean * (size - 1) + packed[m + 4]) / size
            std = (packed[m + 4] - mean) ** 2
            for k in range(m + 4, n_packed):
                std += (packed[k] - mean) ** 2
            std = math.sqrt(std / size)
        length, norm = math.sqrt(max(square, 0.0)), math.sqrt(std_square)
        scale = length if normalized and length > 0 else 1.0
        told[DESCENT_MEAN], told[DESCENT_STD] = mean / scale, std / scale
        told[OVERFLOWN] = not math.isfinite(std_square + path_path + abs(p) + abs(square) + abs(mean) + std)
        if first:
            told[FIRST_NORM] = norm
        numbers[RESET] = zero
        if resets and told[STUCK] == STAGNATION:
            numbers[RESET], told[BETA1], told[STUCK] = real(1), 0.1, 0.0
            norm = told[FIRST_NORM] if to_first else level * math.sqrt(np.float64(n))
        told[NORM], told[WIDEST] = norm, max(told[WIDEST], norm)
        step = abs(mean / scale) if toward_best else mean / scale
        numbers[STEP] = real(told[BETA1] * (1 - told[BETA2]) * (step / scale)) if moves else zero
        numbers[SHIFT_PATH] = real(told[BETA1] * told[BETA2])
        numbers[PATH_WEIGHT], numbers[FRESH] = real(p), real(fresh)
        for i in range(m):
            numbers[ROW_WEIGHTS + i] = real(packed[i])

    return SimpleNamespace(
        initialize=initialize, regenerate=regenerate, scan=scan, add_up=add_up, select=select, combine=combine
    )


def refused(reading: Reading, population_size: int, n_elite: int) -> str:
    """Return what of a search a card does not do; empty where that is nothing."""
    asked = {
        f"population_size > {MOST}": population_size > MOST,
        f"n_elite > {MOST_ELITES}": n_elite > MOST_ELITES,
        "step='sampled'": reading.step == "sampled",
        "sigma_norm='spectral'": reading.sigma_norm == "spectral",
    }
    return ", ".join(what for what, holds in asked.items() if holds)


class Replayed:
    """Launches of kernels, with the same arguments each time."""

    def __init__(self, launch: Callable[..., None]) -> None:
        self._launch = launch
        self._graph: Any = None

    def run(self, stream: Any, *given: Any) -> None:
        """Launch them on a stream: one by one at first, which compiles them, and then as one graph."""
        if self._graph is not None:
            cuda.current_context()  # which a thread that has done nothing on the card does not have
            _done(driver.cuGraphLaunch(self._graph, driver.CUstream(int(stream))))
            return
        with uncontracted():
            self._launch(stream, *given)
            if SIMULATED:
                return
            own = _done(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
            _done(driver.cuStreamBeginCapture(own, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
            self._launch(cuda.external_stream(int(own)), *given)
            captured = _done(driver.cuStreamEndCapture(own))
        self._graph = _done(driver.cuGraphInstantiate(captured, 0))
        weakref.finalize(self, driver.cuGraphExecDestroy, self._graph).atexit = False
        _done(driver.cuGraphDestroy(captured))
        _done(driver.cuStreamDestroy(own))


def _done(answer: tuple[Any, ...]) -> Any:
    """Return what a call of the driver has returned, or raise its error."""
    if int(answer[0]):
        raise RuntimeError(f"the graphics card's driver failed: {answer[0]!r}")
    return answer[1] if len(answer) > 1 else None


class Candidates:
    """Rows of the population on the card, shape (m, n), which the next generation overwrites; not to be written to.

    PyTorch (``torch.as_tensor(X, device="cuda")``) and CuPy (``cupy.asarray(X)``) take them without a copy, as does
    what reads ``__cuda_array_interface__`` or DLPack; ``numpy.asarray(X)`` waits, and copies them to the host. They are
    written on CUDA's default stream, on which those libraries work unless they are told otherwise.
    """

    def __init__(self, rows: Any) -> None:
        self.rows, self.shape, self.dtype = rows, tuple(rows.shape), rows.dtype

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.rows.copy_to_host(), dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.rows.__cuda_array_interface__) | {"stream": 1}  # the number of the default stream

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, int(cuda.get_current_device().id)  # 2: CUDA

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        views = import_module("cuda.core.utils").StridedMemoryView  # whose own method makes no stream wait
        return views.from_cuda_array_interface(self, stream_ptr=stream or 1).__dlpack__(**options)


def _on_card(given: Any) -> Any:
    """Return what lies on the card as an array of Numba's, without its gradient; None for what does not."""
    if isinstance(given, Candidates):
        return given.rows
    if SIMULATED:
        return given if hasattr(given, "__cuda_ndarray__") else None
    given = given.detach() if getattr(given, "requires_grad", False) else given
    interface = getattr(given, "__cuda_array_interface__", None)
    return interface and cuda.as_cuda_array(given, sync=interface.get("stream") not in (None, 1))


class LEAMVDOnCard(LEAMVD):
    """LEA-MVD whose populations stay on a graphics card: what ``LEAMVD(..., device="cuda")`` makes."""

    threads, summers = 256, 128  # of a block; that add up the blocks' sums of one inner product
    _of_process = ("_kernels", "_draw", "_told_as", "_stream", "_host", "_events")

    def _allocate(self) -> None:
        n, size, reading, real = self.n_var, self.population_size, self.reading, self.dtype
        if asked := refused(reading, size, self.n_elite):
            raise ValueError(f"device='cuda' cannot do {asked}")
        if not SIMULATED and not cuda.is_available():
            raise ValueError("device='cuda' needs an NVIDIA graphics card and its driver, and none is found here")
        self._uniform = self._x0 is None
        self._by_first = reading.reset == "initial" or (reading.perturbation == "added" and self._uniform)
        sides = [side if reading.limits != "first" else np.zeros(1, real) for side in (self._low, self._high)]
        told = np.zeros(FITNESS + MOST)
        told[[BETA1, BETA2]] = 1.0, 0.9
        arrays = {
            "vectors": np.zeros((5, n), real), "low": sides[0], "high": sides[1], "G": self._weights, "told": told,
            "unit": np.zeros(n if self._by_first else 1, real),  # std of the first population
            "ranks": np.zeros(COUNT + 1, np.uint64), "numbers": np.zeros(ROW_WEIGHTS + 4, real),
            "sums": np.zeros((-(-n // (SPANS * 2 * self.threads)), size + 1, 6)), "total": np.zeros((size + 1, 6)),
            "single": np.zeros(size, np.float32), "double": np.zeros(size),  # values that are told
        }  # fmt: skip
        self._card = SimpleNamespace(**{name: cuda.to_device(array) for name, array in arrays.items()})
        self._card.X = cuda.device_array(size * n, real)
        self._known = self._lag = 0  # generations whose numbers were read; how many later ones `stop` does not wait for
        self._unseen: deque[Generation] = deque(maxlen=2)  # rows of the history
        self._connect()

    def _connect(self) -> None:
        """Make what belongs to this process: kernels, graphs, and the host's memory for `told`."""
        a, n, size, key = self._card, self.n_var, self.population_size, self._key
        threads, summers = self.threads, self.summers
        with uncontracted():
            shape = size, self.n_elite, self._uniform, threads, summers
            self._kernels = k = kernels(self.dtype.name, self.reading, *shape)

        # neither holds this object: a search that nothing refers to gives the card's memory back at once
        def draw(stream: Any, sigma0: Any) -> None:
            regenerate = k.regenerate[-(-n // TILE), threads, stream]
            regenerate(a.X, n, a.vectors, a.low, a.high, a.unit, sigma0, a.ranks, a.numbers, key)

        def learn(stream: Any, values: Any) -> None:
            k.select[1, WARP, stream](values, a.ranks, a.told, key)
            k.scan[len(a.sums), threads, stream](a.X, n, a.ranks, a.G, a.vectors, a.sums)
            k.add_up[size + 1, 6 * summers, stream](a.sums, a.total)
            k.combine[1, WARP, stream](a.total, n, a.ranks, a.numbers, a.told)

        self._draw = Replayed(draw)
        self._told_as = {v.dtype: (v, Replayed(learn)) for v in (a.single, a.double)}
        self._stream = 0 if SIMULATED else cuda.legacy_default_stream()
        self._host, self._events = cuda.pinned_array((2, len(a.told)), np.float64), (cuda.event(), cuda.event())

    # ---- ask and tell

    def ask(self) -> Any:
        """Return the candidates of the next generation, `Candidates` that stay on the card."""
        if self._candidates is None:
            if self._overflown:
                raise self._too_far(self._card.X.copy_to_host())
            with uninterrupted():
                if self.generation:
                    self._draw.run(self._stream, self.dtype.type(self.sigma0))
                else:
                    self._begin()
                self._drawn[0] = self.generation + 1
                self._candidates = self._asked()
        return self._candidates

    def _begin(self) -> None:
        """Draw the first population; what only that needs does not stay on the card."""
        given = self._x0, self._low, self._high
        center, low, high = (cuda.to_device(np.zeros(1, self.dtype) if v is None or not v.size else v) for v in given)
        with uncontracted():
            initialize = self._kernels.initialize[-(-self.n_var // TILE), self.threads, self._stream]
            initialize(self._card.X, self.n_var, center, self.dtype.type(self.sigma0), low, high, self._key)

    def _asked(self) -> Any:
        first, rows = self.population_size - self.n_candidates, self._card.X.reshape(self.population_size, self.n_var)
        return Candidates(rows[first:])

    def tell(self, X: Any, F: Any) -> None:
        """As `Optimizer.tell`; values are on the card, in float32 or float64, or on the host.

        The host waits for the generation before at most, and for what it gives itself to be copied. Candidates that are
        on the card are not checked.
        """
        if self._candidates is None:
            raise RuntimeError("tell needs candidates to be asked for first: call ask()")
        count, points, values, asked = self.n_candidates, _on_card(X), _on_card(F), _on_card(self._candidates)
        if points is None:
            points = checks.array("X", X, shape=tuple(asked.shape), dtype=self.dtype)
        self._lag = int(values is not None)
        if values is None:
            values = checks.objective_values("F", F, count)
        gaps = self._lag and not values.is_c_contiguous()
        if values.dtype not in self._told_as or math.prod(values.shape) != count or gaps:
            told = f"got {values.dtype} of shape {tuple(values.shape)}{' with gaps' if gaps else ''}"
            raise ValueError(f"F on the card must be float32 or float64, without gaps, of shape ({count},), {told}")
        buffer, learn = self._told_as[values.dtype]
        with uninterrupted():
            self._read(self.generation - 1)  # whose place in the host's memory is taken
            if X is not self._candidates:
                asked.copy_to_device(points)
            buffer[:count].copy_to_device(values.reshape(count))
            learn.run(self._stream, buffer)
            if self.generation == 0 and self._by_first:
                self._card.unit.copy_to_device(self._card.vectors[1], self._stream)
            self._card.told.copy_to_host(self._host[self.generation % 2], self._stream)
            self._events[self.generation % 2].record(self._stream)
            self.generation, self.nfev, self._candidates = self.generation + 1, self.nfev + count, None
            self._x0 = None

    # ---- what the host knows

    def _read(self, generation: int) -> None:
        """Take over what the card has told up to a generation, for which the host waits."""
        while self._known < generation:
            cuda.current_context()  # as in `Replayed.run`
            self._events[self._known % 2].synchronize()
            told = self._host[self._known % 2].copy()
            self._known += 1
            later = (self.generation - self._known) * self.n_candidates
            count = self.n_candidates if self._known > 1 else self.population_size
            F = told[VALUES : VALUES + count]
            if self._known == 1 and self._x0_in_population and not self._uniform:
                self._start_fun = float(F[0])
            self._lowest, self._std_norm, self._widest = told[[BEST, NORM, WIDEST]].tolist()
            (self._beta1, self._beta2), self._stagnation = told[[BETA1, BETA2]].tolist(), int(told[STUCK])
            self._descent_mean, self._descent_std = told[[DESCENT_MEAN, DESCENT_STD]].tolist()
            self._overflown = bool(told[OVERFLOWN])
            steps = self._std_norm, self._beta1, self._beta2
            self._unseen.append(history_row(F, self._lowest, steps, self.nfev - later))
            self._count(F, self._known)
            checks.objective_values("F", F, count)  # refuses -inf

    def told(self, F: Any) -> list[Generation]:
        """As `Optimizer.told`: where values are on the card, without the row of the last generation."""
        self._read(self.generation - (0 if F is None else self._lag))
        rows = list(self._unseen)
        self._unseen.clear()
        return rows

    def host_values(self, F: Any) -> Array:
        """As `Optimizer.host_values`, for which the host waits."""
        values = _on_card(F)
        return checks.objective_values("F", F if values is None else values.copy_to_host(), self.n_candidates)

    def stop(self) -> dict[str, Any]:
        """As `Optimizer.stop`; where values are on the card, without what follows from the last generation."""
        self._read(self.generation - self._lag)
        return super().stop()

    @property
    def best_fun(self) -> float:
        """As of every optimizer; the host waits for it."""
        self._read(self.generation)
        return super().best_fun

    @property
    def step_sizes(self) -> tuple[float, float, float]:
        """As `LEAMVD.step_sizes`; the host waits for them."""
        self._read(self.generation)
        return super().step_sizes

    def _best(self) -> Floats | None:
        if self.generation == 0:
            return None
        drawn = self._drawn[0] > self.generation  # then the elites lie in the first rows, best first
        row = 0 if drawn else int(self._card.ranks.copy_to_host()[0])
        best: Floats = self._card.X[row * self.n_var : (row + 1) * self.n_var].copy_to_host()
        return best

    @property
    def state(self) -> State:
        """As `LEAMVD.state`, on the host: the whole population is copied."""
        a, m, size = SimpleNamespace(**self.__getstate__()["_card"]), self.reading.n_descent_rows, self.population_size
        X, vectors, numbers = a.X.reshape(size, -1), Vectors(*a.vectors), a.numbers
        first = a.unit if self.reading.reset == "initial" else None
        if self.generation == 1 or self.reading.path == "off":
            vectors.previous[:] = X[int(a.ranks[0])]
        if numbers[RESET]:
            vectors.std[:] = self.reading.reset if first is None else first
        weights, (path_weight, fresh) = numbers[ROW_WEIGHTS : ROW_WEIGHTS + m], numbers[[PATH_WEIGHT, FRESH]].tolist()
        twin = object.__new__(LEAMVD)
        order, rows = a.ranks[:size].astype(np.int64), a.ranks[RANKS : RANKS + m].astype(np.int64)
        vars(twin).update(
            vars(self), _X=X, _order=order, _F=a.told[FITNESS : FITNESS + size], _vectors=vectors, _rows=rows,
            _pending=Descent(weights, path_weight, fresh, 0.0, np.empty(0), 0.0, 0.0),
            _initial_std=first,
        )  # fmt: skip
        return twin.state

    def __getstate__(self) -> dict[str, Any]:
        self._read(self.generation)
        arrays = {name: array.copy_to_host() for name, array in vars(self._card).items()}
        values = vars(self) | {"_card": arrays, "_candidates": self._candidates is not None}
        return {name: value for name, value in values.items() if name not in self._of_process}

    def __setstate__(self, values: dict[str, Any]) -> None:
        vars(self).update(values)
        self._card = SimpleNamespace(**{name: cuda.to_device(array) for name, array in values["_card"].items()})
        self._connect()
        self._candidates = self._asked() if values["_candidates"] else None
