"""A server of pygls as a program: its stdio, its signals, its end and its exit code."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import pytest
from lsprotocol import types
from tests.adapters.lsp.pygls_server import build

from becket import Peer
from becket.adapters import lsp
from becket.adapters.lsp.dialect import LSP
from becket.errors import ConnectionLost
from becket.framing import ContentLength

PROGRAM = [sys.executable, str(Path(__file__).with_name("pygls_server.py"))]
STUCK = """
import threading
from becket.adapters.lsp import pygls_bridge, pygls_server
from lsprotocol import types
from tests.adapters.lsp.pygls_server import build
pygls_bridge.STOP_GRACE = pygls_server.STOP_GRACE = 0.2
server = build()

@server.feature("own/stuck")
@server.thread()
def stuck(params):
    server.protocol.notify("own/began")
    threading.Event().wait()

pygls_server.run(server)
"""
CHATTY = """
print("> words@1.0.0 lsp\\n> node server.js\\n", flush=True)
from becket.adapters.lsp import pygls_server
from tests.adapters.lsp.pygls_server import build
pygls_server.run(build())
"""
FAST = """
import os
from becket.adapters.lsp import pygls_server
from lsprotocol import types
from pygls.lsp.server import LanguageServer
server = LanguageServer("fast", "1")

@server.feature(types.INITIALIZE)
def outlive(params):
    os.kill(params.process_id, 9)
    try:
        while True:
            os.kill(params.process_id, 0)  # until its parent has reaped it
    except ProcessLookupError:
        pass

pygls_server.run(server)
"""
pytestmark = [pytest.mark.process, pytest.mark.slow]
INITIALIZE = {"capabilities": {}, "processId": None, "rootUri": None}


async def exit_code_of(peer: Peer) -> int | None:
    with anyio.fail_after(60):
        await peer.wait_closed()
        await peer.aclose()  # which gives it two seconds to end by itself
    assert peer.process is not None
    return peer.process.exit_code


async def test_printed_text_never_reaches_the_wire(tmp_path: Path) -> None:
    lines: list[str] = []
    client = lsp.LanguageClient(root=tmp_path)
    async with client.connect_process(PROGRAM, on_stderr=lines.append):
        assert await client.peer.call("own/print") == "printed"
        async with client.open_document("file:///a.py", "x") as document:
            assert [found.message for found in await document.diagnostics()] == ["opened"]
    assert "this is not for the wire" in lines
    assert client.peer.process is not None
    assert client.peer.process.exit_code == 0


async def test_a_server_ends_on_a_signal_and_when_its_client_dies() -> None:
    async with (
        Peer.connect_process(PROGRAM, dialect=LSP) as first,
        Peer.connect_process(PROGRAM, dialect=LSP) as second,
    ):
        assert first.process is not None
        await first.call("initialize", INITIALIZE)
        await first.call("shutdown")
        os.kill(first.process.pid, signal.SIGTERM)
        assert await exit_code_of(first) == 0

        async with await anyio.open_process(["sleep", "60"]) as editor:
            await second.call("initialize", {**INITIALIZE, "processId": editor.pid})
            editor.kill()
            assert await exit_code_of(second) == 1


async def test_a_server_ends_when_its_client_dies_before_the_response() -> None:
    async with (
        await anyio.open_process(["sleep", "60"]) as editor,
        Peer.connect_process([sys.executable, "-c", FAST], dialect=LSP) as server,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(editor.wait)
        with suppress(ConnectionLost):  # the response may be lost with the link
            await server.call("initialize", {**INITIALIZE, "processId": editor.pid})
        assert await exit_code_of(server) == 1


async def test_a_function_that_does_not_return_does_not_prevent_the_exit() -> None:
    env = {"PYTHONPATH": os.getcwd()}
    async with Peer.connect_process([sys.executable, "-c", STUCK], dialect=LSP, env=env) as peer:
        began = anyio.Event()
        peer.on("own/began")(began.set)
        await peer.call("initialize", INITIALIZE)
        await peer.notify("own/stuck", {})
        with anyio.fail_after(60):
            await began.wait()
        await peer.call("shutdown")
        await peer.notify("exit")
        assert await exit_code_of(peer) == 4


def test_in_a_terminal_the_program_describes_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("becket.adapters.lsp.pygls_server.os.isatty", lambda _: True)

    with pytest.raises(SystemExit) as caught:
        lsp.run(build())
    assert caught.value.code == 2
    assert "counting 1.0 is a language server" in capsys.readouterr().err


EXTENSION = """
from becket.extension import CommandOutput, ExtensionServer, command


class Indexer(ExtensionServer):
    id, version = "indexer", "0.3"

    @command("index")
    async def index(self, args: list[str], out: CommandOutput) -> None:
        async with out.task("Index", total=len(args)) as task:
            for _ in args:
                await task.advance()
        await out.text(f"{len(args)} files")


Indexer().run()
"""


async def test_an_extension_that_a_client_of_lsp_starts_is_a_language_server(tmp_path: Path) -> None:
    (tmp_path / "indexer.py").write_text(EXTENSION, encoding="utf-8")
    logged: list[str] = []

    class Client(lsp.LanguageClient):
        def log_message(self, params: types.LogMessageParams) -> None:
            logged.append(params.message)

    with anyio.fail_after(60):
        async with Client(root=tmp_path).connect_process([sys.executable, "indexer.py"]) as client:
            provider = client.server_capabilities.execute_command_provider
            assert provider is not None
            assert list(provider.commands) == ["index"]
            requested = types.ExecuteCommandParams("index", ["a", "b"])
            async with client.stream(lsp.WORKSPACE_EXECUTE_COMMAND, requested) as run:
                kinds = [event.kind async for event in run]  # type: ignore[union-attr]
                await run.result()
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert logged == ["2 files"]
    assert client.peer.process is not None
    assert client.peer.process.exit_code == 0


@pytest.mark.process
@pytest.mark.loops
async def test_text_before_the_first_frame_is_skipped_if_the_framing_allows_it() -> None:
    command = [sys.executable, "-c", CHATTY]
    framing = partial(ContentLength, skip_stray=True)
    with anyio.fail_after(60):
        async with lsp.LanguageClient().connect_process(command, framing=framing) as client:
            assert client.server_capabilities.hover_provider


@pytest.mark.process
@pytest.mark.loops
async def test_text_before_the_first_frame_is_quoted_in_the_error() -> None:
    with anyio.fail_after(60), pytest.raises(ConnectionLost, match=r"words@1\.0\.0 lsp"):
        await lsp.LanguageClient().connect_process([sys.executable, "-c", CHATTY])
