"""Output schemas and structured content, for clients of an extension and for hosts of a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from msgspec import Struct
from tests.adapters.mcp.servers import SERVERS, needs_node
from tests.adapters.mcp.test_extension_as_server import opened

from becket.adapters.mcp import ImageContent, McpClient, TextContent, ToolResult
from becket.adapters.mcp.dialect import MCP
from becket.adapters.mcp.host_server import McpHostServer
from becket.extension import ExtensionServer, tool
from becket.host import Host
from becket.peer.peer import Peer
from becket.testing import connected, memory_transports

pytestmark = pytest.mark.loops

GRANTS = ["tools.register"]


class Place(Struct):
    name: str
    north: float = 0.0


class Atlas(ExtensionServer):
    id, version = "atlas", "1.0.0"

    @tool("Finds a place.")
    async def find(self, name: str) -> Place:
        return Place(name, 50.7)

    @tool("Lists places.")
    def places(self) -> list[Place]:
        return [Place("Bonn"), Place("Cork")]

    @tool("Names a place.")
    async def name(self) -> str:
        return "Bonn"

    @tool("Counts places.")
    async def count(self) -> int:
        return 2

    @tool("Finds a place that may not be there.")
    async def search(self, name: str = "") -> Place | None:
        return Place(name) if name else None

    @tool("Draws a place.")
    async def draw(self) -> list[TextContent | ImageContent]:
        return [TextContent("Bonn")]

    @tool("Returns what MCP has words for.")
    async def shape(self) -> ToolResult:
        return ToolResult((TextContent("Bonn"),), {"own": 1})

    @tool("Returns another type than it says.")
    async def lie(self) -> Place:
        return "Bonn"  # type: ignore[return-value]


EXPECTED: dict[str, Any] = {
    "find": {"name": "Bonn", "north": 50.7},
    "places": {"result": [{"name": "Bonn", "north": 0.0}, {"name": "Cork", "north": 0.0}]},
    "name": {"result": "Bonn"},
    "count": {"result": 2},
    "search": {"result": None},
}
INPUTS = {"find": {"name": "Bonn"}}


async def check_client(client: McpClient, prefix: str = "") -> None:
    """Proves that each structured result matches the schema of its tool."""
    schemas = {each.name.removeprefix(prefix): each.output_schema for each in await client.list_tools()}
    for name, expected in EXPECTED.items():
        result = await client.call_tool(prefix + name, INPUTS.get(name, {}))
        assert result.structured_content == expected
        assert schemas[name]["type"] == "object"
        jsonschema.validate(result.structured_content, schemas[name])
    there = await client.call_tool(prefix + "search", {"name": "Cork"})
    assert there.structured_content == {"result": {"name": "Cork", "north": 0.0}}
    assert schemas["draw"] is None
    assert schemas["shape"] is None
    assert (await client.call_tool(prefix + "name")).text == "Bonn"
    lie = await client.call_tool(prefix + "lie")
    assert lie.is_error
    assert lie.structured_content is None  # clients compare it with the schema also where it is an error
    assert "Place" not in lie.text


async def test_an_extension_that_is_a_server_structures_its_results() -> None:
    async with opened(Atlas()) as client:
        await check_client(client)
        shaped = await client.call_tool("shape")
        assert (shaped.text, shaped.structured_content) == ("Bonn", {"own": 1})


ATLAS = Path(__file__).read_text(encoding="utf-8").partition("class Place")[2].partition("EXPECTED")[0]
PROGRAM = f"""
from msgspec import Struct
from becket.extension import ExtensionServer, tool
from becket.adapters.mcp import ImageContent, TextContent, ToolResult

class Place{ATLAS}

if __name__ == "__main__":
    Atlas().run()
"""
MANIFEST = f"""
id = "atlas"
version = "1.0.0"
command = ["{sys.executable}", "atlas.py"]
permissions = ["tools.register"]
"""


@pytest.mark.process
async def test_a_host_that_is_a_server_structures_the_results_of_its_extensions(tmp_path: Path) -> None:
    place = tmp_path / "atlas"
    place.mkdir()
    (place / "atlas.py").write_text(PROGRAM, encoding="utf-8")
    (place / "becket.toml").write_text(MANIFEST, encoding="utf-8")
    ours, theirs = memory_transports()
    with anyio.fail_after(60):
        async with Host([tmp_path], grants={"atlas": GRANTS}, data=None) as host:
            methods = McpHostServer(host).build_registry()
            async with Peer.over(theirs, dialect=MCP, methods=methods), McpClient.over(ours) as client:
                await check_client(client, "atlas_")


async def test_a_host_gets_the_output_schema_and_the_structured_content_of_a_server() -> None:
    async with connected(Atlas(), grants=GRANTS, dialect=MCP) as (host, _):
        schemas = {each.name: each.output_schema for each in host.tools}
        assert schemas["find"]["required"] == ["name"]
        assert schemas["count"]["properties"] == {"result": {"type": "integer"}}
        assert schemas["draw"] is None
        found = await host.call_tool_json("find", {"name": "Bonn"})
        assert found["structured_content"] == EXPECTED["find"]
        assert (await host.call_tool_json("count", {}))["structured_content"] == {"result": 2}
        assert await host.call_tool("name", {}) == "Bonn"


CLIENT = """
const [sdk, python, program] = process.argv.slice(2);
const { Client } = await import(sdk + "/dist/esm/client/index.js");
const { StdioClientTransport } = await import(sdk + "/dist/esm/client/stdio.js");
const client = new Client({ name: "client", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: python, args: [program], stderr: "ignore" }));
await client.listTools();
console.log(JSON.stringify([await client.callTool({ name: "count" }), await client.callTool({ name: "lie" })]));
await client.close();
"""


@needs_node
@pytest.mark.process
def test_the_official_client_in_typescript_accepts_results_and_errors_of_structured_tools(tmp_path: Path) -> None:
    (tmp_path / "atlas.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "client.mjs").write_text(CLIENT, encoding="utf-8")
    command = ["node", str(tmp_path / "client.mjs"), str(SERVERS / "sdk"), sys.executable, str(tmp_path / "atlas.py")]
    run = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
    counted, failed = json.loads(run.stdout)
    assert counted["structuredContent"] == {"result": 2}
    assert (failed["isError"], failed["content"]) == (True, [{"type": "text", "text": "internal error"}])
