"""A host whose children do not end by themselves: `python stubborn_host.py LOOP FIFO FOLDER CASE ...`, to be killed.

SIGUSR1 makes it call `os._exit`. Cases that begin with `peer_` are children of bare peers, of which the deaf one is
guarded; the others are extensions of a `Host`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from becket import BecketError, Peer
from becket.host import Host, HostSettings, SupervisionPolicy

CHILDREN = str(Path(__file__).with_name("stubborn_children.py"))
TOOLS = {"swallows": "swallow"}


async def host_extensions(root: Path, fifo: str, cases: list[str]) -> None:
    for case in cases:
        (root / case).mkdir(parents=True)
        command = f'command = ["{sys.executable}", "{CHILDREN}", "{case}", "{fifo}"]'
        text = f'id = "{case}"\nversion = "1.0.0"\n{command}\npermissions = ["tools.register"]\n'
        (root / case / "becket.toml").write_text(text, encoding="utf-8")
    grants = {case: ["tools.register"] for case in cases}
    supervision = SupervisionPolicy(heartbeat=None)
    async with (
        Host([root], data=None, grants=grants, settings=HostSettings(supervision=supervision)) as host,
        anyio.create_task_group() as tasks,
    ):
        for case in cases:
            extension = await host.ready(case)
            if case != "deaf":
                tasks.start_soon(call, extension.call_tool, TOOLS.get(case, "stay"))
        await anyio.sleep_forever()


async def connect_peer(fifo: str, case: str, loop: str) -> None:
    command = [sys.executable, CHILDREN, case, fifo, "trio" if loop == "trio" else "asyncio"]
    async with Peer.connect_process(command, guard=case == "peer_deaf") as peer:
        await call(peer.call, "stay")
        await anyio.sleep_forever()


async def call(function: Callable[[str], Awaitable[Any]], name: str) -> None:
    try:
        await function(name)
    except BecketError:
        pass  # it is the end of the host that is looked at


async def main(loop: str, fifo: str, folder: str, *cases: str) -> None:
    async with anyio.create_task_group() as tasks:
        for case in cases:
            if case.startswith("peer_"):
                tasks.start_soon(connect_peer, fifo, case, loop)
        extensions = [case for case in cases if not case.startswith("peer_")]
        if extensions:
            tasks.start_soon(host_extensions, Path(folder), fifo, extensions)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(3))
    backend = "trio" if sys.argv[1] == "trio" else "asyncio"
    options = {"use_uvloop": True} if sys.argv[1] == "uvloop" else {}
    anyio.run(main, *sys.argv[1:], backend=backend, backend_options=options)
