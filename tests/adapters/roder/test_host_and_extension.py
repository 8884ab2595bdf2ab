"""Host and extension on becket over Roder, in memory: what their authors see."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from anyio import fail_after

from becket import Context, Peer, RpcError
from becket.adapters import roder
from becket.adapters.roder.provider_request_mapping import to_inference_request
from becket.blocking import BlockingContext
from becket.contract.commands import SystemText, Text
from becket.contract.providers import Message, Model, ProviderRequest, ProviderResult, TextDelta, assistant, user
from becket.errors import NotSupported, RemoteError
from becket.extension import (
    BlockingCommandOutput,
    BlockingProviderStream,
    CommandOutput,
    ExtensionServer,
    ProviderStream,
    command,
    handles,
    provider,
    tool,
)
from becket.testing import connected, memory_transports

GRANTS = ["tools.register", "providers.register"]


@pytest.fixture(autouse=True)
def no_manifest(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides every manifest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RODER_EXTENSION_MANIFEST", raising=False)


class Notes(ExtensionServer):
    """Has what Roder and the contract both have, and agents."""

    id, version = "notes", "1.0.0"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[ProviderRequest] = []
        self.heard: list[str] = []
        self.cancelled = anyio.Event()

    @tool("Counts letters.")
    async def count(self, text: str) -> int:
        if not text:
            raise RpcError(7, "there is nothing to count")
        return len(text)

    @provider("local", models=[Model("small")], display_name="Local", description="Says hello.")
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        self.asked.append(request)
        await out.text("hel")
        await out.error("slow today")
        await out.text("lo")
        return ProviderResult(({"type": "text", "text": "hello"},), "end_turn")

    @command("tidy")
    async def tidy(self, args: list[str], out: CommandOutput) -> list[str]:
        await out.text("begun")
        if args == ["forever"]:
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
        await out.system("almost")
        return args

    @handles(roder.SUBAGENTS_DISPATCH)
    async def dispatch(self, work: roder.DispatchParams, ctx: Context) -> roder.SubagentResult:
        status = roder.SubagentStatus("RUNNING")
        await ctx.notify(roder.SUBAGENTS_EVENT, roder.SubagentEventParams(work.dispatch_id, status))
        if work.request.prompt == "forever":
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
        if work.request.prompt == "fail":
            raise RpcError(1, "it broke")
        return roder.SubagentResult(
            thread_id="t",
            turn_id="u",
            agent_type="a",
            final_message="done",
            exit_reason=roder.SubagentExitReason.COMPLETED,
        )

    @handles(roder.EVENTS_HANDLE)
    async def receive(self, received: roder.EventsHandleParams, ctx: Context) -> None:
        self.heard.append(received.envelope.kind)
        event = roder.RoderExtensionEvent(
            extension_id="notes", event_kind="notes.heard", schema_version=1, payload=None
        )
        await ctx.peer.notify(roder.EXTENSION_EVENT, event)


def work(prompt: str) -> roder.DispatchParams:
    request = roder.SubagentRequest(description="d", prompt=prompt)
    return roder.DispatchParams(
        dispatcher_id="notes", dispatch_id=prompt, parent_thread_id="t", parent_turn_id="u", request=request
    )


@pytest.mark.loops
async def test_tools_return_text_and_data_and_fail_with_their_own_messages() -> None:
    with fail_after(60):
        async with connected(Notes(), dialect="roder", grants=GRANTS) as (host, _):
            assert await host.call_tool("count", {"text": "abc"}) == "3"
            assert await host.call_tool_json("count", {"text": "abc"}) == {"content": "3", "data": 3}
            with pytest.raises(RemoteError) as failed:
                await host.call_tool("count", {"text": ""})

    assert failed.value.message == "there is nothing to count"
    assert failed.value.data == {"error": {"kind": "tool_execution_failed", "message": "there is nothing to count"}}


@pytest.mark.loops
async def test_a_provider_request_has_everything_that_the_host_has() -> None:
    notes = Notes()
    messages = [user("hi"), assistant("ho"), Message("user", ({"type": "text", "text": "hm"},))]
    with fail_after(60):
        async with connected(notes, dialect="roder", grants=GRANTS) as (host, _):
            async with host.stream("local", "small", messages=messages, system_prompt="be brief") as answer:
                events = [event async for event in answer]
                result = await answer.result()
            whole = await host.complete("local", "small", messages=messages, thinking_budget=9)

    assert events[:2] == [TextDelta("hel"), TextDelta("lo")]
    assert (result.text, result.stop_reason) == ("hello", "end_turn")
    assert whole == result
    assert notes.asked[0].messages == (user("hi"), assistant("ho"), user("hm"))
    assert notes.asked[0].system_prompt == "be brief"
    assert notes.asked[0].model == "notes:local:small"
    assert notes.asked[1].thinking_budget == 9


@pytest.mark.loops
async def test_a_command_sends_its_output_and_is_cancelled_when_it_is_left() -> None:
    notes = Notes()
    with fail_after(60):
        async with connected(notes, dialect="roder", grants=GRANTS) as (host, _):
            async with host.invoke_command("tidy", ["desk"]) as run:
                output = [event async for event in run]
                assert await run.result() == ["desk"]
            async with host.invoke_command("tidy", ["forever"]) as run:
                async for _event in run:
                    break
            await notes.cancelled.wait()

    assert output[:2] == [Text("begun"), SystemText("almost")]


@pytest.mark.loops
async def test_a_dispatch_returns_the_result_of_the_agent() -> None:
    notes = Notes()
    with fail_after(60):
        async with connected(notes, dialect="roder", grants=GRANTS) as (host, _):
            async with host.peer.stream(roder.SUBAGENTS_DISPATCH, work("sweep")) as dispatch:
                events = [event async for event in dispatch]
                result = await dispatch.result()
            async with host.peer.stream(roder.SUBAGENTS_DISPATCH, work("fail")) as dispatch:
                with pytest.raises(RemoteError) as failed:
                    await dispatch.result()
            async with host.peer.stream(roder.SUBAGENTS_DISPATCH, work("forever")) as dispatch:
                async for _event in dispatch:
                    break
            await notes.cancelled.wait()

    assert [type(event) for event in events] == [roder.SubagentStatus, roder.SubagentCompleted]
    assert result.final_message == "done"
    assert failed.value.message == "subagent dispatcher notes failed: it broke"


@pytest.mark.loops
async def test_events_are_sent_to_the_extension_and_by_it() -> None:
    notes, received = Notes(), anyio.Event()
    envelope = roder.EventEnvelope(
        event_id="v", seq=1, timestamp="2026-01-01T00:00:00Z", source="Core", kind="turn.started", event={}
    )
    with fail_after(60):
        async with connected(notes, dialect="roder", grants=GRANTS) as (host, _):
            host.peer.on(roder.EXTENSION_EVENT)(lambda _: received.set())
            await host.peer.notify(roder.EVENTS_HANDLE, roder.EventsHandleParams(envelope))
            await received.wait()

    assert notes.heard == ["turn.started"]


@pytest.mark.loops
async def test_the_host_sees_the_manifest_of_the_class() -> None:
    with fail_after(60):
        async with connected(Notes(), dialect="roder", grants=GRANTS) as (host, _):
            assert [tool.name for tool in host.tools] == ["count"]
            assert [one.id for one in host.providers] == ["local"]
            assert [(one.kind, one.name) for one in host.capabilities] == [
                ("task_executor", "tidy"),
                ("event_sink", "notes"),
                ("subagent_dispatcher", "notes"),
            ]


@pytest.mark.loops
async def test_an_extension_cannot_use_what_its_host_does_not_offer() -> None:
    notes = Notes()
    with fail_after(60):
        async with connected(notes, dialect="roder", grants=GRANTS):
            with pytest.raises(NotSupported, match="roder"):
                await notes.host.memory.append("a")


# -- before the handshake


@pytest.mark.loops
async def test_a_call_before_the_first_exchange_gets_a_response() -> None:
    ours, theirs = memory_transports()
    params = roder.ToolCallParams(
        provider_id="notes", tool_name="count", call_id="c", thread_id="t", turn_id="u", arguments={"text": "a"}
    )
    with fail_after(60):
        async with Notes().over(theirs, dialect="roder"), Peer.over(ours, dialect="roder") as host:
            result = await host.call(roder.TOOLS_CALL, params)
            with pytest.raises(RemoteError) as early:
                await host.call(roder.LIST_MODELS, roder.ListModelsParams("local"))
            with pytest.raises(RemoteError) as dispatched:
                await host.call(roder.SUBAGENTS_DISPATCH, work("fail"))

    assert result.is_error
    assert "not ready" in result.content
    assert "not ready" in early.value.message
    assert "not ready" in dispatched.value.message


@pytest.mark.loops
@pytest.mark.parametrize("extension", ["Notes", "Plain"])
async def test_a_turn_before_the_handshake_is_rejected_and_not_acknowledged(extension: str) -> None:
    ours, theirs = memory_transports()
    request = to_inference_request(
        ProviderRequest("local", "small", "notes:local:small", (user("hi"),)), "local", "small"
    )
    turn = roder.StreamTurnParams(engine_id="local", stream_id="s", thread_id="t", turn_id="u", request=request)
    served = {"Notes": Notes, "Plain": Plain}[extension]()
    with fail_after(60):
        async with served.over(theirs, dialect="roder"), Peer.over(ours, dialect="roder") as host:
            with pytest.raises(RemoteError, match="not ready"):
                await host.call(roder.STREAM_TURN.name, turn)


# -- a class without coroutines


class Plain(ExtensionServer):
    """Has plain functions alone."""

    id, version = "plain", "1.0.0"

    def __init__(self) -> None:
        super().__init__()
        self.looked_again = threading.Event()
        self.has_seen = threading.Event()

    @tool("Counts letters.")
    def count(self, text: str) -> int:
        return len(text)

    @provider("local", models=[Model("small")], display_name="Local", description="Says hello.")
    def answer(self, request: ProviderRequest, out: BlockingProviderStream) -> ProviderResult:
        out.text("hello")
        return ProviderResult.of_text("hello")

    @handles(roder.SUBAGENTS_DISPATCH)
    def work(self, params: roder.DispatchParams, ctx: BlockingContext) -> roder.SubagentResult:
        status = roder.SubagentEventParams(params.dispatch_id, roder.SubagentStatus("RUNNING"))
        ctx.notify(roder.SUBAGENTS_EVENT, status)
        while not ctx.is_cancelled:
            self.looked_again.wait(0.01)
        self.has_seen.set()
        raise RpcError(1, "given up")

    @command("tidy")
    def tidy(self, args: list[str], out: BlockingCommandOutput) -> str:
        out.text((threading.current_thread().name != "MainThread" and "in a worker") or "inline")
        return "tidied"


@pytest.mark.loops
async def test_plain_functions_serve_a_host_of_roder_too() -> None:
    with fail_after(60):
        async with connected(Plain(), dialect="roder", grants=GRANTS) as (host, _):
            counted = await host.call_tool("count", {"text": "abc"})
            responded = await host.complete("local", "small", messages=[user("hi")])
            async with host.invoke_command("tidy") as run:
                output = [event async for event in run]
                result = await run.result()

    assert (counted, responded.text, result) == ("3", "hello", "tidied")
    assert output[0] == Text("in a worker")


@pytest.mark.loops
async def test_a_plain_function_sees_that_its_call_was_cancelled() -> None:
    plain = Plain()
    with fail_after(60):
        async with connected(plain, dialect="roder", grants=GRANTS) as (host, _):
            async with host.peer.stream(roder.SUBAGENTS_DISPATCH, work("forever")) as dispatch:
                async for _event in dispatch:
                    break
            assert await anyio.to_thread.run_sync(plain.has_seen.wait, 4)
