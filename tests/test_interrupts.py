"""Ctrl-C at any moment: what must be done whole is, and a search that is interrupted goes on as if it had not been."""

import gc
import inspect
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numba.core import event
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from problems import sphere
from test_lea_mvd import same

from leamvd import LEAMVD, Reading, minimize
from leamvd._support.compile import kernel
from leamvd._support.interrupts import uninterrupted
from leamvd.optimizers import directions, random_streams, sampling
from leamvd.optimizers.cma_es import CMAES

X0 = np.linspace(-1, 1, 5)


@pytest.fixture(autouse=True)
def _python_handles_ctrl_c() -> Iterator[None]:
    """A shell starts what runs in the background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    reached = []

    @uninterrupted()
    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            reached.append("inner")
        signal.raise_signal(signal.SIGINT)
        reached.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_handlers_that_are_no_functions_and_other_threads_are_left_alone() -> None:
    seen: list[Any] = []

    def work() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler, signal.SIG_IGN]


@pytest.mark.compiled
def test_ctrl_c_while_a_kernel_is_compiled_comes_when_it_is_compiled() -> None:
    @kernel()
    def double(x: float) -> float:
        return 2 * x

    double._cache = NullCache()  # type: ignore[attr-defined]  # compiled by each run of the test

    class Interrupt(event.Listener):
        def on_start(self, happening: event.Event) -> None:
            signal.raise_signal(signal.SIGINT)

        def on_end(self, happening: event.Event) -> None:
            signal.raise_signal(signal.SIGINT)

    listener = Interrupt()
    event.register("numba:run_pass", listener)  # type: ignore[no-untyped-call]
    try:
        with pytest.raises(KeyboardInterrupt):
            double(3.0)
        assert double.overloads  # type: ignore[attr-defined]
        assert double(3.0) == 6.0
    finally:
        event.unregister("numba:run_pass", listener)  # type: ignore[no-untyped-call]


# Numba shows calls of compiled code to a tracer, but no signal can come there.
KERNELS = {
    kernel.py_func.__code__
    for module in (directions, random_streams, sampling)
    for kernel in vars(module).values()
    if isinstance(kernel, Dispatcher)
} | {
    inspect.unwrap(kernel).__code__
    for kernel in (directions._scan, sampling.uniform, sampling.normal, sampling.regenerate)
}


@contextmanager
def interrupt_at(moment: int, inside: Callable[[FrameType], bool] = lambda _: True) -> Iterator[None]:
    """Raise KeyboardInterrupt at one of the calls, lines and returns of the block."""
    seen = 0

    def trace(frame: FrameType, *_: Any) -> Any:
        nonlocal seen
        if frame.f_code not in KERNELS and inside(frame):
            seen += 1
            if seen == moment:
                raise KeyboardInterrupt
        return trace

    # What a collection of garbage happens to finalize here is none of the block's.
    gc.disable()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        gc.enable()


def finished(opt: Any, generations: int) -> Any:
    """Run the cell again and again that asks, evaluates and tells; what it has drawn it draws again."""
    while opt.generation < generations:
        X = opt.ask()
        opt.tell(X, sphere(X))
    return opt


@pytest.mark.compiled
@pytest.mark.parametrize(
    "reading",
    [Reading(), Reading(elites="reevaluate", step="sampled", reset="initial", limits="clip")],
    ids=["default", "changed"],
)
@pytest.mark.parametrize("done", [0, 3])
def test_a_search_that_is_interrupted_goes_on_as_if_it_had_not_been(reading: Reading, done: int) -> None:
    """At every call, line and return of Python's below ask and tell, whoever raises."""
    opt = finished(LEAMVD(X0, bounds=(-2, 2), population_size=8, seed=4, reading=reading), done)
    expected = finished(finished(LEAMVD(X0, bounds=(-2, 2), population_size=8, seed=4, reading=reading), 12), 12)
    moment = 0
    while True:
        moment += 1
        twin = finished(LEAMVD(X0, bounds=(-2, 2), population_size=8, seed=4, reading=reading), done)
        asked = None
        interrupted = True
        try:
            with interrupt_at(moment):
                asked = twin.ask()
                F = sphere(asked)
                twin.tell(asked, F)
            interrupted = False
        except KeyboardInterrupt:
            pass
        if not interrupted:
            break
        result = twin.result
        if result.x is not None and reading.elites == "keep":
            assert result.fun == sphere(result.x[None])[0]
        if twin.generation == done:
            np.testing.assert_array_equal(twin.ask(), opt.ask())
            with pytest.raises(RuntimeError, match="state is defined after tell"):
                _ = twin.state
        assert same(finished(twin, 12).state, expected.state)
    assert moment > 60
    assert opt.generation == done


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process there, whatever the signal")
@pytest.mark.compiled
def test_signals_at_any_moment_change_nothing() -> None:
    """Real ones, from another thread, some of them while kernels run."""
    expected = finished(LEAMVD(X0, seed=4, n_gen=400), 400)
    opt, came, armed, over = LEAMVD(X0, seed=4, n_gen=400), 0, [False], threading.Event()

    def handler(*_: Any) -> None:
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    def send() -> None:
        while not over.is_set():
            time.sleep(3e-4)
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        while opt.generation < 400:
            try:
                armed[0] = True
                X = opt.ask()
                opt.tell(X, sphere(X))
                armed[0] = False
            except KeyboardInterrupt:
                came += 1
                result = opt.result
                assert result.x is None or result.fun == sphere(result.x[None])[0]
    finally:
        armed[0] = False
        over.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
    assert came > 5
    assert same(opt.state, expected.state)


