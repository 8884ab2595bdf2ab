"""Which requests are sent again to the next copy of a crashed program, and which are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.synaps.plugins import TOOL, write_plugin

from becket.contract.commands import SystemText
from becket.contract.hooks import Block, Continue, HookEvent
from becket.errors import PeerCrashed, RemoteError
from becket.host import Host
from becket.host.hook_plan import HookSettings
from becket.host.host_settings import group_arguments
from becket.host.restart import RestartPolicy
from becket.host.supervision_policy import SupervisionPolicy

pytestmark = [pytest.mark.loops, pytest.mark.process]

PATIENCE = 30.0
PERMISSIONS = ["tools.intercept", "tools.register"]
HOOKS = [{"hook": "before_tool_call"}]
BEFORE = HookEvent.before_tool_call("bash", {"command": "rm -rf /"})
RESTARTS = SupervisionPolicy(restarts_on_errors=True)
FAIL_FIRST = {"dies": "os._exit(3)", "responds with an error": "return reject(request, 'not now')"}
HANDLE = f"""
def handle(request):
    params, marks = request["params"], os.path.dirname(os.path.abspath(__file__)) + "/seen-"
    if request["method"] == "command.invoke":
        event = {{"kind": "system", "content": "copy %d" % (1 if is_first(marks + "event") else 2)}}
        send({{"method": "command.output", "params": {{"request_id": params["request_id"], "event": event}}}})
    if is_first(marks + request["method"]) or ALWAYS:
        FAIL
    block = {{"action": "block", "reason": "no"}}
    results = {{"tool.call": "done", "command.invoke": "invoked", "hook.handle": block}}
    respond(request, results[request["method"]])

serve(handle, [{TOOL}])
"""


def host_of(root: Path, fail: str = "os._exit(3)", *, always: bool = False, **options: Any) -> Host:
    """Returns a host of a guard that fails at the first call of each method, or at all of them."""
    program = HANDLE.replace("FAIL", fail).replace("ALWAYS", str(always))
    write_plugin(root, "guard", program, PERMISSIONS, hooks=HOOKS)
    return Host([root], grants={"guard": PERMISSIONS}, data=None, **group_arguments(options))


async def test_a_guard_that_crashes_before_it_responds_ends_in_its_verdict(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path) as host:
            await host.ready("guard")

            verdict = await host.run_hooks(BEFORE)

            assert (verdict.result, verdict.by) == (Block("no"), "guard")
            (problem,) = verdict.problems  # the crash is reported
            assert problem.extension == "guard"
            assert "PeerCrashed" in problem.problem
            assert host["guard"].restarts == 1


async def test_a_required_guard_that_crashes_once_is_consulted_all_the_same(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, hooks=HookSettings(required=("guard",))) as host:
            await host.ready("guard")

            assert (await host.run_hooks(BEFORE)).result == Block("no")


async def test_a_hook_is_sent_twice_at_most(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, always=True) as host:
            await host.ready("guard")

            verdict = await host.run_hooks(BEFORE)

            assert verdict.result == Continue()
            (problem,) = verdict.problems
            assert problem.problem.count("PeerCrashed") == 2


async def test_a_hook_fails_open_where_no_copy_follows_the_crash(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, supervision=SupervisionPolicy(restart=RestartPolicy(most=0, delay=0.01))) as host:
            guard = await host.ready("guard")

            reading = await guard.consult_hook(BEFORE)

            assert reading.result == Continue()
            assert reading.problem is not None


async def test_the_operator_may_disable_the_second_call_of_a_crashed_hook(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, supervision=SupervisionPolicy(resends_hooks=False)) as host:
            await host.ready("guard")

            assert (await host.run_hooks(BEFORE)).result == Continue()


async def test_a_tool_call_whose_process_died_is_not_sent_again(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path) as host:
            await host.ready("guard")

            with pytest.raises(PeerCrashed):
                await host.call_tool("guard:t", hooks=False)


@pytest.mark.parametrize("fail", FAIL_FIRST.values(), ids=FAIL_FIRST.keys())
async def test_a_tool_call_is_sent_once_more_where_the_operator_configures_restarts_on_errors(
    tmp_path: Path, fail: str
) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, fail, supervision=RESTARTS) as host:
            await host.ready("guard")

            assert await host.call_tool("guard:t", hooks=False) == "done"
            assert host["guard"].restarts == 1


async def test_a_tool_call_is_sent_twice_at_most(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, always=True, supervision=RESTARTS) as host:
            await host.ready("guard")

            with pytest.raises(PeerCrashed):
                await host.call_tool("guard:t", hooks=False)


@pytest.mark.parametrize("fail", FAIL_FIRST.values(), ids=FAIL_FIRST.keys())
async def test_a_command_is_run_once_more_where_the_operator_configures_restarts_on_errors(
    tmp_path: Path, fail: str
) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, fail, supervision=RESTARTS) as host:
            guard = await host.ready("guard")

            async with guard.invoke_command("go") as run:
                events = [event async for event in run]
                assert events == [SystemText("copy 1"), SystemText("copy 2")]
                assert await run.result() == "invoked"


async def test_one_task_takes_the_events_of_a_resent_command_while_another_waits_for_its_result(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, supervision=RESTARTS) as host:
            guard = await host.ready("guard")
            async with guard.invoke_command("go") as run, anyio.create_task_group() as tasks:

                async def take() -> None:
                    async for _ in run:
                        pass

                tasks.start_soon(take)
                await anyio.wait_all_tasks_blocked()
                assert await run.result() == "invoked"


@pytest.mark.parametrize("fail", FAIL_FIRST.values(), ids=FAIL_FIRST.keys())
async def test_a_command_is_not_run_again_by_default(tmp_path: Path, fail: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, fail) as host:
            guard = await host.ready("guard")

            async with guard.invoke_command("go") as run:
                with pytest.raises((PeerCrashed, RemoteError)):
                    await run.result()


async def test_a_command_that_fails_twice_fails(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with host_of(tmp_path, always=True, supervision=RESTARTS) as host:
            guard = await host.ready("guard")

            async with guard.invoke_command("go") as run:
                with pytest.raises(PeerCrashed):
                    await run.result()
