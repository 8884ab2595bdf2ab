"""A language server as an extension of a host: found, started, supervised, and used by a client."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest
from lsprotocol import types

from becket.adapters import lsp
from becket.errors import LocalProtocolError, NotSupported
from becket.host import Host, connect_extension

SERVER = Path(__file__).with_name("pygls_server.py")
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(60)]

MANIFEST = """
id = "counting"
version = "1.0.0"
dialect = "lsp"
command = [{python!r}, "server.py"]
"""


def write_server(root: Path) -> None:
    folder = root / "counting"
    folder.mkdir(parents=True)
    (folder / "becket.toml").write_text(MANIFEST.format(python=sys.executable), encoding="utf-8")
    (folder / "server.py").write_text(SERVER.read_text(encoding="utf-8"), encoding="utf-8")


class Editor(lsp.LanguageClient):
    """A client that records the requests of its server."""

    def __init__(self) -> None:
        super().__init__(settings={"depth": 3})
        self.created: list[int | str] = []

    async def apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        return types.ApplyWorkspaceEditResult(applied=True)

    async def create_progress(self, params: types.WorkDoneProgressCreateParams) -> None:
        self.created.append(params.token)


async def test_open_documents_are_sent_again_to_a_restarted_server(tmp_path: Path) -> None:
    write_server(tmp_path)
    editor = Editor()
    with anyio.fail_after(50):
        async with Host([tmp_path], data=None, methods=editor.methods) as host:
            server = await host.ready("counting")
            editor.follow(server)
            assert editor.server_info == types.ServerInfo("counting", "1.0")
            assert "hover" in [capability.name for capability in server.capabilities]

            async with editor.open_document("file:///a.py", "one\n") as document:
                await document.change("two\n")
                place = types.HoverParams(document.identifier, types.Position(0, 0))
                assert await editor.call(lsp.TEXT_DOCUMENT_HOVER, place) == types.Hover("two")

                async with server.invoke_command("count.rename") as run:
                    assert await run.result() is True

                indexed = types.ExecuteCommandParams("count.index", [4])
                assert await server.call(lsp.WORKSPACE_EXECUTE_COMMAND, indexed) == 4
                assert editor.created == ["index"]
                assert await server.call("own/settings", {"section": "depth"}) == {"found": 3}
                assert (await server.call("own/events"))["settings"] == {"depth": 3}
                editor.registrations["old"] = types.Registration("old", "textDocument/hover")

                first = server.peer
                assert first is not None
                assert first.process is not None
                os.kill(first.process.pid, signal.SIGKILL)
                await first.wait_closed()
                await document.change("three\n")  # there is no server to notify
                assert [found.message for found in await document.diagnostics()] == ["opened"]
                assert await editor.call(lsp.TEXT_DOCUMENT_HOVER, place) == types.Hover("three")
                assert server.restarts == 1
                assert editor.registrations == {}
                assert (await server.call("own/events"))["settings"] == {"depth": 3}


async def test_a_client_does_not_follow_a_server_that_no_host_restarts() -> None:
    editor = Editor()
    with anyio.fail_after(50):
        async with connect_extension([sys.executable, SERVER], id="counting", dialect="lsp") as server:
            with pytest.raises(NotSupported, match="counting was connected without a host"):
                editor.follow(server)

            assert not editor.is_restarting
            with pytest.raises(LocalProtocolError, match="not connected"):
                await editor.call(lsp.SHUTDOWN)
