"""Providers in a host: the provider of a model, trust, and the tool loop."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import msgspec
import pytest

from becket.contract.audit import CHAIN_START, ProviderCalled, ProviderOutcome, encode_record
from becket.contract.hooks import Block, Continue, HookEvent, HookKind, HookResult, Modify, Replace
from becket.contract.providers import (
    MAX_TOOL_OUTPUT,
    MAX_TOOL_TURNS,
    Message,
    Model,
    Provider,
    ProviderRequest,
    ProviderResult,
    ToolUse,
    tool_result,
    user,
)
from becket.contract.tools import Tool
from becket.errors import BadReply, CallTimeout, NotDeclared, ProviderDisabled, RemoteError, TooManyTurns
from becket.host.hooks import HookVerdict, RunHooks
from becket.host.providers import (
    ModelRoute,
    ProviderRegistry,
    ProviderTrust,
    ToolRunner,
    build_blocked_record,
    complete_with_tools,
    parse_trust,
)
from becket.host.tools import RegisteredTool, ToolRegistry
from becket.limits import Limits

LOCAL = Provider(id=" local ", display_name="Local", description="d", models=(Model("small"), Model(" large ")))
CLOUD = Provider(id="cloud", display_name="Cloud", description="d", models=(Model("small", streaming=True),))


# -- routes


def test_a_model_is_found_by_the_id_that_it_has_among_all() -> None:
    providers = ProviderRegistry()
    assert providers.add("notes", [LOCAL, CLOUD]) == []
    providers.add("chat", [CLOUD])

    route = providers.route("notes:local:large")

    assert (route.extension, route.provider, route.model) == ("notes", LOCAL, LOCAL.models[1])
    assert (route.provider_id, route.model_id) == ("notes:local", "notes:local:large")
    assert providers.models() == ("chat:cloud:small", "notes:cloud:small", "notes:local:large", "notes:local:small")


@pytest.mark.parametrize("model", ["notes:local:huge", "notes:none:small", "none:local:small"])
def test_the_error_for_an_unknown_model_lists_the_known_ones(model: str) -> None:
    providers = ProviderRegistry()
    providers.add("notes", [LOCAL])

    with pytest.raises(NotDeclared) as caught:
        providers.route(model)

    known = ("notes:local:small", "notes:local:large") if model.startswith("notes") else ()
    assert (caught.value.name, caught.value.known) == (model, known)


@pytest.mark.parametrize("model", ["", "notes", "notes:local", "notes::small", "notes:local:small:x"])
def test_an_id_has_three_parts(model: str) -> None:
    with pytest.raises(ValueError):
        ProviderRegistry().route(model)


def test_a_provider_that_is_declared_twice_is_used_once_and_reported() -> None:
    providers = ProviderRegistry()
    other = Provider(id="local", display_name="Other", description="d", models=(Model("tiny"),))

    (found,) = providers.add("notes", [LOCAL, other])

    assert found.extension == "notes"
    assert "local" in found.problem
    assert providers.models() == ("notes:local:large", "notes:local:small")


def test_a_restart_registers_the_new_declarations_and_a_stop_removes_them() -> None:
    providers = ProviderRegistry()
    providers.add("notes", [LOCAL])

    providers.add("notes", [CLOUD])
    assert providers.models() == ("notes:cloud:small",)

    providers.remove("notes")
    providers.remove("notes")
    assert providers.models() == ()


# -- trust


@pytest.mark.parametrize("data", [None, b"{}", b'{"disabled":{}}', b'{"disabled":{"a:b":{"disabled":false}}}'])
def test_all_providers_are_trusted_by_default(data: bytes | None) -> None:
    parse_trust(data).check("a:b")


def test_a_provider_that_was_disabled_is_refused_with_the_reason() -> None:
    trust = parse_trust(b'{"disabled":{"a:b":{"disabled":true,"reason":"leaks"},"c:d":{"disabled":true}},"more":1}')

    with pytest.raises(ProviderDisabled) as caught:
        trust.check("a:b")
    assert (caught.value.provider, caught.value.because) == ("a:b", "leaks")
    with pytest.raises(ProviderDisabled):
        trust.check("c:d")
    trust.check("a:c")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"disabled":[]}', b'{"disabled":{"a:b":{}}}', b"\xff", b"[" * 9999]
)
def test_if_the_trust_setting_cannot_be_read_no_provider_is_trusted(data: bytes) -> None:
    trust = parse_trust(data)

    with pytest.raises(ProviderDisabled) as caught:
        trust.check("any:one")
    assert "cannot be read" in caught.value.because


def test_trust_is_written_and_read() -> None:
    trust = ProviderTrust().disable("c:d").disable("a:b", "leaks")

    assert parse_trust(trust.encode()) == trust
    assert parse_trust(trust.enable("c:d").enable("x:y").encode()) == ProviderTrust({"a:b": "leaks"})
    assert msgspec.json.decode(trust.encode()) == {
        "disabled": {"a:b": {"disabled": True, "reason": "leaks"}, "c:d": {"disabled": True}}
    }


def test_a_call_that_was_not_made_has_a_record() -> None:
    record = build_blocked_record(ModelRoute("notes", LOCAL, LOCAL.models[1]), tools_exposed=True)

    assert record == ProviderCalled("notes", "local", "large", True, ProviderOutcome.BLOCKED, 0, False, "disabled")
    assert b'"blocked"' in encode_record(record, CHAIN_START, 0)[0]


# -- the loop

REQUEST = ProviderRequest("local", "small", "notes:local:small", (user("hi"),))
DONE = ProviderResult.of_text("done")


def calling(*names: str) -> ProviderResult:
    blocks = [{"type": "tool_use", "id": f"t{number}", "name": name} for number, name in enumerate(names)]
    return ProviderResult(({"type": "text", "text": "let me see"}, *blocks))


class Scripted:
    """A model with given responses, which records its requests."""

    def __init__(self, *responses: ProviderResult) -> None:
        self.responses = [*responses]
        self.requests: list[ProviderRequest] = []

    async def complete(self, request: ProviderRequest) -> ProviderResult:
        self.requests.append(request)
        return self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]


async def echo(use: ToolUse, most_output: int) -> dict[str, Any]:
    return {"ran": use.name}


@pytest.mark.loops
async def test_tool_results_are_sent_to_a_model_until_it_responds() -> None:
    model = Scripted(calling("a", "b"), calling("c"), DONE)

    assert await complete_with_tools("notes", REQUEST, model.complete, echo) == DONE

    assert model.requests[0] == REQUEST
    assert model.requests[2].messages == (
        user("hi"),
        Message("assistant", calling("a", "b").content),
        Message("user", ({"ran": "a"}, {"ran": "b"})),
        Message("assistant", calling("c").content),
        Message("user", ({"ran": "c"},)),
    )


async def test_a_response_without_tools_is_the_response() -> None:
    model = Scripted(DONE)

    assert await complete_with_tools("notes", REQUEST, model.complete, echo) == DONE
    assert len(model.requests) == 1


async def test_a_model_that_never_finishes_is_called_eight_times() -> None:
    model = Scripted(calling("again"))
    ran: list[str] = []

    async def use_tool(use: ToolUse, most_output: int) -> dict[str, Any]:
        ran.append(use.name)
        return {}

    with pytest.raises(TooManyTurns) as caught:
        await complete_with_tools("notes", REQUEST, model.complete, use_tool)

    assert (caught.value.extension, caught.value.limit) == ("notes", MAX_TOOL_TURNS)
    assert len(model.requests) == 8
    assert len(ran) == 7


async def test_a_model_may_finish_in_its_last_turn() -> None:
    model = Scripted(*[calling("a")] * 7, DONE)

    assert await complete_with_tools("notes", REQUEST, model.complete, echo) == DONE


@pytest.mark.parametrize("block", [{"name": "a"}, {"id": "", "name": "a"}, {"id": "1", "name": "a", "input": []}])
async def test_a_malformed_tool_call_fails_the_call(block: dict[str, Any]) -> None:
    model = Scripted(ProviderResult(({"type": "tool_use", **block},)))

    with pytest.raises(BadReply) as caught:
        await complete_with_tools("notes", REQUEST, model.complete, echo)
    assert caught.value.method == "provider.complete"


async def test_an_error_of_the_model_request_is_raised() -> None:
    async def complete(request: ProviderRequest) -> ProviderResult:
        raise RemoteError(method="provider.complete", code=1, message="no credit")

    with pytest.raises(RemoteError):
        await complete_with_tools("notes", REQUEST, complete, echo)


# -- the limits of a turn


def content_of(message: Message) -> list[dict[str, Any]]:
    assert not isinstance(message.content, str)
    return [*message.content]


def calls_in(message: Message) -> list[str]:
    return [block["id"] for block in content_of(message) if block["type"] == "tool_use"]


async def test_tool_calls_beyond_the_limit_of_a_turn_do_not_run_and_are_reported_to_the_model() -> None:
    model = Scripted(calling(*["a"] * 6_000), DONE)
    ran: list[str] = []

    async def use_tool(use: ToolUse, most_output: int) -> dict[str, Any]:
        ran.append(use.id)
        return tool_result(use.id, "done")

    assert await complete_with_tools("notes", REQUEST, model.complete, use_tool) == DONE

    _, requested, received = model.requests[1].messages
    assert len(ran) == 64
    assert calls_in(requested) == ran  # a call without a result would be refused by most models
    *results, note = content_of(received)
    assert [block["tool_use_id"] for block in results] == ran
    assert note["type"] == "text"
    assert "5936" in note["text"]


async def test_text_beside_tool_calls_is_preserved() -> None:
    model = Scripted(calling("a", "b", "c"), DONE)

    await complete_with_tools("notes", REQUEST, model.complete, echo, limits=Limits(model_tool_calls=1))

    assert content_of(model.requests[1].messages[1]) == [*calling("a").content]


async def test_each_turn_may_call_as_many_tools() -> None:
    model = Scripted(calling("a", "b", "c"), calling("a", "b"), DONE)
    ran: list[str] = []

    async def use_tool(use: ToolUse, most_output: int) -> dict[str, Any]:
        ran.append(use.name)
        return tool_result(use.id, "done")

    await complete_with_tools("notes", REQUEST, model.complete, use_tool, limits=Limits(model_tool_calls=2))

    assert ran == ["a", "b", "a", "b"]
    assert len(content_of(model.requests[2].messages[4])) == 2  # nothing was left out in the second turn


async def test_the_outputs_of_a_turn_share_its_bytes_and_calls_beyond_them_do_not_run() -> None:
    model = Scripted(calling("a", "b", "c"), calling("d"), DONE)
    rooms: list[tuple[str, int]] = []

    async def use_tool(use: ToolUse, most_output: int) -> dict[str, Any]:
        rooms.append((use.name, most_output))
        return tool_result(use.id, "€" * 100)

    await complete_with_tools("notes", REQUEST, model.complete, use_tool, limits=Limits(model_tool_bytes=600))

    assert rooms == [("a", 600), ("b", 300), ("d", 600)]
    *_, last = content_of(model.requests[1].messages[2])
    assert (last["tool_use_id"], last["is_error"]) == ("t2", True)
    assert "600" in last["content"]


@pytest.mark.loops
@pytest.mark.parametrize("hangs", ["model", "tool"])
async def test_all_turns_of_a_response_end_by_their_total_time(hangs: str) -> None:
    cancelled: list[str] = []

    async def complete(request: ProviderRequest) -> ProviderResult:
        if hangs == "model" and len(request.messages) > 1:
            await hang("model")
        return calling("a")

    async def use_tool(use: ToolUse, most_output: int) -> dict[str, Any]:
        if hangs == "tool":
            await hang("tool")
        return tool_result(use.id, "done")

    async def hang(what: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(what)

    with anyio.fail_after(60), pytest.raises(CallTimeout) as caught:
        await complete_with_tools("notes", REQUEST, complete, use_tool, limits=Limits(model_seconds=0.02))

    assert caught.value.seconds == 0.02
    assert cancelled == [hangs]


async def test_without_a_total_time_a_response_may_take_for_ever() -> None:
    model = Scripted(calling("a"), DONE)

    assert await complete_with_tools("notes", REQUEST, model.complete, echo, limits=Limits(model_seconds=0)) == DONE


# -- one tool


class Calls:
    """Tools with given results, which record their calls."""

    def __init__(self, output: str | Exception = "sunny") -> None:
        self.output = output
        self.inputs: list[Any] = []

    async def call(self, tool: RegisteredTool, input: Any) -> str:
        self.inputs.append(input)
        if isinstance(self.output, Exception):
            raise self.output
        return self.output


def weather_tools() -> ToolRegistry:
    tools = ToolRegistry()
    schema = {"type": "object", "properties": {"the city": {"type": "string"}}}
    tools.add("weather", [Tool("get", "d", schema)])
    return tools


USE = ToolUse("t1", "weather_get", {"the_city": "Rome"})


def hooks(events: list[HookEvent], before: HookResult, after: HookResult) -> RunHooks:
    async def ask(event: HookEvent) -> HookVerdict:
        events.append(event)
        return HookVerdict(before if event.kind is HookKind.BEFORE_TOOL_CALL else after, "guard")  # type: ignore[arg-type]

    return ask


@pytest.mark.loops
async def test_a_tool_runs_with_the_names_of_its_own_schema() -> None:
    calls = Calls()

    block = await ToolRunner(weather_tools(), calls.call).run(USE)

    assert block == {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
    assert calls.inputs == [{"the city": "Rome"}]


async def test_a_missing_tool_is_reported_to_the_model() -> None:
    block = await ToolRunner(weather_tools(), Calls().call).run(ToolUse("t1", "fly"))

    assert block == {"type": "tool_result", "tool_use_id": "t1", "content": "Unknown tool: fly", "is_error": True}


async def test_hooks_see_a_tool_before_and_after_it_ran() -> None:
    events: list[HookEvent] = []

    await ToolRunner(weather_tools(), Calls("x" * 40_000).call, hooks(events, Continue(), Continue())).run(USE)

    before, after = events
    assert before == HookEvent.before_tool_call("weather_get", {"the city": "Rome"}, runtime_name="weather:get")
    assert (after.kind, after.tool_runtime_name) == (HookKind.AFTER_TOOL_CALL, "weather:get")
    assert after.tool_output is not None
    assert after.tool_output.endswith("[truncated, 40000 total bytes]")


async def test_a_tool_that_a_hook_blocks_does_not_run() -> None:
    calls = Calls()
    events: list[HookEvent] = []

    block = await ToolRunner(weather_tools(), calls.call, hooks(events, Block("not now"), Continue())).run(USE)

    assert block["content"] == "Tool call blocked by extension: not now"
    assert block["is_error"] is True
    assert calls.inputs == []
    assert len(events) == 1


async def test_a_hook_changes_the_input() -> None:
    calls = Calls()

    await ToolRunner(weather_tools(), calls.call, hooks([], Modify({"the city": "Oslo"}), Continue())).run(USE)

    assert calls.inputs == [{"the city": "Oslo"}]


@pytest.mark.parametrize("output", ["sunny", RemoteError(method="tool.call", code=1, message="no net")])
async def test_a_hook_replaces_the_output_but_not_that_it_is_an_error(output: str | Exception) -> None:
    ask = hooks([], Continue(), Replace("redacted"))

    block = await ToolRunner(weather_tools(), Calls(output).call, ask).run(USE)

    assert block["content"] == "redacted"
    assert block.get("is_error", False) is isinstance(output, Exception)


async def test_a_tool_that_fails_is_reported_to_the_model() -> None:
    error = RemoteError(method="tool.call", code=1, message="no net")

    block = await ToolRunner(weather_tools(), Calls(error).call).run(USE)

    assert block["content"] == "Tool execution failed: tool.call: no net (1)"
    assert block["is_error"] is True


async def test_the_text_of_an_unknown_error_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "becket.host"):
        block = await ToolRunner(weather_tools(), Calls(ValueError("secret")).call).run(USE)

    assert "secret" not in block["content"]
    assert block["is_error"] is True
    assert "weather:get" in caplog.text
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("output", "size"),
    [("x" * 30_001, 30_000), ("€" * 10_001, 29_998), ("x" + "€" * 10_000, 29_999)],
)
async def test_a_long_output_is_truncated_between_characters_with_a_note(output: str, size: int) -> None:
    block = await ToolRunner(weather_tools(), Calls(output).call).run(USE)

    shown, note = block["content"].rsplit("\n", 1)
    assert output.startswith(shown)
    assert str(len(output.encode())) in note
    assert len(block["content"].encode()) == size <= MAX_TOOL_OUTPUT


async def test_an_output_that_fits_is_left_alone() -> None:
    block = await ToolRunner(weather_tools(), Calls("x" * MAX_TOOL_OUTPUT).call).run(USE)

    assert block["content"] == "x" * MAX_TOOL_OUTPUT


async def test_not_even_the_note_is_longer_than_an_output_may_be() -> None:
    block = await ToolRunner(weather_tools(), Calls("x" * 100).call, most_output=8).run(USE)

    assert len(block["content"]) == 8
