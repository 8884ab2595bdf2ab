"""The client of pygls, which carries out the orders of `becket conform --host`. It knows nothing of becket."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

CAPABILITIES = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(configuration=True),
    window=types.WindowClientCapabilities(work_done_progress=True),
)


def create_client() -> LanguageClient:
    client = LanguageClient("conform", "1")

    @client.feature(types.WORKSPACE_CONFIGURATION)
    def configure(params: types.ConfigurationParams) -> list[None]:
        return [None for _ in params.items]

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        return None

    @client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
    def create_progress(params: types.WorkDoneProgressCreateParams) -> None:
        return None

    return client


def plain(value: Any) -> Any:
    """Returns plain JSON: pygls makes named tuples of objects that it does not know."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


async def execute(client: LanguageClient, command: str, argument: Any, timeout: float | None = None) -> Any:
    params = types.ExecuteCommandParams(command, [argument])
    return plain(await asyncio.wait_for(client.workspace_execute_command_async(params), timeout))


async def run_orders(client: LanguageClient) -> None:
    outcome: dict[str, Any] = {}
    while (order := await execute(client, "conform_next", {"outcome": outcome}))["do"] != "stop":
        timeout = order.get("timeout_ms", 60_000) / 1000
        try:
            outcome = {"result": await execute(client, order["name"], order["input"], timeout)}
        except Exception as error:
            outcome = {"error": str(error) or repr(error)}


async def main(command: list[str]) -> None:
    client = create_client()
    await client.start_io(*command)
    try:
        await client.initialize_async(types.InitializeParams(CAPABILITIES))
        client.initialized(types.InitializedParams())
        await run_orders(client)
        await client.shutdown_async(None)
        client.exit(None)
    finally:
        await client.stop()


asyncio.run(main(sys.argv[1:]))
