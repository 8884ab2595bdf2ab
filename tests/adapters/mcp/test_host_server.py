"""A host as an MCP server, and `becket mcp serve`: extensions of any kind for any client."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import click
import pytest

from becket.adapters.mcp import ImageContent, McpClient, ToolsChanged
from becket.adapters.mcp.dialect import MCP
from becket.adapters.mcp.host_server import McpHostServer
from becket.cli.main import cli
from becket.cli.mcp import find_server
from becket.errors import RemoteError
from becket.host.host import Host
from becket.host.host_settings import group_arguments
from becket.peer.peer import Peer
from becket.testing.pairs import memory_transports

pytestmark = pytest.mark.process
NOTEBOOK = Path(__file__).with_name("notebook.py")
BECKET = [sys.executable, "-m", "becket"]
COUNTER = """
from becket.extension import ExtensionServer, hook, tool
from becket.contract.hooks import Block, Continue, Replace
from becket.adapters.mcp import ImageContent

class Counter(ExtensionServer):
    id, version = "counter", "1.0.0"

    @tool("Adds two numbers.")
    def add(self, a: int, b: int) -> int:
        return a + b

    @tool("Fails.")
    def fail(self) -> None:
        raise ValueError("a secret")

    @tool("Draws.")
    def draw(self, count: int) -> object:
        picture = ImageContent("AAAA", "image/png")
        return picture if count == 1 else [picture] * count

    @tool("Repeats a letter.")
    def repeat(self, letter: str, times: int) -> dict[str, str]:
        return {"text": letter * times}

    @hook("before_tool_call")
    async def guard(self, event):
        return Block("thirteen is unlucky") if 13 in event.tool_input.values() else Continue()

    @hook("after_tool_call")
    async def censor(self, event):
        return Replace("[no z]") if "z" in event.tool_output else Continue()

if __name__ == "__main__":
    Counter().run()
"""
MANIFEST = """
id = "counter"
version = "1.0.0"
command = ["python3", "counter.py"]
permissions = ["tools.register", "tools.intercept", "tools.transform_output"]
hooks = [{ hook = "before_tool_call" }, { hook = "after_tool_call" }]
"""
GROWING = """
import json, sys

step = 0

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}}})
    elif method == "tools/list":
        tool = {"name": "grow", "description": f"step {step}", "inputSchema": {"type": "object"}}
        say({"id": id, "result": {"tools": [tool]}})
    elif method == "tools/call":
        step += 1
        say({"id": id, "result": {"content": []}})
        say({"method": "notifications/tools/list_changed"})
