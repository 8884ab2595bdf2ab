"""What becket does to a host when a child dies, is stopped, misbehaves or is one of many: one experiment a run."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import signal
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from becket import BadReply, ConnectionLost, Limits, Peer
from becket.contract.hooks import Continue, HookEvent, HookMatch, HookOutcome
from becket.dialects import PLAIN
from becket.framing import ContentLength, FramingFactory, JsonLines, LengthPrefixed
from becket.host import Host, HostSettings, SupervisionPolicy
from becket.host.events import ExtensionRestarted
from becket.host.hook_plan import HookDeclaration, Hooks
from becket.host.hooks import run_hooks
from becket.jsonrpc.calls import NULL_FUTURE, OutboundCall
from becket.testing import child
from benchmarks.hosting.experiments import Values, forget_peak, peak_kib, print_experiment
from benchmarks.hosting.measurement import load_settings, resident_kib, thread_count

PATIENCE = 1.0  # seconds for a hostile frame to be ended
CHUNK = 65_536
MIB = 1 << 20
CAT = ["/bin/cat"]
HUNG_MANIFEST = """
id = "hung"
version = "1.0.0"
command = ["python3", "main.py"]
permissions = ["tools.register"]
"""
HUNG_PROGRAM = """
from becket.extension import ExtensionServer, tool

class Hung(ExtensionServer):
    id = "hung"
    version = "1.0.0"

    @tool
    def greet(self) -> str:
        "Greets."
        return "hello"

