"""Guards of a running host: in the order of the operator, not skipped where required, suspended when silent."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tests.host.folders import write_extension

from becket.contract.hooks import Block, Continue, HookEvent, Modify
from becket.contract.providers import ToolUse
from becket.errors import BadCapabilities, NotDeclared, RemoteError, ToolBlocked, ToolFailed
from becket.host.diagnostics import Diagnostic
from becket.host.hook_plan import HookSettings, HookStatus
from becket.host.host import Host
from becket.host.host_settings import group_arguments
from becket.host.restart import RestartPolicy
from becket.host.supervision_policy import SupervisionPolicy
from becket.host.timeouts import Timeouts

pytestmark = [pytest.mark.process, pytest.mark.loops]

on_asyncio = pytest.mark.loops("asyncio")  # for decisions and records, which are the same on any loop
GUARD = """
import os, sys, time
from becket import ExtensionServer
from becket.contract.hooks import Block, Continue, Modify
from becket.extension import hook

class Guard(ExtensionServer):
    id, version = "{id}", "1.0.0"

    @hook("before_tool_call")
    async def look(self, event):
        {look}

Guard().run()
"""
TOOL = """
from becket import ExtensionServer, RpcError
from becket.extension import tool

class Shell(ExtensionServer):
    id, version = "shell", "1.0.0"

    @tool("Runs it.")
    def run_it(self, command: str) -> str:
        if command.startswith("fail"):
            raise RpcError(17, command)
        return f"ran {command}"

Shell().run()
"""
GRANTS = ["tools.intercept", "tools.register"]
BEFORE = HookEvent.before_tool_call("bash", {"command": "ls"})
ONCE = SupervisionPolicy(restart=RestartPolicy(delay=0.01, most=1))


def guard(root: Path, id: str, look: str, *, required: bool = False) -> None:
    write_guard(root, id, look, f'[[hooks]]\nhook = "before_tool_call"\nrequired = {str(required).lower()}\n')


def write_guard(root: Path, id: str, look: str, more: str = "") -> None:
    manifest = f"permissions = {GRANTS}\n{more}"
    write_extension(root / id, id, manifest, files={"main.py": GUARD.format(id=id, look=look)})


def host_of(root: Path, **options: object) -> Host:
    ids = [folder.name for folder in root.iterdir()]
    return Host([root], **group_arguments({"data": None, "grants": dict.fromkeys(ids, GRANTS), **options}))  # type: ignore[arg-type]


REFUSE_EVIL = "return Block('no') if 'evil' in event.tool_input['command'] else Continue()"
MAKE_EVIL = "return Modify({'command': 'evil'})"


@on_asyncio
@pytest.mark.parametrize("order", [("guard", "helper"), ("helper", "guard")])
async def test_a_guard_sees_the_input_as_modified_by_another_extension(tmp_path: Path, order: tuple[str, ...]) -> None:
    guard(tmp_path, "guard", REFUSE_EVIL)
    guard(tmp_path, "helper", MAKE_EVIL)
    write_extension(tmp_path / "shell", "shell", f"permissions = {GRANTS}\n", files={"main.py": TOOL})
    with anyio.fail_after(60):
        async with host_of(tmp_path, hooks=HookSettings(order=order)) as host:
            await host.settled()

            verdict = await host.run_hooks(BEFORE)
            assert (verdict.result, verdict.by) == (Block("no"), "guard")
            used = await host.use_tool(ToolUse("1", "shell_run_it", {"command": "ls"}))
            assert used["is_error"]
            hooks = {status.id: status.hooks for status in host.status()}
            assert hooks[order[0]] == (HookStatus("before_tool_call", 1),)
            assert hooks[order[1]] == (HookStatus("before_tool_call", 2),)
            assert host.hooks.order()[:2] == order


@on_asyncio
async def test_a_hook_that_only_the_code_declares_is_consulted(tmp_path: Path) -> None:
    write_guard(tmp_path, "guard", "return Block('no')")
    with anyio.fail_after(60):
        async with host_of(tmp_path) as host:
            await host.ready("guard")

            assert (await host.run_hooks(BEFORE)).result == Block("no")
            assert host.status()[0].hooks == (HookStatus("before_tool_call", 1),)


@on_asyncio
async def test_a_hook_that_only_the_code_declares_needs_its_permission(tmp_path: Path) -> None:
    program = GUARD.format(id="guard", look="return Block('no')")
    write_extension(tmp_path / "guard", "guard", 'permissions = ["tools.register"]\n', files={"main.py": program})
    with anyio.fail_after(60):
        async with host_of(tmp_path, grants={"guard": ["tools.register"]}) as host:
            with pytest.raises(BadCapabilities, match=r"tools\.intercept"):
                await host.ready("guard")


@on_asyncio
async def test_the_manifest_narrows_a_hook_of_the_code(tmp_path: Path) -> None:
    narrow = '[[hooks]]\nhook = "before_tool_call"\nmatch = { input_contains = "evil" }\n'
    write_guard(tmp_path, "guard", "return Block('no')", narrow)
    with anyio.fail_after(60):
        async with host_of(tmp_path) as host:
            await host.ready("guard")

            assert (await host.run_hooks(BEFORE)).result == Continue()
            evil = HookEvent.before_tool_call("bash", {"command": "evil"})
            assert (await host.run_hooks(evil)).result == Block("no")


AFTER = """
from becket import ExtensionServer
from becket.contract.hooks import Replace
from becket.extension import hook