"""
COUNTER_GRANTS = ["tools.register", "tools.intercept", "tools.transform_output"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "counter"
    place.mkdir()
    (place / "counter.py").write_text(COUNTER, encoding="utf-8")
    (place / "becket.toml").write_text(MANIFEST, encoding="utf-8")
    return tmp_path


@asynccontextmanager
async def serving(folder: Path, **options: Any) -> AsyncGenerator[tuple[McpClient, Host], None]:
    ours, theirs = memory_transports()
    async with Host(
        [folder],
        grants={"counter": COUNTER_GRANTS, "growing": ["tools.register"]},
        data=None,
        **group_arguments(options),
    ) as host:
        server = McpHostServer(host)
        async with (
            anyio.create_task_group() as tasks,
            Peer.over(theirs, dialect=MCP, methods=server.build_registry(), name="client") as peer,
        ):
            tasks.start_soon(server.notify_tool_changes, peer)
            async with McpClient.over(ours) as client:
                yield client, host


@pytest.mark.loops
async def test_a_client_sees_the_tools_of_all_extensions_and_calls_them_between_their_hooks(folder: Path) -> None:
    async with serving(folder) as (client, _):
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["counter_add", "counter_draw", "counter_fail", "counter_repeat"]
        added = await client.call_tool("counter_add", {"a": 1, "b": 2})
        assert (added.text, added.is_error) == ("3", None)
        blocked = await client.call_tool("counter_add", {"a": 1, "b": 13})
        assert blocked.is_error
        assert "thirteen is unlucky" in blocked.text
        failed = await client.call_tool("counter_fail")
        assert failed.is_error
        assert "secret" not in failed.text
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("nope")
        assert caught.value.code == -32602
        await client.ping()


async def test_pictures_objects_and_long_texts_reach_the_client_unchanged(folder: Path) -> None:
    async with serving(folder) as (client, _):
        for count in (1, 2):
            drawn = await client.call_tool("counter_draw", {"count": count})
            assert drawn.content == (ImageContent("AAAA", "image/png"),) * count
        long = await client.call_tool("counter_repeat", {"letter": "a", "times": 100_000})
        assert long.structured_content == {"text": "a" * 100_000}
        censored = await client.call_tool("counter_repeat", {"letter": "z", "times": 3})
        assert (censored.text, censored.structured_content) == ("[no z]", None)


async def test_a_client_is_notified_when_the_tools_change(folder: Path) -> None:
    changed = anyio.Event()
    async with serving(folder) as (client, host):

        @client.on(ToolsChanged)
        def receive(event: ToolsChanged) -> None:
            changed.set()

        assert len(await client.list_tools()) == 4
        await host["counter"].stop()
        with anyio.fail_after(60):
            await changed.wait()
        assert await client.list_tools() == ()


async def test_a_client_is_notified_when_a_tool_changes_under_the_same_name(folder: Path) -> None:
    changed = anyio.Event()
    (folder / "growing.py").write_text(GROWING, encoding="utf-8")
    entry = {"command": "python3", "args": ["growing.py"]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"growing": entry}}), encoding="utf-8")
    async with serving(folder, only=["growing"]) as (client, _):

        @client.on(ToolsChanged)
        def receive(event: ToolsChanged) -> None:
            changed.set()

        (before,) = await client.list_tools()
        await client.call_tool(before.name)
        with anyio.fail_after(60):
            await changed.wait()
        (after,) = await client.list_tools()
        assert (before.description, after.description) == ("step 0", "step 1")


async def test_a_client_that_has_not_sent_initialize_gets_nothing(folder: Path) -> None:
    ours, theirs = memory_transports()
    async with (
        Host([folder], data=None) as host,
        Peer.over(theirs, dialect=MCP, methods=McpHostServer(host).build_registry()),
        Peer.over(ours, dialect=MCP) as raw,
    ):
        for method, params in (("tools/list", None), ("tools/call", {"name": "counter_add"})):
            with pytest.raises(RemoteError):
                await raw.call(method, params)


async def test_a_folder_of_extensions_is_served_from_the_command_line(folder: Path) -> None:
    words = ["mcp", "serve", "--no-data", *(f"--grant=counter={one}" for one in COUNTER_GRANTS), str(folder)]
    async with McpClient.connect_process([*BECKET, *words], on_stderr=print) as client:
        assert client.server.server_info.name == "becket"
        assert (await client.call_tool("counter_add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.parametrize("named", ["{file}", "{file}:Notebook"])
async def test_a_class_in_a_file_is_served_from_the_command_line(named: str) -> None:
    command = [*BECKET, "mcp", "serve", named.format(file=NOTEBOOK)]
    async with McpClient.connect_process(command, on_stderr=print) as client:
        assert client.server.server_info.name == "notebook"
        assert (await client.call_tool("find")).text == "buy milk"


def test_a_class_is_found_by_its_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "counter")
    monkeypatch.setattr(sys, "path", [*sys.path])

    assert find_server("counter:Counter").id == "counter"


@pytest.mark.parametrize(
    "named", ["nowhere.py", "nothing", "no_such_module_here:Thing", str(NOTEBOOK) + ":Other", "json:JSONDecoder"]
)
def test_an_argument_that_names_no_extension_is_reported(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])

    with pytest.raises(click.BadParameter):
        find_server(named)


def test_the_classes_of_a_file_are_listed_where_none_was_named() -> None:
    with pytest.raises(click.BadParameter, match="which has: Notebook"):
        find_server(f"{NOTEBOOK}:Other")


@pytest.mark.parametrize("text", ["def (", "import no_such_module_here", "raise KeyError('x')", "{server}(1)"])
def test_an_authoring_mistake_is_reported_as_such(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "mistaken.py"
    file.write_text(text.replace("{server}", "from becket.extension import ExtensionServer as E\nE"), encoding="utf-8")

    with pytest.raises(click.BadParameter, match=r"mistaken\.py cannot be loaded"):
        find_server(str(file))


def test_output_while_a_file_is_loaded_is_not_sent_to_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "chatty.py"
    file.write_text(f"print('hello')\n{COUNTER}", encoding="utf-8")

    assert find_server(str(file)).id == "counter"
    assert capsys.readouterr() == ("", "hello\n")


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    from click.testing import CliRunner

    done = CliRunner().invoke(cli, ["mcp", "serve", str(tmp_path), str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "nowhere" in done.stderr
