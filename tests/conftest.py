"""Settings for every test: the event loops of async tests, the hypothesis profiles, folders for stores."""

from __future__ import annotations

import functools
import gc
import inspect
import logging
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import uvloop
from hypothesis import settings

from becket.testing import adopt_orphans, check_leaks, check_task_leaks

ASYNCIO = pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio")
TRIO = pytest.param(("trio", {}), id="trio")
UVLOOP = pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop")
MEMORY = "/dev/shm"  # a file system like any other, on which a sync costs nothing
UNEXPECTED = "unexpected error on a link"  # what becket logs when a callback of its own has raised

# The time of one example depends on the machine more than on the code; the timeout of the test bounds the sum.
settings.register_profile("becket", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("quick", settings.get_profile("becket"), max_examples=15, stateful_step_count=15)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--quick`: what another version of Python is likely to break, in a few minutes."""
    about = "leave out slow tests, run async ones on asyncio alone, and search for fewer examples"
    parser.addoption("--quick", action="store_true", help=about)


def pytest_configure(config: pytest.Config) -> None:
    """Chooses how hypothesis searches, and lets signals reach the programs that tests start.

    What a shell starts in the background ignores interrupts, and what `nohup` starts ignores hangups; so would all that
    they start in turn."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    settings.load_profile("quick" if config.getoption("--quick") else "becket")


@pytest.hookimpl(optionalhook=True)  # proofs run the tests without xdist
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Runs two workers on each core: half of the time a test waits for a child process."""
    return 2 * len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves slow tests out of a quick run."""
    if config.getoption("--quick"):
        slow = [item for item in items if item.get_closest_marker("slow") is not None]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]


def pytest_collection_finish() -> None:
    """Keeps modules and collected tests out of every later garbage collection: a million objects that stay."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs async tests on asyncio, those marked `loops` on trio too, and those of the peer on uvloop besides."""
    if "anyio_backend" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("loops")  # `loops("asyncio")` restricts that of a file
        on_all = marker is not None and not marker.args and not metafunc.config.getoption("--quick")
        # uvloop is another asyncio: code above the peer sees no difference.
        is_peer = "tests/peer/" in metafunc.definition.path.as_posix()
        backends = [ASYNCIO, TRIO, UVLOOP] if is_peer else [ASYNCIO, TRIO]
        metafunc.parametrize("anyio_backend", backends if on_all else [ASYNCIO], indirect=True)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """Returns the loop that anyio's plugin runs this test on, as `pytest_generate_tests` chose it."""
    backend: tuple[str, dict[str, object]] = request.param
    return backend


# -- what every test leaves behind: nothing

adopt_orphans()  # a grandchild that outlives its parent is then a child of this program, and seen
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes that a test has failed: the leak check is meaningless then."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="session")
def uvloop_has_its_pipe() -> None:
    """Lets uvloop open the pipe for signals that it keeps for as long as the program lives."""
    uvloop.new_event_loop().close()


@pytest.fixture(autouse=True)
def check_for_leaks(request: pytest.FixtureRequest, uvloop_has_its_pipe: None) -> Iterator[None]:
    """Fails a test that leaves a descriptor, a thread, a process or a zombie behind."""
    before = check_leaks()
    before.__enter__()
    yield
    if FAILED not in request.node.stash:
        before.__exit__(None, None, None)


@pytest.fixture(autouse=True)
def internal_errors(request: pytest.FixtureRequest) -> Iterator[list[logging.LogRecord]]:
    """Fails a test in which a callback raised: such errors are only logged. A test that expects one clears it."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = records.append  # type: ignore[method-assign]
    loggers = [logging.getLogger("asyncio"), logging.getLogger("becket.peer")]
    for logger in loggers:
        logger.addHandler(handler)
    yield records
    for logger in loggers:
        logger.removeHandler(handler)
    found = [record.getMessage() for record in records if record.name == "asyncio" or UNEXPECTED in record.msg]
    if FAILED not in request.node.stash:
        assert found == []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Lets async tests look for tasks that outlive them, on their own loop."""
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = leaving_no_task(item.obj)


def leaving_no_task(test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    async def checked(*args: Any, **kwargs: Any) -> None:
        async with check_task_leaks():
            await test(*args, **kwargs)

    return checked


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder for a store, on a quick file system where there is one."""
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as path:
        yield Path(path)
