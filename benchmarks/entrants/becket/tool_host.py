"""becket as a host of extensions: a tool call through `Host`, and what it costs beside a call of the peer below it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from becket.contract.tools import TOOL_CALL, ToolCall
from becket.host import Extension, Host, HostSettings
from becket.host.host_config import ExtensionConfig
from becket.json_schema.validator import compile_schema
from benchmarks.hosting.asynchronous import AsyncioLoop, run_host
from benchmarks.hosting.measurement import Window, load_settings, print_figures
from benchmarks.workloads import MESSAGE_TEXT
from messages import Usage

ID = "extension"
TOOL = f"{ID}:echo"
INPUT = {"text": MESSAGE_TEXT}
PERMISSIONS = ["tools.register"]
BLOCKS = 20  # of calls of either kind, in turns: what others do meanwhile hits both alike

settings = load_settings()


class Hosted:
    """A host with one extension. Tool calls alone are measured of it."""

    def __init__(self, host: Host, extension: Extension) -> None:
        self.host = host
        self.extension = extension

    async def handshake(self) -> None:
        """Done before the extension was ready."""

    def echo(self, text: str) -> Awaitable[str]:
        return self.host.call_tool(TOOL, {"text": text})

    def text_of(self, response: str) -> str:
        return response

    def count(self, events: int) -> Awaitable[int]:
        raise NotImplementedError

    def drive(self, calls: int) -> Awaitable[object]:
        raise NotImplementedError

    async def usage(self) -> Any:
        usage = await self.extension.call("usage", returns=Usage)
        return {"pid": usage.pid, "cpu": usage.cpu}


@asynccontextmanager
async def connect(command: list[str]) -> AsyncIterator[Hosted]:
    with TemporaryDirectory() as folder:
        write_manifest(Path(folder), command)
        own = ExtensionConfig(env={"PYTHONPATH": os.environ["PYTHONPATH"]})
        async with Host(
            [folder], grants={ID: PERMISSIONS}, data=None, settings=HostSettings(extensions={ID: own})
        ) as host:
            yield Hosted(host, await host.ready(ID))


def write_manifest(folder: Path, command: list[str]) -> None:
    members = {"id": ID, "version": "1.0.0", "command": command, "permissions": PERMISSIONS}
    lines = [f"{name} = {json.dumps(value)}" for name, value in members.items()]
    (folder / "becket.toml").write_text("\n".join(lines), encoding="utf-8")


async def measure_cost() -> None:
    """Prints the host's processor time of a tool call, of the same call through the peer, and of the validation."""
    async with connect(settings["child"]) as hosted:
        peer = hosted.extension.peer
        assert peer is not None
        (tool,) = hosted.extension.tools
        validator = compile_schema(tool.input_schema)

        async def call_tool() -> None:
            await hosted.host.call_tool(TOOL, INPUT)

        async def call_peer() -> None:
            await peer.call(TOOL_CALL, ToolCall(tool.name, INPUT))

        async def validate() -> None:
            validator.find_problems(INPUT)

        for one in (call_tool, call_peer, validate):
            await spend(one, settings["warmup"])
        calls = settings["calls"] // BLOCKS
        used = {"tool_us": 0.0, "call_us": 0.0, "validation_us": 0.0}
        window = Window(await hosted.usage())
        for _ in range(BLOCKS):
            for name, one in (("tool_us", call_tool), ("call_us", call_peer), ("validation_us", validate)):
                used[name] += await spend(one, calls)
        window.close()
        operations = BLOCKS * calls
        figures = {name: seconds / operations * 1e6 for name, seconds in used.items()}
        figures["times"] = (figures["tool_us"] - figures["validation_us"]) / figures["call_us"]
        print_figures({**figures, **window.figures(2 * operations, (await hosted.usage())["cpu"])})


async def spend(one: Callable[[], Awaitable[None]], calls: int) -> float:
    """Returns the processor time of this program while it makes so many calls."""
    began = time.process_time()
    for _ in range(calls):
        await one()
    return time.process_time() - began


if settings["workload"] == "N4":
    AsyncioLoop().run(measure_cost)
else:
    run_host(connect, AsyncioLoop())
