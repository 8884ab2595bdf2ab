"""A host with MCP servers among its extensions: the same names, permissions, restarts and records as for everyone."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.mcp.servers import HASTY, SERVERS, needs_node

from becket.adapters.mcp import CreateMessageResult, ElicitParams
from becket.adapters.mcp.hosted_servers import McpSettings
from becket.errors import ExtensionRefused, PeerCrashed, RemoteError
from becket.host.events import ExtensionRestarted, ExtensionToolsChanged
from becket.host.host import Host
from becket.host.host_settings import group_arguments
from becket.permissions.policies import Decision

pytestmark = pytest.mark.process

EARLY = "early_one_b80ab4"  # `early:one`, as the contract allows it
NOTEBOOK = Path(__file__).with_name("notebook.py")
CHANGING = """
import json, sys

tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("grow", "stumble")]
stumbles = False

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

print("ready when you are", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        offers = {"tools": {"listChanged": True}}
        version = message["params"]["protocolVersion"]
        say({"id": id, "result": {"protocolVersion": version, "capabilities": offers, "serverInfo": {"name": "c"}}})
    elif method == "notifications/initialized":
        tools.append({"name": "early:one", "inputSchema": {"type": "object"}})
        say({"method": "notifications/tools/list_changed"})
    elif method == "tools/list" and stumbles:
        stumbles = False
        tools.append({"name": "found", "inputSchema": {"type": "object"}})
        say({"method": "notifications/tools/list_changed"})
        say({"id": id, "error": {"code": -32603, "message": "not now"}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": tools}})
    elif method == "tools/call" and message["params"]["name"] == "stumble":
        stumbles = True
        say({"method": "notifications/tools/list_changed"})
        say({"id": id, "result": {"content": []}})
    elif method == "tools/call" and message["params"]["name"] == "grow":
        tools.append({"name": f"tool{len(tools)}", "inputSchema": {"type": "object"}})
        say({"method": "notifications/tools/list_changed"})
        say({"method": "notifications/tools/list_changed"})
        say({"id": id, "result": {"content": [{"type": "text", "text": "grown"}]}})
    elif method == "tools/call" and message["params"]["name"] == "tool4":
        sys.exit(3)
    elif method == "tools/call":
        say({"id": id, "result": {"content": [{"type": "text", "text": message["params"]["name"]}]}})
"""
RESTLESS = """
import json, sys

listings = 0

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        offers = {"tools": {"listChanged": True}}
        version = message["params"]["protocolVersion"]
        say({"id": id, "result": {"protocolVersion": version, "capabilities": offers, "serverInfo": {"name": "r"}}})
    elif method == "tools/list":
        listings += 1
        say({"id": id, "result": {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}})
        say({"method": "notifications/tools/list_changed"})
    elif method == "tools/call":
        say({"id": id, "result": {"content": [{"type": "text", "text": str(listings)}]}})
"""
ORACLE = """
from becket.contract.providers import Model, ProviderResult
from becket.extension import ExtensionServer, provider

class Oracle(ExtensionServer):
    id, version = "oracle", "1.0.0"

    @provider("local", models=[Model("small"), Model("large")])
    async def answer(self, request, out):
        return ProviderResult.of_text(f"{request.model_id} heard {request.messages[0].content[0]['text']}")

if __name__ == "__main__":
    Oracle().run()
"""


def list_servers(folder: Path, **servers: Any) -> None:
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def notebook(**members: Any) -> dict[str, Any]:
    return {"command": "python3", "args": [str(NOTEBOOK)], **members}


def hosting(folder: Path, **options: Any) -> Host:
    options.setdefault("data", None)
    return Host([folder], **group_arguments(options))


class Tools:
    """Waits for tools of a host, some of which are declared only after the start."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._changed = anyio.Event()
        host.on(ExtensionToolsChanged)(self._on_tools_changed)

    def _on_tools_changed(self, event: ExtensionToolsChanged) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_for(self, name: str) -> None:
        with anyio.fail_after(60):
            while self._host.tools.find(name) is None:
                await self._changed.wait()


async def test_the_tools_of_a_listed_server_are_listed_with_those_of_extensions(tmp_path: Path) -> None:
    list_servers(tmp_path, Notebook=notebook())
    async with hosting(tmp_path, grants={"notebook": ["tools.register"]}, data=tmp_path / "data", audit="full") as host:
        await host.ready("notebook")
        tool = host.tools.get("notebook:find")
        assert tool.name == "notebook_find"
        assert await host.call_tool("notebook_find", {"text": "milk"}) == "buy milk"
        with pytest.raises(RemoteError, match="no such note"):
            await host.call_tool("notebook_fail", {"how": "told"})
        (status,) = host.status()
        assert status.tools == len(host.tools)
    audit = (tmp_path / "data" / "audit.jsonl").read_text(encoding="utf-8")
    assert '"dialect":"mcp"' in audit
    assert '"tool.call"' in audit


async def test_a_server_without_consent_is_not_started(tmp_path: Path) -> None:
    list_servers(tmp_path, notebook=notebook())
    async with hosting(tmp_path) as host:
        with pytest.raises(ExtensionRefused) as caught:
            await host.ready("notebook")
        assert "tools.register" in caught.value.because


def install(folder: Path, name: str = "server") -> Path:
    """Writes a program that runs the notebook, with this Python."""
    folder.mkdir(parents=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{NOTEBOOK.read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    return program


async def test_a_program_by_an_absolute_path_starts_after_consent_that_shows_the_path(tmp_path: Path) -> None:
    program = install(tmp_path / "venv" / "bin")
    (tmp_path / "project").mkdir()
    list_servers(tmp_path / "project", notes={"command": str(program)})
    prompts: list[str] = []

    def ask(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return True

    with anyio.fail_after(60):
        async with hosting(tmp_path / "project") as host:
            with pytest.raises(ExtensionRefused):
                await host.ready("notes")
        async with hosting(tmp_path / "project", data=tmp_path / "data", ask=ask) as host:
            await host.ready("notes")
            assert await host.call_tool("notes_find", {"text": "milk"}) == "buy milk"

    assert prompts[0].splitlines()[0] == f"notes 0.0.0 wants to run: {program}"


@pytest.mark.parametrize("is_absolute", [True, False])
async def test_a_program_in_node_modules_starts_and_a_change_behind_its_link_prompts_again(
    tmp_path: Path, is_absolute: bool
) -> None:
    project = tmp_path / "project"
    program = install(project / "node_modules" / "notes", "cli")
    link = project / "node_modules" / ".bin" / "notes"
    link.parent.mkdir()
    link.symlink_to("../notes/cli")
    list_servers(project, notes={"command": str(link) if is_absolute else "./node_modules/.bin/notes"})
    prompts: list[str] = []

    async def start() -> str:
        def ask(prompt: str, decision: Decision) -> bool:
            prompts.append(prompt)
            return True

        async with hosting(project, data=tmp_path / "data", ask=ask) as host:
            await host.ready("notes")
            return await host.call_tool("notes_find", {"text": "milk"})

    with anyio.fail_after(60):
        assert await start() == "buy milk"
        await start()
        assert len(prompts) == 1
        program.write_text(program.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        await start()

    assert len(prompts) == 2
    assert "node_modules/.bin/notes" in prompts[0].splitlines()[0]


async def test_a_virtual_environment_in_the_project_is_used_by_a_relative_path(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / "changing.py").write_text(CHANGING, encoding="utf-8")
    list_servers(tmp_path, changing={"command": ".venv/bin/python", "args": ["changing.py"]})

    async with hosting(tmp_path, grants={"changing": ["tools.register"]}) as host:
        await host.ready("changing")
        assert await host.call_tool("changing_grow") == "grown"


@pytest.mark.loops
async def test_a_server_that_ends_is_started_again_with_the_same_tools(tmp_path: Path) -> None:
    (tmp_path / "changing.py").write_text(CHANGING, encoding="utf-8")
    list_servers(tmp_path, changing={"command": "python3", "args": ["changing.py"]})
    restarted = anyio.Event()
    async with hosting(tmp_path, grants={"changing": ["tools.register"]}) as host:

        @host.on(ExtensionRestarted)
        def receive(event: ExtensionRestarted) -> None:
            restarted.set()

        tools = Tools(host)
        await host.ready("changing")
        await host.call_tool("changing_grow")
        await tools.wait_for("changing:tool3")
        await host.call_tool("changing_grow")
        await tools.wait_for("changing:tool4")
        with pytest.raises(PeerCrashed):
            await host.call_tool("changing_tool4")
        with anyio.fail_after(60):
            await restarted.wait()
        assert await host.call_tool("changing_grow") == "grown"


async def test_tools_that_change_while_the_server_starts_are_listed_in_the_end_under_their_own_names(
    tmp_path: Path,
) -> None:
    (tmp_path / "changing.py").write_text(CHANGING, encoding="utf-8")
    list_servers(tmp_path, changing={"command": "python3", "args": ["changing.py"]})
    async with hosting(tmp_path, grants={"changing": ["tools.register"]}) as host:
        tools = Tools(host)
        await host.ready("changing")
        await tools.wait_for(f"changing:{EARLY}")
        assert await host.call_tool(f"changing:{EARLY}") == "early:one"


@pytest.mark.loops
async def test_tools_that_change_again_while_they_cannot_be_listed_are_listed_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "changing.py").write_text(CHANGING, encoding="utf-8")
    list_servers(tmp_path, changing={"command": "python3", "args": ["changing.py"]})
    async with hosting(tmp_path, grants={"changing": ["tools.register"]}) as host:
        tools = Tools(host)
        await host.ready("changing")
        await tools.wait_for(f"changing:{EARLY}")
        await host.call_tool("changing_stumble")
        await tools.wait_for("changing:found")


@pytest.mark.loops
async def test_the_listings_of_a_server_whose_tools_change_all_the_time_are_limited(tmp_path: Path) -> None:
    (tmp_path / "restless.py").write_text(RESTLESS, encoding="utf-8")
    list_servers(tmp_path, restless={"command": "python3", "args": ["restless.py"]})
    async with hosting(tmp_path, grants={"restless": ["tools.register"]}) as host:
        await host.ready("restless")
        counts = [int(await host.call_tool("restless_count")) for _ in range(100)]
    assert counts[-1] < 50  # one listing takes no longer than one call: there was time for a hundred of them


async def test_the_servers_of_a_manifest_are_extensions_of_their_own_that_need_their_own_grants(tmp_path: Path) -> None:
    folder = tmp_path / "oracle"
    folder.mkdir()
    (folder / "oracle.py").write_text(ORACLE, encoding="utf-8")
    manifest = f"""
        id = "oracle"
        version = "1.0.0"
        command = ["python3", "oracle.py"]
        permissions = ["providers.register"]

        [mcp_servers.notes]
        command = "python3"
        args = ["{NOTEBOOK}"]
    """
    (folder / "becket.toml").write_text(textwrap.dedent(manifest), encoding="utf-8")
    grants = {"oracle": ["providers.register"], "oracle.notes": ["tools.register"]}
    async with hosting(tmp_path, grants=grants) as host:
        await host.ready("oracle.notes")
        assert await host.call_tool("oracle_notes_find", {"text": "milk"}) == "buy milk"
    async with hosting(tmp_path, grants={"oracle": ["providers.register"]}) as host:
        await host.ready("oracle")
        with pytest.raises(ExtensionRefused):
            await host.ready("oracle.notes")


@pytest.mark.loops
async def test_a_server_with_the_permission_uses_sampling_and_elicitation_of_the_host(tmp_path: Path) -> None:
    folder = tmp_path / "oracle"
    folder.mkdir()
    (folder / "oracle.py").write_text(ORACLE, encoding="utf-8")
    manifest = ['id = "oracle"', 'version = "1.0.0"', 'command = ["python3", "oracle.py"]']
    manifest.append('permissions = ["providers.register"]')
    (folder / "becket.toml").write_text("\n".join(manifest), encoding="utf-8")
    asks = ["tools.register", "session.drive"]
    list_servers(tmp_path, notebook=notebook(permissions=asks), other=notebook())

    def elicit(requested: ElicitParams) -> dict[str, str]:
        return {"name": "Ada"}

    grants = {"oracle": ["providers.register"], "notebook": asks, "other": ["tools.register"]}
    async with hosting(tmp_path, grants=grants, dialects={"mcp": McpSettings(elicit=elicit)}) as host:
        for id in grants:
            await host.ready(id)
        assert await host.call_tool("notebook_ask") == "large heard hi {'name': 'Ada'}"
        with pytest.raises(RemoteError):
            await host.call_tool("other_ask")
        host["notebook"].gate.revoke("session.drive")
        with pytest.raises(RemoteError):
            await host.call_tool("notebook_ask")


async def test_a_host_may_respond_for_a_model_itself(tmp_path: Path) -> None:
    asks = ["tools.register", "session.drive"]
    list_servers(tmp_path, notebook=notebook(permissions=asks))
    settings = McpSettings(
        sample=lambda requested: CreateMessageResult.from_text("mine", "own"),
        elicit=lambda requested: {},
        roots=("/work",),
    )
    async with hosting(tmp_path, grants={"notebook": asks}, dialects={"mcp": settings}) as host:
        await host.ready("notebook")
        assert await host.call_tool("notebook_ask") == "mine {}"


@needs_node
async def test_the_reference_server_is_an_extension_like_any_other(tmp_path: Path) -> None:
    arguments = [str(SERVERS / "server-everything" / "dist" / "index.js"), "stdio"]
    list_servers(tmp_path, everything={"command": "node", "args": arguments})
    settings = McpSettings(roots=("/work",))
    async with hosting(
        tmp_path, grants={"everything": ["tools.register"]}, dialects={"mcp": settings}, limits=HASTY
    ) as host:
        tools = Tools(host)
        await host.ready("everything")
        assert await host.call_tool("everything_echo", {"message": "hi"}) == "Echo: hi"
        # It offers this one only to a client with roots, and announces it after the start.
        await tools.wait_for("everything:get-roots-list")
        assert "/work" in await host.call_tool("everything_get-roots-list")
