"""An extension in another language, written from the schemas alone, is hosted like any other."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from typing import Any

import msgspec
import pytest
from tests.docs.schemas import check_message
from tests.examples.example_programs import EXTENSIONS, PATIENCE, started

from becket import Limits, RemoteError
from becket.contract.commands import CommandDone, Table
from becket.contract.info import BuildInfo, ExtensionInfo
from becket.errors import BadValue
from becket.framing import ContentLength

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
]


async def test_the_tool_throws_dice_and_stores_the_result() -> None:
    async with started("dice") as dice:
        result = await dice.call_tool_json("roll", {"dice": 3, "sides": 20})
        assert len(result["thrown"]) == 3
        assert all(1 <= thrown <= 20 for thrown in result["thrown"])
        assert re.fullmatch(r"1d6: [1-6]", await dice.call_tool("roll"))
        async with dice.invoke_command("throws") as run:
            (table, done) = [event async for event in run]
        assert isinstance(table, Table)
        assert [row[0] for row in table.rows] == ["1d6", "3d20"]
        assert done == CommandDone()


async def test_dice_completes_the_handshake_describes_itself_and_ends() -> None:
    async with started("dice") as dice:
        assert dice.features == frozenset()
        assert dice.about == ExtensionInfo(BuildInfo("cpu", version="1.0.0"))
        process = dice.peer.process
    assert process is not None
    assert process.exit_code == 0


async def test_stderr_is_logged_with_its_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "becket.ext.dice")
    async with started("dice"):
        pass
    (record,) = [record for record in caplog.records if record.name == "becket.ext.dice"]
    assert (record.levelname, record.getMessage()) == ("INFO", "dice: the dice are on the table")


async def test_inputs_are_checked_before_they_reach_the_extension() -> None:
    async with started("dice") as dice:
        with pytest.raises(BadValue):
            await dice.call_tool("roll", {"dice": 1_000_000})


async def test_without_memory_the_tool_reports_it() -> None:
    async with started("dice", grants=["tools.register"]) as dice:
        with pytest.raises(RemoteError) as caught:
            await dice.call_tool("roll")
        assert "memory.write" in caught.value.message


async def test_an_unknown_command_is_refused() -> None:
    async with started("dice") as dice, dice.invoke_command("none") as run:
        with pytest.raises(RemoteError) as caught:
            await run.result()
        assert caught.value.code == -32602


# -- message by message

RECORD = {"namespace": "dice", "timestamp_ms": 1, "content": "1d6: 2", "tags": ["throw"]}
SENT: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {"extension_protocol_version": 1, "plugin_id": "dice", "plugin_root": None, "config": {}},
    },
    {"id": 2, "method": "info.get", "params": None},
    {"id": 3, "method": "command.invoke", "params": {"command": "throws", "args": [], "request_id": "r"}},
    {"id": 1, "result": {"records": [RECORD]}},
    {"id": 4, "method": "tool.call", "params": {"name": "roll", "input": {"dice": 2}}},
    {"id": 2, "result": {"ok": True, "timestamp_ms": 1}},
    {"id": 5, "method": "shutdown", "params": None},
]


def test_each_message_follows_the_schemas() -> None:
    requested = {message["id"]: message["method"] for message in SENT if "method" in message}
    output: list[str] = []
    for message in talk(SENT):
        output.append(message.get("method") or requested[message["id"]])
        check_message(message, output[-1])
    assert sorted(output) == [
        "command.invoke",
        "command.output",
        "command.output",
        "info.get",
        "initialize",
        "memory.append",
        "memory.query",
        "shutdown",
        "tool.call",
    ]


def talk(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns all responses to these messages, sent at once."""
    framing = ContentLength(Limits())
    frames = [framing.encode(msgspec.json.encode({"jsonrpc": "2.0", **message})) for message in messages]
    done = subprocess.run(
        ["node", EXTENSIONS / "dice" / "dice.js"],
        input=b"".join(frames),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=True,
    )
    return [msgspec.json.decode(frame) for frame in framing.feed(done.stdout) if isinstance(frame, bytes | bytearray)]