Hung().run()
"""

settings = load_settings()


def milliseconds_since(began: float) -> float:
    return (time.perf_counter() - began) * 1e3


async def until_ready(peer: Peer) -> None:
    """Waits for the first notification of a child of `becket.testing`."""
    ready = asyncio.Event()

    @peer.on("ready")
    def on_ready(params: Any) -> None:
        ready.set()

    await asyncio.wait_for(ready.wait(), 10)


# -- the end of a child


async def exit_noticed() -> Values:
    """From the signal to the failure of a call in flight."""
    took: list[float] = []
    for _ in range(settings["kills"]):
        async with Peer.connect_process(child("never_answers")) as peer:
            await until_ready(peer)
            call = asyncio.ensure_future(peer.call("wait"))
            await asyncio.sleep(0)  # it has been sent
            assert peer.process is not None
            began = time.perf_counter()
            os.kill(peer.process.pid, signal.SIGKILL)
            try:
                await call
            except ConnectionLost:
                took.append(milliseconds_since(began))
    return {"exit_noticed": took}


async def exit_with_grandchild() -> Values:
    """From the call at which the child exits to its failure, while a grandchild holds the pipes."""
    took: list[float] = []
    for _ in range(settings["kills"]):
        async with Peer.connect_process(child("leaves_a_grandchild_with_its_pipes")) as peer:
            await until_ready(peer)
            began = time.perf_counter()
            try:
                await peer.call("wait")
            except ConnectionLost:
                took.append(milliseconds_since(began))
    return {"exit_with_grandchild": took}


async def hang() -> Values:
    """From SIGSTOP to the next result of the extension, each in a new host: further hangs in a row are delayed."""
    took: list[float] = []
    for _ in range(settings["hangs"]):
        with TemporaryDirectory() as folder:
            write_hung(Path(folder))
            async with Host([folder], grants={"hung": ["tools.register"]}, data=None) as host:
                extension = await host.ready("hung")
                (status,) = host.status()
                assert status.pid is not None
                restarted = asyncio.Event()
                host.on(ExtensionRestarted)(lambda event, restarted=restarted: restarted.set())
                began = time.perf_counter()
                os.kill(status.pid, signal.SIGSTOP)
                await asyncio.wait_for(restarted.wait(), 30)
                await extension.call_tool("greet")
                took.append(milliseconds_since(began))
    return {"hang": took}


def write_hung(folder: Path) -> None:
    (folder / "becket.toml").write_text(HUNG_MANIFEST, encoding="utf-8")
    (folder / "main.py").write_text(HUNG_PROGRAM, encoding="utf-8")


async def stop_cat() -> Values:
    took: list[float] = []
    for _ in range(settings["stops"]):
        took.append(await stop_of(await Peer.connect_process(CAT)))
    return {"stop_cat": took}


async def stop_blocking() -> Values:
    program = [sys.executable, str(Path(__file__).with_name("blocking_child.py"))]
    took: list[float] = []
    for _ in range(settings["stops"] // 2):
        peer = await Peer.connect_process(program, env={"PYTHONPATH": os.environ["PYTHONPATH"]})
        await peer.call("initialize")
        took.append(await stop_of(peer))
    return {"stop_blocking": took}


async def stop_stubborn() -> Values:
    peer = await Peer.connect_process(child("ignores_sigterm"))
    await until_ready(peer)
    return {"stop_stubborn": [await stop_of(peer)]}


async def stop_of(peer: Peer) -> float:
    began = time.perf_counter()
    await peer.aclose()
    return milliseconds_since(began)


# -- hostile frames


def hostile(kind: str) -> Callable[[], Awaitable[Values]]:
    async def experiment() -> Values:
        async with Peer.connect_process(child("echoes")) as peer:
            await peer.call("echo")  # all that is loaded at first use
        gc.collect()
        before = forget_peak()
        took: list[float] = []
        for _ in range(settings["frames"]):
            took.append(await end_of_frame(kind))
            if took[-1] == inf:
                break
        return {f"{kind}_ended": took, f"{kind}_growth": [(peak_kib() - before) / 1024]}

    return experiment


async def end_of_frame(kind: str) -> float:
    """From the notification that precedes the frame to the end of the link."""
    began = inf

    async with Peer.connect_process([*settings["child"], kind], framing=JsonLines if kind == "line" else None) as peer:

        @peer.on("begin")
        def on_begin() -> None:
            nonlocal began
            began = time.perf_counter()
            peer.notify_nowait("go")

        try:
            await asyncio.wait_for(peer.wait_closed(), PATIENCE)
            took = milliseconds_since(began)
        except TimeoutError:
            took = inf
        # How the child is stopped is measured elsewhere.
        assert peer.process is not None
        os.kill(peer.process.pid, signal.SIGKILL)
    if began == inf:
        raise RuntimeError("the child did not begin")
    return took


# -- one message


def repeated(item: bytes) -> bytes:
    """Returns an array of about as many of these as a frame may carry."""
    size = Limits().frame - 100
    return b"[" + b",".join([item] * (size // (len(item) + 1))) + b"]"


PARAMS = {
    "objects": lambda: repeated(b"{}"),
    "strings": lambda: repeated(b'"a"'),
    "members": lambda: repeated(b'{"a":{}}'),
    "nested": lambda: b"[" * (2 * MIB - 100) + b"]" * (2 * MIB - 100),
    "nodes": lambda: b"[" + b",".join([b'{"a":1}'] * 24_990) + b"]",
    "string": lambda: b'"' + b"a" * (4 * MIB - 100) + b'"',
}


def framed(params: bytes) -> bytes:
    body = b'{"jsonrpc":"2.0","method":"x","params":%b}' % params
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def message_stalls() -> Values:
    """The processor time of the longest chunk, for every kind of message: other programs do not affect it."""
    values: Values = {}
    for kind, make in PARAMS.items():
        message = framed(make())
        chunks = [message[start : start + CHUNK] for start in range(0, len(message), CHUNK)]
        values[f"{kind}_stall"] = [longest_chunk(chunks) for _ in range(settings["messages"])]
    return values


def longest_chunk(chunks: list[bytes]) -> float:
    connection = PLAIN.build_connection(Limits())
    longest = 0.0
    for chunk in chunks:
        began = time.thread_time()
        connection.receive(chunk)
        longest = max(longest, (time.thread_time() - began) * 1e3)
    return longest


RESULTS = {
    "text": b"a" * CHUNK,
    "escapes": rb"\\" * (CHUNK // 2),
    "objects": b'{"id":1,"name":"a"},' * (CHUNK // 20),
    "brackets": b"[]," * (CHUNK // 3),
}


async def oversize() -> Values:
    """Responses of four times the frame limit, in each framing: the longest chunk, and what the host grows by."""
    stalls: list[float] = []
    framings = (ContentLength, JsonLines, LengthPrefixed)
    skip_oversize(JsonLines, RESULTS["text"])  # all that is loaded at first use
    gc.collect()
    before = forget_peak()
    for framing, part in itertools.product(framings, RESULTS.values()):
        stalls.append(skip_oversize(framing, part))
    return {"oversize_stall": stalls, "oversize_growth": [(peak_kib() - before) / 1024]}


def skip_oversize(framing: FramingFactory, part: bytes) -> float:
    """Returns the processor time of the longest chunk of one response, of which no more than a chunk is ever held."""
    quote = b'"' if part in (RESULTS["text"], RESULTS["escapes"]) else b""
    start = b'{"jsonrpc":"2.0","result":[' + quote
    end = (quote or b"0") + b'],"id":1}'
    count = (4 * Limits().frame - len(start) - len(end)) // len(part)
    size = len(start) + count * len(part) + len(end)
    head = {ContentLength: b"Content-Length: %d\r\n\r\n" % size, LengthPrefixed: size.to_bytes(4)}.get(framing, b"")
    connection = PLAIN.build_connection(Limits(), framing)
    call = OutboundCall("m", NULL_FUTURE)
    connection.open_call(call, None)
    longest = 0.0
    for chunk in itertools.chain((head + start,), itertools.repeat(part, count), (end + b"\n" * (not head),)):
        began = time.thread_time()
        connection.receive(chunk)
        longest = max(longest, (time.thread_time() - began) * 1e3)
    if not isinstance(call.error, BadReply):
        raise RuntimeError(f"the call was settled with {call.error!r}")
    return longest


async def loop_stalls() -> Values:
    """Processor time of the longest turn of the loop while such a message comes and is handled, of the worst kind."""
    kinds: list[list[float]] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "message")
        for make in PARAMS.values():
            write_message(path, make())
            kinds.append([await longest_turn(path) for _ in range(settings["messages"])])
    return {"loop_stall": max(kinds, key=statistics.median)}


def write_message(path: Path, params: bytes) -> None:
    path.write_bytes(framed(params))


async def longest_turn(path: Path) -> float:
    async with Peer.connect_process([*CAT, str(path)]) as peer:

        @peer.on("x")
        def on_x(params: Any) -> None:
            pass

        longest = 0.0
        while not peer.is_closed:  # `cat` ends when it has sent the file
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, (time.thread_time() - began) * 1e3)
    return longest


# -- many children


async def sibling_ping() -> Values:
    """Calls to one child while another sends more notifications than can be handled."""
    received = 0

    async with (
        Peer.connect_process(child("echoes")) as sibling,
        Peer.connect_process(child("floods_stdout")) as flooder,
    ):

        @flooder.on("tick")
        def on_tick(params: Any) -> None:
            nonlocal received
            received += 1

        while received < 10_000:
            await sibling.call("ping")
        took: list[float] = []
        for _ in range(settings["pings"]):
            began = time.perf_counter()
            await sibling.call("ping")
            took.append(milliseconds_since(began))
        assert flooder.process is not None
        os.kill(flooder.process.pid, signal.SIGKILL)
    return {"sibling_ping": took}


async def crowd() -> Values:
    """Calls to the extensions of one host: while all are quiet, while one floods, while three do and a fourth spins."""
    floods = ["flood0", "flood1", "flood2"]
    quiet = [f"quiet{number}" for number in range(settings["children"] - 4)]
    with TemporaryDirectory() as folder:
        write_crowd(Path(folder), [*floods, "spin", *quiet])
        grants = {id: ["tools.register"] for id in [*floods, "spin", *quiet]}
        async with Host(
            [folder], grants=grants, data=None, settings=HostSettings(supervision=SupervisionPolicy(heartbeat=None))
        ) as host:
            for id in host:
                await host.ready(id)
            values = {"crowd_quiet": await call_all(host, quiet)}
            await host.call_tool("flood0:begin_flood")
            values["crowd_flooded"] = await call_all(host, quiet)
            for tool in ("flood1:begin_flood", "flood2:begin_flood", "spin:begin_spin"):
                await host.call_tool(tool)
            values["crowd_storm"] = await call_all(host, quiet)
            for status in host.status():
                if status.pid is not None and not status.id.startswith("quiet"):
                    os.kill(status.pid, signal.SIGKILL)  # those that flood do not read a shutdown
    return values


def write_crowd(folder: Path, ids: list[str]) -> None:
    program = Path(__file__).with_name("crowd_child.py").read_text(encoding="utf-8")
    for id in ids:
        (folder / id).mkdir()
        (folder / id / "main.py").write_text(program, encoding="utf-8")
        lines = [
            f'id = "{id}"',
            'version = "1.0.0"',
            f'command = ["python3", "-I", "-S", "main.py", "{id}"]',
            'permissions = ["tools.register"]',
            'restart = {strategy = "never"}',
        ]
        (folder / id / "becket.toml").write_text("\n".join(lines), encoding="utf-8")


async def call_all(host: Host, ids: list[str]) -> list[float]:
    took: list[float] = []
    for number in range(settings["pings"]):
        began = time.perf_counter()
        await host[ids[number % len(ids)]].call_tool("echo", {"number": number})
        took.append(milliseconds_since(began))
    return took


# -- hooks


async def hook_filters() -> Values:
    """800 filters by text on an input of 1 MB: processor time of the loop's thread, and of all threads."""
    words = " ".join(f"{number * 7919 % 99_991:05}" for number in range(MIB // 6))
    values: Values = {"hooks_loop": [], "hooks_all": [], "hooks_alike": []}
    for quantity, texts in (("hooks_all", [f"rm -rf /{number}" for number in range(800)]), ("hooks_alike", ["rm -rf"])):
        hooks = Hooks()
        for id in range(100):
            mine = [texts[(id * 8 + number) % len(texts)] for number in range(8)]
            declared = [HookDeclaration("before_tool_call", HookMatch(input_contains=text)) for text in mine]
            hooks.add(f"guard{id}", declared, lambda permission: True)
        for _ in range(settings["messages"]):
            event = HookEvent.before_tool_call("bash", {"command": words})
            in_loop, in_all = time.thread_time(), time.process_time()
            verdict = await run_hooks(hooks, event, never_called)
            values["hooks_loop"].append((time.thread_time() - in_loop) * 1e3)
            values[quantity].append((time.process_time() - in_all) * 1e3)
            assert verdict.result == Continue()
    return values


async def never_called(extension: str, event: HookEvent) -> HookOutcome:
    raise AssertionError(extension)


async def idle_memory() -> Values:
    children = settings["idle"]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(Peer.connect_process(CAT))  # all that is loaded at first use
        gc.collect()
        before = resident_kib()
        for _ in range(children):
            await stack.enter_async_context(Peer.connect_process(CAT))
        await asyncio.sleep(0)
        return {"idle_memory": [(resident_kib() - before) / children]}


async def many_threads() -> Values:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(Peer.connect_process(CAT))
        before = thread_count()
        for _ in range(settings["children"] - 1):
            await stack.enter_async_context(Peer.connect_process(CAT))
        await asyncio.sleep(0)
        return {"more_threads": [float(thread_count() - before)]}


EXPERIMENTS: dict[str, Callable[[], Awaitable[Values]]] = {
    "exit_noticed": exit_noticed,
    "exit_with_grandchild": exit_with_grandchild,
    "hang": hang,
    "stop_cat": stop_cat,
    "stop_blocking": stop_blocking,
    "stop_stubborn": stop_stubborn,
    "length": hostile("length"),
    "header": hostile("header"),
    "header_line": hostile("header_line"),
    "line": hostile("line"),
    "message_stalls": message_stalls,
    "oversize": oversize,
    "loop_stalls": loop_stalls,
    "sibling_ping": sibling_ping,
    "crowd": crowd,
    "hook_filters": hook_filters,
    "idle_memory": idle_memory,
    "many_threads": many_threads,
}


asyncio.run(print_experiment(EXPERIMENTS[settings["experiment"]]()))