class Redactor(ExtensionServer):
    id, version = "redactor", "1.0.0"

    @hook("after_tool_call")
    async def redact(self, event):
        return Replace(event.tool_output.replace("secret", "[...]")) if "secret" in event.tool_output else None

Redactor().run()
"""


async def test_a_tool_call_of_the_host_goes_through_the_hooks_before_and_after_it(tmp_path: Path) -> None:
    transform = [*GRANTS, "tools.transform_output"]
    write_guard(tmp_path, "guard", REFUSE_EVIL)
    write_extension(tmp_path / "redactor", "redactor", f"permissions = {transform}\n", files={"main.py": AFTER})
    write_extension(tmp_path / "shell", "shell", f"permissions = {GRANTS}\n", files={"main.py": TOOL})
    grants = {"guard": GRANTS, "redactor": transform, "shell": GRANTS}
    with anyio.fail_after(60):
        async with host_of(tmp_path, grants=grants) as host:
            await host.settled()

            assert await host.call_tool("shell_run_it", {"command": "ls"}) == "ran ls"
            assert await host.call_tool("shell_run_it", {"command": "secret"}) == "ran [...]"
            assert await host.call_tool_json("shell:run_it", {"command": "secret"}) == "ran [...]"
            with pytest.raises(ToolBlocked) as caught:
                await host.call_tool("shell_run_it", {"command": "evil"})
            assert (caught.value.tool, caught.value.reason, caught.value.by) == ("shell_run_it", "no", "guard")
            assert await host.call_tool("shell_run_it", {"command": "evil secret"}, hooks=False) == "ran evil secret"
            assert await host["shell"].call_tool("run_it", {"command": "evil"}) == "ran evil"

            with pytest.raises(RemoteError) as failed:
                await host.call_tool("shell_run_it", {"command": "fail"})
            assert not isinstance(failed.value, ToolFailed)
            with pytest.raises(ToolFailed) as replaced:
                await host.call_tool("shell_run_it", {"command": "fail: secret"})
            assert "secret" not in str(replaced.value)


async def test_the_host_prompts_where_a_hook_requires_confirmation_of_a_tool_call(tmp_path: Path) -> None:
    write_guard(tmp_path, "guard", "from becket.contract.hooks import Confirm; return Confirm('Really?')")
    write_extension(tmp_path / "shell", "shell", f"permissions = {GRANTS}\n", files={"main.py": TOOL})
    responses = ["no", "yes"]

    async def confirm(extension: str, message: str) -> str:
        return responses.pop(0)

    with anyio.fail_after(60):
        async with host_of(tmp_path, confirm=confirm) as host:
            await host.settled()

            with pytest.raises(ToolBlocked):
                await host.call_tool("shell_run_it", {"command": "ls"})
            assert await host.call_tool("shell_run_it", {"command": "ls"}) == "ran ls"


@on_asyncio
async def test_the_problems_of_every_hook_are_in_the_verdict(tmp_path: Path) -> None:
    guard(tmp_path, "crashes", "os._exit(3)")
    guard(tmp_path, "fails", "raise RuntimeError('boom')")
    guard(tmp_path, "forbidden", "from becket.contract.hooks import Inject; return Inject('hello')")
    guard(tmp_path, "well", "return Modify({'command': 'pwd'})")
    with anyio.fail_after(60):
        async with host_of(tmp_path, supervision=ONCE) as host:
            await host.settled()

            verdict = await host.run_hooks(BEFORE)

    assert verdict.result == Modify({"command": "pwd"})
    assert {problem.extension for problem in verdict.problems} == {"crashes", "fails", "forbidden"}


async def test_a_guard_that_must_not_be_skipped_blocks_when_it_has_crashed_for_good(tmp_path: Path) -> None:
    guard(tmp_path, "guard", "os._exit(3)", required=True)
    with anyio.fail_after(60):
        async with host_of(tmp_path, supervision=SupervisionPolicy(restart=RestartPolicy(most=0))) as host:
            await host.settled()
            for _ in range(3):  # while it runs, while it dies, and when it is gone
                verdict = await host.run_hooks(BEFORE)
                assert isinstance(verdict.result, Block)
                assert verdict.by == "guard"

            await host["guard"].supervisor.disable()
            assert (await host.run_hooks(BEFORE)).result == Continue()  # that was the operator's decision


async def test_a_guard_that_must_not_be_skipped_counts_before_it_has_started(tmp_path: Path) -> None:
    guard(tmp_path, "guard", "return Block('no')", required=True)
    with anyio.fail_after(60):
        async with host_of(tmp_path) as host:
            verdict = await host.run_hooks(BEFORE)

    assert isinstance(verdict.result, Block)


@on_asyncio
async def test_a_guard_that_the_operator_requires_and_that_was_refused_blocks(tmp_path: Path) -> None:
    guard(tmp_path, "guard", "return Continue()")
    settings = HookSettings(required=("guard",))
    with anyio.fail_after(60):
        async with host_of(tmp_path, grants={}, hooks=settings) as host:
            await host.settled()
            verdict = await host.run_hooks(BEFORE)

    assert isinstance(verdict.result, Block)
    assert verdict.by == "guard"


@on_asyncio
async def test_a_guard_without_consent_blocks_nothing(tmp_path: Path) -> None:
    guard(tmp_path, "guard", "return Block('no')", required=True)
    with anyio.fail_after(60):
        async with host_of(tmp_path, grants={}) as host:
            await host.settled()

            assert (await host.run_hooks(BEFORE)).result == Continue()


async def test_a_hook_that_does_not_respond_is_suspended_and_shown(tmp_path: Path) -> None:
    guard(tmp_path, "slow", "import anyio; await anyio.sleep_forever()")
    with anyio.fail_after(60):
        async with host_of(tmp_path, timeouts=Timeouts(hook=0.05)) as host:
            await host.settled()
            while not host.status()[0].hooks[0].is_out:
                assert len((await host.run_hooks(BEFORE)).problems) == 1

            [status] = host.status()
            assert status.hooks == (HookStatus("before_tool_call", 1, is_out=True),)
            assert "before_tool_call" in status.because
            assert [one.extension for one in host.problems if isinstance(one, Diagnostic)] == ["slow"]
            assert (await host.run_hooks(BEFORE)).problems[0].extension == "slow"


NAMED = """
from becket import ExtensionServer
from becket.extension import tool

class Named(ExtensionServer):
    id, version = "{id}", "1.0.0"

    @tool("Says whose it is.")
    def {tool}(self) -> str:
        return "{id}"

Named().run()
"""


@on_asyncio
async def test_no_extension_is_called_by_the_name_of_a_tool_of_another(tmp_path: Path) -> None:
    for id, tool in (("my", "notes_keep"), ("my_notes", "keep"), ("a.b", "c"), ("a_b", "c")):
        manifest = f"permissions = {GRANTS}\n"
        write_extension(tmp_path / id, id, manifest, files={"main.py": NAMED.format(id=id, tool=tool)})
    with anyio.fail_after(60):
        async with host_of(tmp_path) as host:
            await host.settled()

            assert await host.call_tool("my_notes_keep") == "my_notes"
            assert await host.call_tool("my:notes_keep") == "my"
            with pytest.raises(NotDeclared):
                await host.call_tool("a_b_c")
            received = {problem.extension for problem in host.problems}
            await host["my_notes"].stop()
            with pytest.raises(NotDeclared):
                await host.call_tool("my_notes_keep")

    assert received == {"my", "a.b", "a_b"}
