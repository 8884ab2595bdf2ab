"""The official client of MCP, as a program of its own: drives the server whose command it is given, and prints JSON.

It runs on an interpreter that has the official kit, and knows nothing of becket.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp import StdioServerParameters
from mcp.client.client import Client

warnings.simplefilter("ignore")  # the kit finds sampling and logging old-fashioned


async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="hello")
    return types.CreateMessageResult(role="assistant", content=content, model="small", stop_reason="endTurn")


async def elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


def plain(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_none=True, mode="json")


async def drive(command: list[str], mode: str) -> dict[str, Any]:
    report: dict[str, Any] = {}
    logged: list[Any] = []
    progress: list[Any] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append([done, total, message])

    program, *arguments = command
    parameters = StdioServerParameters(command=program, args=arguments)
    async with Client(
        parameters, mode=mode, sampling_callback=sample, elicitation_callback=elicit, logging_callback=log
    ) as client:
        report["version"] = client.protocol_version
        report["server"] = plain(client.server_info)
        if mode == "auto":  # only the handshake differs
            report["find"] = plain(await client.call_tool("find", {"text": "milk"}))
            return report
        report["capabilities"] = plain(client.server_capabilities)
        report["tools"] = [plain(tool) for tool in (await client.list_tools()).tools]
        await client.set_logging_level("info")
        report["add"] = plain(await client.call_tool("add", {"text": "call Ada"}))
        report["find"] = plain(await client.call_tool("find", {"text": "Ada"}))
        report["draw"] = plain(await client.call_tool("draw", {}))
        report["fail"] = plain(await client.call_tool("fail", {"how": "told"}))
        report["misused"] = plain(await client.call_tool("add", {"text": 5}))
        try:
            await client.call_tool("nope", {})
        except Exception as error:
            report["nope"] = error.error.code  # type: ignore[attr-defined]
        report["count"] = plain(await client.call_tool("count", {"to": 2}, progress_callback=on_progress))
        report["ask"] = plain(await client.call_tool("ask", {}))
        with anyio.move_on_after(0.2) as scope:
            await client.call_tool("wait", {})
        report["was_cancelled"] = scope.cancelled_caught
        report["prompts"] = [plain(prompt) for prompt in (await client.list_prompts()).prompts]
        report["prompt"] = plain(await client.get_prompt("summary", {"args": "a b"}))
        report["resources"] = [plain(resource) for resource in (await client.list_resources()).resources]
        report["resource"] = plain(await client.read_resource("note://0"))
        await client.send_ping()
    report["logged"] = logged
    report["progress"] = progress
    return report


if __name__ == "__main__":
    print(json.dumps(anyio.run(drive, sys.argv[2:], sys.argv[1])))
