"""Providers in a host: who answers for a model, who is trusted, and the loop in which a model uses tools."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from becket.contract.audit import AUDIT_START, ProviderCalled, ProviderOutcome, encode_record
from becket.contract.hooks import Block, Continue, HookEvent, HookKind, HookResult, Modify, Replace
from becket.contract.providers import (
    MOST_TOOL_OUTPUT,
    MOST_TOOL_TURNS,
    Message,
    Model,
    Provider,
    ProviderRequest,
    ProviderResult,
    ToolUse,
    user,
)
from becket.contract.tools import Tool
from becket.errors import BadReply, NotDeclared, ProviderDisabled, RemoteError, TooManyTurns
from becket.host.hooks import AskHooks, HookVerdict
from becket.host.providers import Providers, Route, ToolUser, Trust, blocked_call, complete_with_tools, parse_trust
from becket.host.tools import RegisteredTool, Tools

LOCAL = Provider(id=" local ", display_name="Local", description="d", models=(Model("small"), Model(" large ")))
CLOUD = Provider(id="cloud", display_name="Cloud", description="d", models=(Model("small", streaming=True),))


# -- routes


def test_a_model_is_found_by_the_id_that_it_has_among_all() -> None:
    providers = Providers()
    assert providers.add("notes", [LOCAL, CLOUD]) == []
    providers.add("chat", [CLOUD])

    route = providers.route("notes:local:large")

    assert (route.extension, route.provider, route.model) == ("notes", LOCAL, LOCAL.models[1])
    assert (route.provider_id, route.model_id) == ("notes:local", "notes:local:large")
    assert providers.models() == ("chat:cloud:small", "notes:cloud:small", "notes:local:large", "notes:local:small")


@pytest.mark.parametrize("model", ["notes:local:huge", "notes:none:small", "none:local:small"])
def test_a_model_that_nobody_has_is_told_with_those_that_there_are(model: str) -> None:
    providers = Providers()
    providers.add("notes", [LOCAL])

    with pytest.raises(NotDeclared) as caught:
        providers.route(model)

    known = ("notes:local:small", "notes:local:large") if model.startswith("notes") else ()
    assert (caught.value.name, caught.value.known) == (model, known)


@pytest.mark.parametrize("model", ["", "notes", "notes:local", "notes::small", "notes:local:small:x"])
def test_an_id_has_three_parts(model: str) -> None:
    with pytest.raises(ValueError):
        Providers().route(model)


def test_a_provider_that_is_declared_twice_is_taken_once_and_told() -> None:
    providers = Providers()
    other = Provider(id="local", display_name="Other", description="d", models=(Model("tiny"),))

    (found,) = providers.add("notes", [LOCAL, other])

    assert found.extension == "notes"
    assert "local" in found.problem
    assert providers.models() == ("notes:local:large", "notes:local:small")


def test_a_restart_brings_what_is_declared_then_and_a_stop_takes_it_away() -> None:
    providers = Providers()
    providers.add("notes", [LOCAL])

    providers.add("notes", [CLOUD])
    assert providers.models() == ("notes:cloud:small",)

    providers.remove("notes")
    providers.remove("notes")
    assert providers.models() == ()


# -- trust


@pytest.mark.parametrize("data", [None, b"{}", b'{"disabled":{}}', b'{"disabled":{"a:b":{"disabled":false}}}'])
def test_all_are_trusted_unless_somebody_says_otherwise(data: bytes | None) -> None:
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
def test_where_it_cannot_be_read_whom_to_trust_nobody_is_trusted(data: bytes) -> None:
    trust = parse_trust(data)

    with pytest.raises(ProviderDisabled) as caught:
        trust.check("any:one")
    assert "cannot be read" in caught.value.because


def test_trust_is_written_as_it_is_read() -> None:
    trust = Trust().disable("c:d").disable("a:b", "leaks")

    assert parse_trust(trust.encode()) == trust
    assert parse_trust(trust.enable("c:d").enable("x:y").encode()) == Trust({"a:b": "leaks"})
    assert msgspec.json.decode(trust.encode()) == {
        "disabled": {"a:b": {"disabled": True, "reason": "leaks"}, "c:d": {"disabled": True}}
    }


def test_a_call_that_was_not_made_has_a_record() -> None:
    record = blocked_call(Route("notes", LOCAL, LOCAL.models[1]), tools_exposed=True)

    assert record == ProviderCalled("notes", "local", "large", True, ProviderOutcome.BLOCKED, 0, False, "disabled")
    assert b'"blocked"' in encode_record(record, AUDIT_START, 0)[0]


# -- the loop

REQUEST = ProviderRequest("local", "small", "notes:local:small", (user("hi"),))
ANSWER = ProviderResult.of_text("done")


def asking(*names: str) -> ProviderResult:
    blocks = [{"type": "tool_use", "id": f"t{number}", "name": name} for number, name in enumerate(names)]
    return ProviderResult(({"type": "text", "text": "let me see"}, *blocks))


class Scripted:
    """A model that answers what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: ProviderResult) -> None:
        self.answers = [*answers]
        self.requests: list[ProviderRequest] = []

    async def complete(self, request: ProviderRequest) -> ProviderResult:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def echo(use: ToolUse) -> dict[str, Any]:
    return {"ran": use.name}


