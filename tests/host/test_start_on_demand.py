"""Extensions of systems that start them only when they are needed."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from becket.errors import NotRunning
from becket.host import Host
from becket.host.lifecycle import ExtensionState

pytestmark = pytest.mark.loops

WORKSHOP = Path(__file__).parents[2] / "examples" / "dialects" / "roder" / "workshop"
MANIFEST = """
id = "coin"
name = "Coin"
version = "0.1.0"
api_version = "^0.1"
description = "Tosses a coin."

[[provides]]
type = "tool_provider"
id = "coins"
[[provides.tools]]
name = "toss"
description = "Heads, always."
parameters = { type = "object" }

[launch]
command = "python3"
args = ["coin.py"]
"""
PROGRAM = """
import json, sys

manifest = open("roder-extension.toml", "rb").read()
checksum = 0xCBF29CE484222325
for byte in manifest:
    checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
tool = {"name": "toss", "description": "Heads, always.", "parameters": {"type": "object"}}
service = {"type": "tool_provider", "id": "coins", "tools": [tool]}
for line in sys.stdin:
    asked = json.loads(line)
    result = {"content": "heads", "isError": False}
    if asked["method"] == "extension/initialize":
        open("started", "w").close()
        result = {
            "protocolVersion": "0.2.0",
            "extensionId": "coin",
            "services": [service],
            "manifestChecksum": f"{checksum:016x}",
        }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if asked["method"] == "extension/shutdown":
        break
"""


@pytest.fixture
def coin(tmp_path: Path) -> Path:
    folder = tmp_path / "coin"
    folder.mkdir()
    (folder / "roder-extension.toml").write_text(MANIFEST, encoding="utf-8")
    (folder / "coin.py").write_text(PROGRAM, encoding="utf-8")
    return folder


async def test_an_unused_extension_is_not_started_and_the_first_call_starts_it(coin: Path) -> None:
    with anyio.fail_after(60):
        async with Host([coin.parent], data=None, grants={"coin": ["tools.register"]}) as host:
            await host.settled()
            assert host["coin"].state is ExtensionState.STOPPED
            assert not (coin / "started").exists()
            assert await host.call_tool("coin:toss") == "heads"
            assert host["coin"].state is ExtensionState.READY


async def test_waiting_for_an_extension_starts_it(coin: Path) -> None:
    with anyio.fail_after(60):
        async with Host([coin.parent], data=None, grants={"coin": ["tools.register"]}) as host:
            assert (await host.ready("coin")).state is ExtensionState.READY


async def test_a_stopped_extension_is_not_started_by_a_call(coin: Path) -> None:
    with anyio.fail_after(60):
        async with Host([coin.parent], data=None, grants={"coin": ["tools.register"]}) as host:
            extension = await host.ready("coin")
            await extension.stop()
            with pytest.raises(NotRunning):
                await extension.call_tool("toss")
            await extension.start()
            assert await extension.call_tool("toss") == "heads"


async def test_an_extension_with_models_is_started_to_list_them() -> None:
    with anyio.fail_after(60):
        async with Host([WORKSHOP], data=None, grants={"workshop": ["tools.register", "providers.register"]}) as host:
            await host.settled()
            assert host["workshop"].state is ExtensionState.READY
