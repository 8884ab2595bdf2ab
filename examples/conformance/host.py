"""A host that does what the extension of `becket conform --host` orders: docs/conformance.md lists the orders."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from typing import Any

from becket import BecketError, connect_extension
from becket.contract import HookEvent, Text, TextDelta, user
from becket.host import Extension

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
            async with extension.stream(order["provider"], order["model"], messages=[user(order["text"])]) as answer:
                return {"texts": [event.text async for event in answer if isinstance(event, TextDelta)]}
        case "hook":
            result = await extension.handle_hook(HookEvent.before_tool_call(order["tool"], order["input"]))
            return {"result": {"action": type(result).__name__.lower()}}
        case unknown:
            return {"error": f"unknown order: {unknown}"}


async def main(command: list[str]) -> None:
    async with connect_extension(command, id="conform", grants=GRANTS) as extension:
        outcome: dict[str, Any] = {}
        while (order := await extension.call_tool_json("conform_next", {"outcome": outcome}))["do"] != "stop":
            try:
                outcome = await carry_out(extension, order)
            except BecketError as error:
                outcome = {"error": str(error)}


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:] or shlex.split(os.environ["BECKET_CONFORM_CHILD"])))
    except BecketError as error:
        sys.exit(f"the extension failed: {error}")