@pytest.mark.loops
async def test_a_model_is_told_what_its_tools_gave_until_it_answers() -> None:
    model = Scripted(asking("a", "b"), asking("c"), ANSWER)

    assert await complete_with_tools("notes", REQUEST, model.complete, echo) == ANSWER

    assert model.requests[0] == REQUEST
    assert model.requests[2].messages == (
        user("hi"),
        Message("assistant", asking("a", "b").content),
        Message("user", ({"ran": "a"}, {"ran": "b"})),
        Message("assistant", asking("c").content),
        Message("user", ({"ran": "c"},)),
    )


async def test_an_answer_without_tools_is_the_answer() -> None:
    model = Scripted(ANSWER)

    assert await complete_with_tools("notes", REQUEST, model.complete, echo) == ANSWER
    assert len(model.requests) == 1


async def test_a_model_that_never_answers_is_asked_eight_times() -> None:
    model = Scripted(asking("again"))
    ran: list[str] = []

    async def use_tool(use: ToolUse) -> dict[str, Any]:
        ran.append(use.name)
        return {}

    with pytest.raises(TooManyTurns) as caught:
        await complete_with_tools("notes", REQUEST, model.complete, use_tool)

    assert (caught.value.extension, caught.value.limit) == ("notes", MOST_TOOL_TURNS)
    assert len(model.requests) == 8
    assert len(ran) == 7


async def test_a_model_may_answer_in_its_last_turn() -> None:
    model = Scripted(*[asking("a")] * 7, ANSWER)

    assert await complete_with_tools("notes", REQUEST, model.complete, echo) == ANSWER


@pytest.mark.parametrize("block", [{"name": "a"}, {"id": "", "name": "a"}, {"id": "1", "name": "a", "input": []}])
async def test_a_tool_that_is_asked_for_in_a_wrong_way_fails_the_call(block: dict[str, Any]) -> None:
    model = Scripted(ProviderResult(({"type": "tool_use", **block},)))

    with pytest.raises(BadReply) as caught:
        await complete_with_tools("notes", REQUEST, model.complete, echo)
    assert caught.value.method == "provider.complete"


async def test_what_asking_the_model_raises_is_raised() -> None:
    async def complete(request: ProviderRequest) -> ProviderResult:
        raise RemoteError(method="provider.complete", code=1, message="no credit")

    with pytest.raises(RemoteError):
        await complete_with_tools("notes", REQUEST, complete, echo)


# -- one tool


class Calls:
    """Tools that give what they are told to, and remember with what they were called."""

    def __init__(self, output: str | Exception = "sunny") -> None:
        self.output = output
        self.inputs: list[Any] = []

    async def call(self, tool: RegisteredTool, input: Any) -> str:
        self.inputs.append(input)
        if isinstance(self.output, Exception):
            raise self.output
        return self.output


