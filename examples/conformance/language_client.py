"""A language client for `becket conform --host`: does what the server of the suite orders (docs/conformance.md)."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from typing import Any

from lsprotocol.types import ExecuteCommandParams

from becket import BecketError
from becket.adapters.lsp import WORKSPACE_EXECUTE_COMMAND, LanguageClient


async def execute(client: LanguageClient, command: str, argument: object, timeout: float | None = None) -> Any:
    params = ExecuteCommandParams(command, [argument])
    return await client.call(WORKSPACE_EXECUTE_COMMAND, params, timeout=timeout)


async def main(command: list[str]) -> None:
    async with LanguageClient(root=".").connect_process(command) as client:
        outcome: dict[str, Any] = {}
        while (order := await execute(client, "conform_next", {"outcome": outcome}))["do"] != "stop":
            try:
                timeout = order.get("timeout_ms", 60_000) / 1000
                outcome = {"result": await execute(client, order["name"], order["input"], timeout)}
            except BecketError as error:
                outcome = {"error": str(error)}


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:] or shlex.split(os.environ["BECKET_CONFORM_CHILD"])))
    except BecketError as error:
        sys.exit(f"the server failed: {error}")
