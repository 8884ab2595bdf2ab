"""A host that does what the extension of `becket conform --host` orders: docs/conformance.md lists the orders.

`host.py COMMAND...` starts an extension by its command line, `host.py --dialect nexo COMMAND...` one of another system,
and `host.py FOLDER` the one whose manifest is in a folder.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from becket import BecketError, Host, HostSettings, connect_extension
from becket.contract import HookEvent, Text, TextDelta, user
from becket.host import Extension, RestartPolicy, RestartStrategy, SupervisionPolicy

GRANTS = [
    "tools.register",
    "tools.intercept",
    "providers.register",
    "memory.read",
    "memory.write",
    "config.write",
    "config.subscribe",
]


async def carry_out(extension: Extension, order: dict[str, Any]) -> dict[str, Any]:
    """Returns the outcome of one order."""
    match order["do"]:
        case "tool":
            timeout = order.get("timeout_ms", 60_000) / 1000
            return {"result": await extension.call_tool_json(order["name"], order["input"], timeout=timeout)}
        case "command":
            async with extension.invoke_command(order["name"], order["args"]) as run:
                texts = [event.content async for event in run if isinstance(event, Text)]
                return {"result": await run.result(), "texts": texts}
        case "stream":
            async with extension.stream(order["provider"], order["model"], messages=[user(order["text"])]) as response:
                return {"texts": [event.text async for event in response if isinstance(event, TextDelta)]}
        case "hook":
            result = await extension.handle_hook(HookEvent.before_tool_call(order["tool"], order["input"]))
            return {"result": {"action": type(result).__name__.lower()}}
        case unknown:
            return {"error": f"unknown order: {unknown}"}


def read_order(result: dict[str, Any]) -> dict[str, Any]:
    """Returns the order in the result of `conform_next`; Roder and MCP have it beside a text."""
    order: dict[str, Any] = result.get("data") or result.get("structured_content") or result
    return order


@asynccontextmanager
async def open_extension(words: list[str]) -> AsyncGenerator[Extension]:
    dialect = "native"
    if words[0] == "--dialect":
        dialect, words = words[1], words[2:]
    if await anyio.Path(words[0]).is_dir():
        never = SupervisionPolicy(restart=RestartPolicy(strategy=RestartStrategy.NEVER))
        async with Host(words, grants={"conform": GRANTS}, data=None, settings=HostSettings(supervision=never)) as host:
            yield await host.ready("conform")
    else:
        async with connect_extension(words, id="conform", grants=GRANTS, dialect=dialect) as extension:
            yield extension


async def main(words: list[str]) -> None:
    async with open_extension(words) as extension:
        outcome: dict[str, Any] = {}
        while True:
            order = read_order(await extension.call_tool_json("conform_next", {"outcome": outcome}))
            if order["do"] == "stop":
                return
            try:
                outcome = await carry_out(extension, order)
            except BecketError as error:
                outcome = {"error": str(error)}


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:] or shlex.split(os.environ["BECKET_CONFORM_CHILD"])))
    except BecketError as error:
        sys.exit(f"the extension failed: {error}")
