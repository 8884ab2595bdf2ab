"""Differences between synaps and the contract: hosted programs see the behaviour of their own host."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.synaps.plugins import TOOL, write_plugin

from becket.adapters.synaps import SYNAPS
from becket.contract.hooks import Block, HookEvent, Modify
from becket.host import Host
from becket.host.events import ProblemFound

pytestmark = pytest.mark.process

PATIENCE = 30.0
GUARD = """
def handle(request):
    respond(request, {"action": "modify", **json.loads(os.environ["RESPONSE"])})

serve(handle)
"""
SHELL = """
def handle(request):
    respond(request, json.dumps(request["params"]["input"]))

serve(handle, [{"name": "show", "description": "d", "input_schema": {}}])
"""
BEFORE = HookEvent.before_tool_call("bash", {"command": "ls"})


def write_guard(root: Path, response: dict[str, Any]) -> None:
    program = GUARD.replace('os.environ["RESPONSE"]', repr(json.dumps(response)))
    write_plugin(root, "guard", program, ["tools.intercept"], hooks=[{"hook": "before_tool_call"}])


@pytest.mark.parametrize("input", ["ls -l", ["ls", "-l"], 5, True])
async def test_a_modify_with_an_input_that_is_not_an_object_is_passed_on(tmp_path: Path, input: Any) -> None:
    write_guard(tmp_path, {"input": input})
    write_plugin(tmp_path, "shell", SHELL, ["tools.register"])
    grants = {"guard": ["tools.intercept"], "shell": ["tools.register"]}
    with anyio.fail_after(PATIENCE):
        async with Host([tmp_path], grants=grants, data=None) as host:
            await host.ready("guard")
            await host.ready("shell")

            verdict = await host.run_hooks(BEFORE)
            assert verdict.result == Modify(input)
            assert verdict.problems == ()
            assert json.loads(await host.call_tool("shell:show", {"command": "ls"})) == input


async def test_a_modify_without_an_input_blocks(tmp_path: Path) -> None:
    write_guard(tmp_path, {})
    with anyio.fail_after(PATIENCE):
        async with Host([tmp_path], grants={"guard": ["tools.intercept"]}, data=None) as host:
            await host.ready("guard")

            assert isinstance((await host.run_hooks(BEFORE)).result, Block)


KEEPER = f"""
def handle(request):
    size = request["params"]["input"]["size"]
    params = {{"namespace": "keeper", "content": "x" * size}}
    send({{"id": 1000, "method": "memory.append", "params": params}})
    respond(request, json.dumps(receive().get("error")))

serve(handle, [{TOOL}])
"""


async def test_a_record_above_the_limit_fails_like_the_store_of_that_system(tmp_path: Path) -> None:
    write_plugin(tmp_path, "keeper", KEEPER, ["tools.register", "memory.write"])
    with anyio.fail_after(PATIENCE):
        async with Host([tmp_path], grants={"keeper": ["tools.register", "memory.write"]}, data=None) as host:
            await host.ready("keeper")

            assert await host.call_tool("keeper:t", {"size": 16 * 1024}) == "null"
            error = json.loads(await host.call_tool("keeper:t", {"size": 16 * 1024 + 1}))
            assert error["code"] == -32000
            assert error["message"] == "content too large: 16385 bytes (max 16384)"


VARIABLES = f"""
def handle(request):
    respond(request, json.dumps(dict(os.environ)))

serve(handle, [{TOOL}])
"""


@pytest.mark.parametrize("keeps_data", [False, True])
async def test_a_program_gets_the_variables_of_synaps_and_none_of_becket(
    tmp_path: Path, keeps_data: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    write_plugin(tmp_path / "plugins", "shown", VARIABLES, ["tools.register"])
    data = tmp_path / "data" if keeps_data else None
    with anyio.fail_after(PATIENCE):
        async with Host([tmp_path / "plugins"], grants={"shown": ["tools.register"]}, data=data) as host:
            await host.ready("shown")

            seen = set(json.loads(await host.call_tool("shown:t", {})))

    coerced = {"LC_CTYPE"}  # by Python itself, in a program without a locale
    assert seen - coerced == {name for name in SYNAPS.host_defaults.inherited_variables if name in os.environ}


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "https://example.org/schema"}])
async def test_an_invalid_tool_schema_disables_that_tool_alone(tmp_path: Path, schema: Any) -> None:
    bad = {**TOOL, "name": "bad", "input_schema": schema}
    program = f"\nserve(lambda request: respond(request, 'done'), [{bad!r}, {TOOL!r}])\n"
    write_plugin(tmp_path, "mixed", program, ["tools.register"])
    with anyio.fail_after(PATIENCE):
        host = Host([tmp_path], grants={"mixed": ["tools.register"]}, data=None)
        events: list[ProblemFound] = []
        host.on(ProblemFound)(events.append)
        async with host:
            await host.ready("mixed")
            await host["mixed"].reload()

            assert await host.call_tool("mixed:t", {}) == "done"
            assert [tool.runtime_name for tool in host.tools] == ["mixed:t"]
            (problem,) = [problem for problem in host.problems if problem.extension == "mixed"]
            assert "`bad` is disabled" in problem.problem
            assert problem.hint
            assert [event.diagnostic for event in events] == [problem]  # once, however often it starts
