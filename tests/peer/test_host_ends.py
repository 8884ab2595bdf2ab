"""No child outlives its host: not when the host forgets to close, not when it fails, and not when it is killed."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest
import trio

from becket import Limits, Peer
from becket.peer.transport.child_process import ChildProcess
from becket.testing import ProcessWatch, child

pytestmark = pytest.mark.process

HOST = """
import asyncio, sys
from becket import Peer
from becket.testing import child

async def main():
    ready = asyncio.Event()
    peer = await Peer.connect_process({command!r})

    @peer.on("ready")
    def take(params):
        print(params["pid"], *params.get("family", []), flush=True)
        ready.set()

    await ready.wait()
    await asyncio.to_thread(sys.stdin.buffer.readline)
    {then}

asyncio.run(main())
"""

CHILD = """
import os
import anyio
from becket import Peer

async def main():
    async with Peer.connect_stdio() as peer:
        await peer.notify("ready", {{"pid": os.getpid()}})
        await peer.wait_closed()

anyio.run(main, backend={backend!r})
"""

BLOCKING_CHILD = """
import os
from becket.blocking import connect_stdio

with connect_stdio() as peer:
    peer.notify("ready", {"pid": os.getpid()})
    peer.serve()
"""


@contextmanager
def host_of(command: list[str], then: str = "pass") -> Iterator[tuple[subprocess.Popen[bytes], list[ProcessWatch]]]:
    """Runs a host with this child, and yields it with the processes below it, all of them alive."""
    with subprocess.Popen(
        [sys.executable, "-c", HOST.format(command=command, then=then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as host:
        assert host.stdout is not None
        family = [ProcessWatch(int(pid)) for pid in host.stdout.readline().split()]
        assert family
        yield host, family
        for member in family:
            member.close()


async def all_gone(family: list[ProcessWatch]) -> None:
    with anyio.fail_after(60):
        for member in family:
            await member.gone()


@pytest.mark.parametrize("then", ["pass", "1 / 0", "sys.exit(3)"], ids=["ends", "fails", "exits"])
async def test_no_child_outlives_a_host_that_never_closed_its_peer(then: str) -> None:
    with host_of(child("starts_a_family"), then) as (host, family):
        host.communicate(b"\n")
        await all_gone(family)


@pytest.mark.parametrize(
    "code",
    [CHILD.format(backend="asyncio"), CHILD.format(backend="trio"), BLOCKING_CHILD],
    ids=["asyncio", "trio", "blocking"],
)
async def test_a_child_on_becket_ends_by_itself_when_its_host_is_killed(code: str) -> None:
    with host_of([sys.executable, "-c", code]) as (host, family):
        host.kill()
        await all_gone(family)


USE_ALL_DESCRIPTORS = """
import os, resource

held = []

def use_all_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
"""


@pytest.mark.parametrize("connect", ["asyncio.run(run())", "blocking.connect_process(['cat'])"])
def test_the_first_child_of_a_program_without_descriptors_fails_to_start(connect: str) -> None:
    code = f"""{USE_ALL_DESCRIPTORS}
import asyncio
from becket import Peer, StartFailed, blocking

async def run():
    await Peer.connect_process(["cat"])

loop = asyncio.new_event_loop()
asyncio.run = loop.run_until_complete
use_all_descriptors()
try:
    {connect}
except StartFailed as error:
    print("refused", flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=100, check=True)
    assert done.stdout == b"refused\n"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("connect", ["Peer.connect_process(['cat'])", "connect_extension(['cat'], id='x')"])
def test_the_first_peer_of_a_loop_without_descriptors_fails_to_start(connect: str, backend: str) -> None:
    code = f"""{USE_ALL_DESCRIPTORS}
import anyio
from becket import Peer, StartFailed
from becket.host import connect_extension
from becket.peer.transport import child_process, child_transport

async def run():
    use_all_descriptors()
    try:
        async with {connect}:
            pass
    except StartFailed as error:
        print("refused", flush=True)
    os._exit(0)

anyio.run(run, backend={backend!r})
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=100, check=True)
    assert done.stdout == b"refused\n"


async def test_a_fork_of_the_host_that_exits_does_not_end_the_children() -> None:
    then = """import atexit, os
    if os.fork() == 0:
        atexit._run_exitfuncs()
        os._exit(0)
    os.wait()
    print(await peer.call('x', [1]), flush=True)"""
    with host_of(child("starts_a_family"), then) as (host, family):
        output, _ = host.communicate(b"\n")
        await all_gone(family)
    assert output == b"[1]\n"


@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_a_peer_that_is_dropped_is_warned_of_and_its_child_ends(run: object) -> None:
    pids: list[int] = []

    async def forget() -> None:
        peer = await Peer.connect_process(child("ignores_sigterm"))
        assert peer.process is not None
        pids.append(peer.process.pid)

    (asyncio.run(forget()) if run is asyncio.run else trio.run(forget))
    with pytest.warns(ResourceWarning, match="never closed"):
        gc.collect()

    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_loop_that_ends_while_a_peer_is_closing_ends_the_child_at_once(loop: str) -> None:
    processes: list[ChildProcess] = []
    patient = Limits(stdin_grace=3600, term_grace=3600)  # nothing waits for that

    async def main() -> None:
        peer = await Peer.connect_process(child("ignores_sigterm"), limits=patient)
        assert peer.process is not None
        processes.append(peer.process)
        if loop == "asyncio":
            closing = asyncio.ensure_future(peer.aclose())
            await peer.wait_closed()
            assert not closing.done()
        else:
            trio.lowlevel.spawn_system_task(peer.aclose)
            await peer.wait_closed()
        assert not processes[0].has_exited

    (asyncio.run(main()) if loop == "asyncio" else trio.run(main))

    assert (processes[0].has_exited, processes[0].signal) == (True, "SIGKILL")
