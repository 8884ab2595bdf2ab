"""An extension imports only what it uses: a plain one starts without an event loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.extension.raw_host import build_initialize
from tests.extension.test_running import receive, request_of, started, use

from becket.jsonrpc.json_values import encode_json

pytestmark = pytest.mark.process

PROGRAM = """
import sys
from becket import ExtensionServer
from becket.extension import {imports}tool

class Small(ExtensionServer):
    id, version = "small", "1"

    @tool("Tells which modules are there.", inline=True)
    def modules(self) -> list[str]:
        return [name for name, module in sys.modules.items() if type(module).__name__ != "LateModule"]
{more}
if __name__ == "__main__":
    Small().run()
"""

COMMAND = """
    @command("do")
    def do(self, args: list[str]) -> None: ...
"""

COROUTINE = """
    @command("do")
    async def do(self, args: list[str]) -> None: ...
"""

HEAVY = {
    "anyio", "ast", "asyncio", "attr", "attrs", "cattrs", "concurrent.futures", "copy", "dataclasses", "dis", "inspect",
    "json", "jsonschema", "logging", "pathlib", "platform", "random", "selectors", "shutil", "signal", "socket", "ssl",
    "string", "struct", "subprocess", "tempfile", "textwrap", "traceback", "trio", "typing_extensions", "unittest",
    "urllib", "uvloop", "weakref",
}  # fmt: skip
UNUSED = {
    "becket.contract.commands",
    "becket.contract.config",
    "becket.contract.handshake_checks",
    "becket.contract.hooks",
    "becket.contract.log",
    "becket.contract.memory",
    "becket.contract.providers",
    "becket.contract.settings",
    "becket.contract.tasks",
    "becket.extension.host_client",
    "becket.extension.tool_input.validation",
    "becket.extension.log_handler",
    "becket.extension.runtime_async",
    "becket.extension.outputs",
    "becket.extension.tool_input.checks",
    "becket.host_errors",
    "becket.permissions.gate",
    "becket.permissions.grants",
    "becket.permissions.names",
    "becket.methods.streams",
    "becket.peer.blocking_calls",
    "becket.peer.transport.stream",
    "becket.peer.loops.async_loops",
    "becket.peer.peer",
    "becket.peer.transport.child_process",
    "becket.peer.protocols",
    "becket.peer.streams",
    "becket.jsonrpc.parser",
    "becket.jsonrpc.protocols",
    "becket.conversion.attrs_classes",
    "becket.conversion.problems",
    "becket.framing.json_lines",
    "becket.framing.length_prefixed",
    "heapq",
    "msgspec._typing_utils",  # as the postponed parts of msgspec import it
}
HELLO = request_of(1, "initialize", json.loads(encode_json(build_initialize())))


def unmeasured() -> dict[str, str]:
    """Returns the environment without what makes a child import much: its coverage, and imports without tricks."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COV", "BECKET_"))}


def modules_of(more: str = "") -> set[str]:
    """Returns what a fresh extension has imported when it has done its handshake and serves."""
    imports = "command, " if more else ""
    code = PROGRAM.format(imports=imports, more=more)
    # -I: neither the environment nor the current folder may add or hide an import.
    with started([sys.executable, "-I", "-c", code], HELLO, env=unmeasured()) as (process, stdin, _):
        assert receive(process)["result"]["protocol_version"] == 1
        stdin.write(use(2, "modules"))
        stdin.flush()
        found = set(receive(process)["result"])
        stdin.close()
        assert process.wait(60) == 0
    return found


def test_a_plain_extension_imports_nothing_that_it_does_not_use() -> None:
    found = modules_of()

    assert "becket.extension.runtime_blocking" in found
    assert found & HEAVY == set()
    assert found & UNUSED == set()


def test_a_command_imports_the_types_of_commands_and_no_more() -> None:
    found = modules_of(COMMAND)

    assert found & HEAVY == set()
    assert found & UNUSED == {"becket.contract.commands", "becket.contract.tasks", "becket.methods.streams"}


def test_a_coroutine_imports_the_loop_that_it_runs_on_and_no_other() -> None:
    found = modules_of(COROUTINE)

    assert found & {"asyncio", "anyio", "trio", "uvloop"} == {"asyncio"}
    assert (
        found & {"attr", "attrs", "cattrs", "jsonschema", "becket.permissions.gate", "becket.peer.blocking_peer"}
        == set()
    )


def test_the_parts_of_the_kit_are_listed_without_loading_them() -> None:
    code = "import becket.extension as it, sys; dir(it); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        check=True,
        env=unmeasured(),
    )

    assert [name for name in loaded.stdout.split() if name.startswith("becket.extension.")] == []


@pytest.mark.parametrize("name", ["HostClient", "tool", "CommandOutput", "ExtensionServer"])
def test_a_part_is_imported_on_first_use(name: str) -> None:
    import becket.extension

    assert getattr(becket.extension, name).__name__ == name


def test_an_unknown_part_is_an_attribute_error() -> None:
    import becket.extension

    assert not hasattr(becket.extension, "no_such_name")
