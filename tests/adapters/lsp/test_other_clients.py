"""Our server against the clients of others: pygls's own, and VS Code's JSON-RPC in Node."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient as PyglsClient

HERE = Path(__file__).parent
SERVER = HERE / "pygls_server.py"
MODULES = HERE.parents[2] / ".node_cache" / "node_modules"
NODE = shutil.which("node")

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(60)]


async def test_the_client_of_pygls_is_served() -> None:
    client = PyglsClient("tester", "1")
    reports: list[Any] = []

    @client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
    def choose(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        return params.actions[0] if params.actions else None

    @client.feature(types.PROGRESS)
    def report(params: types.ProgressParams) -> None:
        reports.append(params.value)

    await client.start_io(sys.executable, str(SERVER))
    async with asyncio.timeout(50):
        found = await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        assert found.server_info == types.ServerInfo("counting", "1.0")
        client.initialized(types.InitializedParams())
        item = types.TextDocumentItem("file:///a.py", "python", 1, "hello\n")
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        place = (types.TextDocumentIdentifier("file:///a.py"), types.Position(0, 0))

        assert await client.text_document_hover_async(types.HoverParams(*place)) == types.Hover("hello")
        requested = types.ExecuteCommandParams("count.ask")
        assert await client.workspace_execute_command_async(requested) == "yes"
        context = types.ReferenceContext(include_declaration=True)
        await client.text_document_references_async(types.ReferenceParams(context, *place, work_done_token="t"))
        assert [value["kind"] for value in reports] == ["begin", "report", "end"]

        pending = client.protocol.send_request_async(
            types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams(*place), msg_id="slow"
        )
        client.cancel_request(types.CancelParams("slow"))
        with pytest.raises(JsonRpcException) as caught:
            await pending
        assert caught.value.code == -32800

        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()


@pytest.mark.skipif(NODE is None, reason="there is no `node`")
@pytest.mark.skipif(
    not (MODULES / "vscode-jsonrpc").is_dir(), reason="vscode-jsonrpc is not installed: run `make node`"
)
def test_vscode_jsonrpc_is_served() -> None:
    done = subprocess.run(
        [NODE or "node", HERE / "vscode_client.js", sys.executable, SERVER],
        stdout=subprocess.PIPE,
        env={"NODE_PATH": str(MODULES), "PATH": "/usr/bin:/bin"},
        check=True,
        timeout=50,
    )

    assert json.loads(done.stdout) == {
        "server": {"name": "counting", "version": "1.0"},
        "hover": {"contents": "hello"},
        "chosen": "yes",
        "progress": ["begin", "report", "end"],
        "partial": 1,
        "cancelled": -32800,
        "unknown": -32601,
        "invalid": -32602,
        "diagnostics": ["opened"],
        "exit": 0,
    }