def weather_tools() -> Tools:
    tools = Tools()
    schema = {"type": "object", "properties": {"the city": {"type": "string"}}}
    tools.add("weather", [Tool("get", "d", schema)])
    return tools


USE = ToolUse("t1", "weather_get", {"the_city": "Rome"})


def hooks(events: list[HookEvent], before: HookResult, after: HookResult) -> AskHooks:
    async def ask(event: HookEvent) -> HookVerdict:
        events.append(event)
        return HookVerdict(before if event.kind is HookKind.BEFORE_TOOL_CALL else after, "guard")  # type: ignore[arg-type]

    return ask


@pytest.mark.loops
async def test_a_tool_runs_with_the_names_of_its_own_schema() -> None:
    calls = Calls()

    block = await ToolUser(weather_tools(), calls.call).use(USE)

    assert block == {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
    assert calls.inputs == [{"the city": "Rome"}]


async def test_a_tool_that_is_not_there_is_told_to_the_model() -> None:
    block = await ToolUser(weather_tools(), Calls().call).use(ToolUse("t1", "fly"))

    assert block == {"type": "tool_result", "tool_use_id": "t1", "content": "Unknown tool: fly", "is_error": True}


async def test_hooks_see_a_tool_before_and_after_it_ran() -> None:
    events: list[HookEvent] = []

    await ToolUser(weather_tools(), Calls("x" * 40_000).call, hooks(events, Continue(), Continue())).use(USE)

    before, after = events
    assert before == HookEvent.before_tool_call("weather_get", {"the city": "Rome"}, runtime_name="weather:get")
    assert (after.kind, after.tool_runtime_name) == (HookKind.AFTER_TOOL_CALL, "weather:get")
    assert after.tool_output is not None
    assert after.tool_output.endswith("[truncated, 40000 total bytes]")


async def test_a_tool_that_a_hook_blocks_does_not_run() -> None:
    calls = Calls()
    events: list[HookEvent] = []

    block = await ToolUser(weather_tools(), calls.call, hooks(events, Block("not now"), Continue())).use(USE)

    assert block["content"] == "Tool call blocked by extension: not now"
    assert block["is_error"] is True
    assert calls.inputs == []
    assert len(events) == 1


async def test_a_hook_changes_the_input() -> None:
    calls = Calls()

    await ToolUser(weather_tools(), calls.call, hooks([], Modify({"the city": "Oslo"}), Continue())).use(USE)

    assert calls.inputs == [{"the city": "Oslo"}]


@pytest.mark.parametrize("output", ["sunny", RemoteError(method="tool.call", code=1, message="no net")])
async def test_a_hook_replaces_the_output_but_not_that_it_is_an_error(output: str | Exception) -> None:
    ask = hooks([], Continue(), Replace("redacted"))

    block = await ToolUser(weather_tools(), Calls(output).call, ask).use(USE)

    assert block["content"] == "redacted"
    assert block.get("is_error", False) is isinstance(output, Exception)


async def test_a_tool_that_fails_is_told_to_the_model() -> None:
    error = RemoteError(method="tool.call", code=1, message="no net")

    block = await ToolUser(weather_tools(), Calls(error).call).use(USE)

    assert block["content"] == "Tool execution failed: tool.call: no net (1)"
    assert block["is_error"] is True


async def test_what_an_unknown_error_says_is_for_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "becket.host"):
        block = await ToolUser(weather_tools(), Calls(ValueError("secret")).call).use(USE)

    assert "secret" not in block["content"]
    assert block["is_error"] is True
    assert "weather:get" in caplog.text
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("output", "size"),
    [("x" * 30_000, 30_000), ("x" * 30_001, 30_000), ("€" * 10_001, 30_000), ("x" + "€" * 10_000, 29_998)],
)
async def test_a_long_output_is_cut_where_a_character_ends(output: str, size: int) -> None:
    block = await ToolUser(weather_tools(), Calls(output).call).use(USE)

    assert len(block["content"].encode()) == size <= MOST_TOOL_OUTPUT
    assert output.startswith(block["content"])
