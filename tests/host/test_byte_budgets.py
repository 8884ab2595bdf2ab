"""The byte budget that a host has for all of its extensions together, with real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.host.folders import write_extension

from becket import Limits, Registry
from becket.host.host import Host
from becket.host.host_settings import HostSettings

pytestmark = [pytest.mark.process, pytest.mark.loops]

PROGRAM = """
from becket import ExtensionServer, RemoteError
from becket.extension import tool

class Sender(ExtensionServer):
    id, version = "ID", "1.0.0"

    @tool("Calls a method of the host with this many bytes.")
    async def send(self, size: int) -> str:
        try:
            return await self.host.call("slow", {"text": "a" * size})
        except RemoteError as error:
            return error.meaning.name

if __name__ == "__main__":
    Sender().run()
"""


async def test_a_request_that_does_not_fit_beside_those_of_other_extensions_is_busy(tmp_path: Path) -> None:
    for id in ("one", "two"):
        more = 'permissions = ["tools.register"]\n'
        write_extension(tmp_path / id, id, more, files={"main.py": PROGRAM.replace("ID", id)})
    begun, may_end = anyio.Event(), anyio.Event()
    methods = Registry()

    @methods.handle("slow")
    async def slow(params: Any) -> str:
        begun.set()
        await may_end.wait()
        return "served"

    results: list[str] = []
    host = Host(
        [tmp_path],
        data=None,
        grants={id: ["tools.register"] for id in ("one", "two")},
        methods=methods,
        settings=HostSettings(limits=Limits(host_inbound_bytes=1_500_000)),
    )

    async def send(id: str) -> None:
        results.append(await host[id].call_tool("send", {"size": 1_000_000}))

    with anyio.fail_after(60):
        async with host:
            await host.ready("one")
            await host.ready("two")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send, "one")
                await begun.wait()
                await send("two")
                assert results == ["BUSY"]
                may_end.set()
            await send("two")
    assert results == ["BUSY", "served", "served"]