def test_a_state_that_is_half_set_is_not_set() -> None:
    opt, other = (finished(LEAMVD(X0, population_size=8, seed=seed), 3) for seed in (1, 2))
    before, given = opt.state, other.state
    moment = 0
    while not same(opt.state, given):
        moment += 1
        try:
            with interrupt_at(moment):
                opt.state = given
        except KeyboardInterrupt:
            assert same(opt.state, before) or same(opt.state, given)
    assert moment > 20


def test_pycma_is_never_interrupted_half_way() -> None:
    """A signal after every other of its calls comes when ask and tell are over: none of its steps is taken twice."""
    expected, opt = finished(CMAES(X0, seed=4), 6), CMAES(X0, seed=4)
    calls = itertools.count()

    def signalled(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            result = function(*arguments)
            if next(calls) % 2 == 0:
                signal.raise_signal(signal.SIGINT)
            return result

        return call

    ask, tell = opt._es.ask, opt._es.tell
    opt._es.ask, opt._es.tell = signalled(ask), signalled(tell)
    came = 0
    while opt.generation < 6:
        try:
            opt.tell(opt.ask(), sphere(opt.ask()))
        except KeyboardInterrupt:
            came += 1
    assert came == 6
    np.testing.assert_array_equal(ask(), expected._es.ask())
    assert opt.result.fun == expected.result.fun


@pytest.mark.compiled
def test_minimize_ends_interrupted_with_a_point_and_its_value() -> None:
    """At every line of its loop and below; the history has each generation that was told."""
    lines, start = inspect.getsourcelines(minimize)
    first = start + next(i for i, line in enumerate(lines) if "while not opt.stop()" in line)
    last = start + next(i for i, line in enumerate(lines) if "saved.write(" in line)
    own = inspect.unwrap(minimize).__code__.co_filename
    called: list[Any] = []

    def fun(x: Any) -> float:
        called.append(x)
        return float(sphere(x[None])[0])

    def inside(frame: FrameType) -> bool:
        while frame.f_code.co_filename != own or frame.f_code.co_name != "minimize":
            if frame.f_back is None or frame.f_code.co_name in ("_result", "halt"):
                return False
            frame = frame.f_back
        return first <= frame.f_lineno <= last and len(called) > 12

    options: dict[str, Any] = {"seed": 1, "n_gen": 5, "population_size": 8, "callback": lambda x: False}
    whole = minimize(fun, X0, **options)
    moment, reasons = 0, set()
    while "n_gen" not in reasons:
        moment += 5
        called.clear()
        with interrupt_at(moment, inside):
            result: Any = minimize(fun, X0, **options)
        reasons.add(result.reason)
        assert result.fun == sphere(result.x[None])[0]
        assert len(result.history.best) == result.nit
        np.testing.assert_array_equal(result.history.best, whole.history.best[: result.nit])
    assert reasons == {"interrupted", "n_gen"}
    assert moment > 250
