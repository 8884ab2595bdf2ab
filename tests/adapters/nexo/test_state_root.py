"""The folder for state that a program of that system always has."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio
import pytest

from becket.host import Host
from becket.host.starting.connect import connect_extension

pytestmark = [pytest.mark.loops, pytest.mark.process]

PROGRAM = """
import json, os, sys
tools = [{"name": "root", "description": "d", "input_schema": {"type": "object"}}]
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        result = {"server_version": "1", "tools": tools, "hooks": []}
    elif request["method"] == "tools/call":
        root = os.environ["NEXO_EXTENSION_STATE_ROOT"]
        mark = os.path.join(root, "mark")
        result = [root, os.path.exists(mark)]
        open(mark, "w").close()
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
    if request["method"] == "shutdown":
        break
"""
MANIFEST = f"""
[plugin]
id = "keeper"
version = "1.0.0"
[capabilities]
tools = ["root"]
[transport]
kind = "stdio"
command = "{sys.executable}"
args = ["main.py"]
"""


def write_keeper(root: Path) -> None:
    (root / "keeper").mkdir(parents=True)
    (root / "keeper" / "plugin.toml").write_text(MANIFEST, encoding="utf-8")
    (root / "keeper" / "main.py").write_text(PROGRAM, encoding="utf-8")


def is_there(root: str) -> bool:
    return os.path.isdir(root)


async def test_the_state_root_is_set_without_a_data_directory_and_removed_with_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEXO_HOME", raising=False)
    write_keeper(tmp_path)
    with anyio.fail_after(60):
        async with Host([tmp_path], grants={"keeper": ["tools.register"]}, data=None) as host:
            keeper = await host.ready("keeper")
            root, had_mark = json.loads(await host.call_tool("keeper:root", {}))
            assert not had_mark
            await keeper.reload()
            assert json.loads(await host.call_tool("keeper:root", {})) == [root, True]
    assert not is_there(root)


async def test_the_state_root_lies_in_the_data_directory_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEXO_HOME", raising=False)
    write_keeper(tmp_path / "extensions")
    with anyio.fail_after(60):
        async with Host(
            [tmp_path / "extensions"], grants={"keeper": ["tools.register"]}, data=tmp_path / "data"
        ) as host:
            await host.ready("keeper")
            root, _ = json.loads(await host.call_tool("keeper:root", {}))
    assert Path(root).is_relative_to(tmp_path / "data")
    assert is_there(root)


async def test_the_state_root_of_a_single_program_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEXO_HOME", raising=False)
    with anyio.fail_after(60):
        async with connect_extension(
            [sys.executable, "-c", PROGRAM], id="keeper", dialect="nexo", grants=["tools.register"]
        ) as keeper:
            root, _ = await keeper.call_tool_json("root", {})
            assert is_there(root)
    assert not is_there(root)
