"""Host and extension of nexo in one program, and an extension without an event loop."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from anyio import fail_after

from becket.adapters import nexo
from becket.contract.hooks import Block, Continue, HookEvent, HookKind, HookResult, Inject
from becket.errors import NotSupported, RemoteError
from becket.extension import ExtensionServer, hook, tool
from becket.methods.registry import Registry
from becket.peer.blocking_peer import BlockingContext
from becket.peer.context import Context
from becket.testing import connected

AGENTS = nexo.admin_method("agents/list", "agents_crud", dict[str, bool], list[str])
PASSTHROUGH = nexo.NexoManifest(passthrough=True)


class Both(ExtensionServer):
    """Has functions of both kinds."""

    id, version = "both", "1.0.0"

    @tool("Tells whose session this is.")
    async def who(self, ctx: Context) -> str:
        return str(nexo.get_session_meta(ctx).get("session_id"))

    @tool("Tells the same, in a thread.")
    def who_plainly(self, ctx: BlockingContext) -> str:
        return str(nexo.get_session_meta(ctx).get("session_id"))

    @tool("Asks the host for its agents.")
    async def agents(self) -> list[str]:
        return await self.host.call(AGENTS, {"active_only": True})

    @tool("Keeps something, where its host can.")
    async def keep(self) -> str:
        try:
            await self.host.memory.append("milk")
        except NotSupported as error:
            return error.because
        return "kept"

    @tool("Writes to the log of its host, or to its own stderr.")
    async def log(self) -> None:
        self.host.log("logged")

    @hook("before_tool_call")
    def guard(self, event: HookEvent) -> HookResult:
        return Block(f"{event.tool_name} for {event.data['agent_id']}")

    @hook("before_message")
    async def inform(self, event: HookEvent) -> HookResult:
        return Inject("It rains.")


@pytest.mark.loops
async def test_an_extension_of_becket_is_hosted_by_becket_in_nexo(capfd: pytest.CaptureFixture[str]) -> None:
    grants = ["tools.register", "tools.intercept", "privacy.llm_content"]
    meta = nexo.build_session_meta("ana", "s-1")
    with fail_after(60):
        async with connected(Both(), dialect="nexo", grants=grants, extra=PASSTHROUGH) as (host, _):
            assert set(host.hooks) == {HookKind.BEFORE_TOOL_CALL, HookKind.BEFORE_MESSAGE}
            assert await host.call_tool("who", meta=meta) == "s-1"
            assert await host.call_tool("who_plainly", meta=meta) == "s-1"
            assert "nexo" in await host.call_tool("keep")
            await host.call_tool("log")
            blocked = await host.handle_hook(HookEvent.before_tool_call("bash", {}))
            informed = await host.handle_hook(HookEvent.before_message("hello"))

    assert blocked == Block("bash for becket")
    assert informed == Inject("hello\n\nIt rains.")
    assert "logged" in capfd.readouterr().err


class Censor(ExtensionServer):
    """Ends the turn of a message that it refuses."""

    id, version = "censor", "1.0.0"

    @hook("before_message")
    async def judge(self, event: HookEvent) -> HookResult:
        return Block("no secrets here") if "secret" in (event.message or "") else Continue()


@pytest.mark.loops
@pytest.mark.parametrize("dialect", ["nexo", "native"])
async def test_a_hook_before_a_message_can_end_the_turn(dialect: str) -> None:
    with fail_after(60):
        async with connected(Censor(), dialect=dialect, grants=["privacy.llm_content"]) as (host, _):
            blocked = await host.consult_hook(HookEvent.before_message("a secret"))
            passed = await host.consult_hook(HookEvent.before_message("hello"))

    assert (blocked.result, blocked.problem) == (Block("no secrets here"), None)
    assert (passed.result, passed.problem) == (Continue(), None)


@pytest.mark.loops
async def test_a_host_of_nexo_gets_an_abort_for_a_block_before_a_message() -> None:
    event = {"agent_id": "ana", "session_id": "s-1", "text": "a secret", "source": "telegram"}
    with fail_after(60):
        async with connected(Censor(), dialect="nexo", grants=["privacy.llm_content"]) as (host, _):
            response = await host.peer.call("hooks/before_message", event)

    assert response == {"abort": True, "reason": "no secrets here"}


@pytest.mark.loops
async def test_the_grants_of_an_extension_decide_about_its_calls() -> None:
    methods = Registry()

    @methods.handle(AGENTS)
    async def list_agents(params: dict[str, bool]) -> list[str]:
        return ["ana"]

    grants = ["tools.register", nexo.to_permission("agents_crud")]
    with fail_after(60):
        async with connected(Both(), dialect="nexo", grants=grants, methods=methods) as (host, both):
            assert await host.call_tool_json("agents") == ["ana"]
            host.gate.revoke(nexo.to_permission("agents_crud"))
            with pytest.raises(RemoteError) as denied:
                await both.host.call(AGENTS, {"active_only": True})

    assert (denied.value.code, denied.value.message) == (-32004, "capability_not_granted")
    assert denied.value.data == {
        "capability": "agents_crud",
        "microapp_id": "both",
        "method": "nexo/admin/agents/list",
    }


PLAIN = """
from becket.adapters import nexo
from becket.extension import ExtensionServer, tool
from becket.peer.blocking_peer import BlockingContext

class Plain(ExtensionServer):
    id, version = "plain", "1.0.0"

    @tool("Tells whose session this is.")
    def who(self, ctx: BlockingContext) -> str:
        return str(nexo.get_session_meta(ctx).get("agent_id"))

    @tool("Asks the host.")
    def ask(self) -> object:
        return self.host.blocking.call("nexo/admin/agents/list", {})

Plain().run()
"""


@pytest.mark.process
def test_an_extension_without_an_event_loop_detects_the_dialect_of_its_host() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PLAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def say(message: dict[str, Any]) -> Any:
            print(json.dumps({"jsonrpc": "2.0", **message}), file=child.stdin, flush=True)
            return json.loads(child.stdout.readline())  # type: ignore[union-attr]

        hello = say({"method": "initialize", "params": {"agent_version": "0.1.0", "extension_id": "plain"}, "id": 0})
        arguments = {"_meta": {"agent_id": "ana"}}
        who = say({"method": "tools/call", "params": {"name": "who", "arguments": arguments}, "id": 1})
        requested = say({"method": "tools/call", "params": {"name": "ask", "arguments": {}}, "id": 2})
        answer = say({"id": requested["id"], "result": {"agents": []}})
        shutdown = say({"method": "shutdown", "params": {"reason": "done"}, "id": 0})
        child.wait(timeout=100)

    assert [one["name"] for one in hello["result"]["tools"]] == ["who", "ask"]
    assert who == {"jsonrpc": "2.0", "id": 1, "result": "ana"}
    assert (requested["id"], requested["method"]) == ("app:1", "nexo/admin/agents/list")
    assert answer == {"jsonrpc": "2.0", "id": 2, "result": {"agents": []}}
    assert shutdown["result"] == {"ok": True}
    assert child.returncode == 0
