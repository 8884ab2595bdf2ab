"""The host's handle on one extension: the requests and results of its calls, and its end."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest
from msgspec.structs import asdict
from tests.host.stand_ins import ALL, ECHO, LOCAL, SOON, hosted, initialized, introduce, played
from tests.peer.scripted import Script, notification, refusal, response, settled

from becket import BadReply, CallTimeout, ConnectionLost, Context, Peer, Registry, RemoteError, RpcError
from becket.contract.hooks import Block, Confirm, Continue, HookEvent, HookResult, Inject, Modify, Replace
from becket.contract.info import BuildInfo, ExtensionInfo, SidecarArgs
from becket.contract.providers import ProviderRequest, ProviderResult, assistant, user
from becket.contract.settings import EditorClosed, EditorCommitted, EditorRender, EditorRow, EditorTaken
from becket.contract.tasks import TaskStarted, TaskUpdated
from becket.contract.widgets import WidgetDismiss, WidgetUpsert
from becket.errors import BadValue, NotDeclared, NotSupported, PermissionDenied
from becket.host.starting.connect import connect_extension_over
from becket.host.timeouts import Timeouts
from becket.testing import memory_transports, run_in_virtual_time

pytestmark = pytest.mark.loops

STRICT = {
    "name": "count",
    "description": "Counts.",
    "input_schema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["text"],
        "additionalProperties": False,
    },
}
HOOKS = ("tools.intercept", "privacy.llm_content", "session.lifecycle")


# -- tools


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("milk", "milk"),
        ({"content": "milk"}, "milk"),
        ({"content": "milk", "more": 1}, "milk"),
        ({"content": 5}, '{"content":5}'),
        (None, "null"),
        (5, "5"),
        (["a", 1.5], '["a",1.5]'),
    ],
)
async def test_a_model_gets_the_result_of_a_tool_as_text(result: object, text: str) -> None:
    async with hosted() as (notes, child):

        @child.handle("tool.call")
        def call(params: Any) -> object:
            assert params == {"name": "echo", "input": {"a": 1}}
            return result

        assert await notes.call_tool("echo", {"a": 1}) == text
        assert await notes.call_tool_json("echo", {"a": 1}) == result


async def test_a_tool_without_input_gets_an_empty_one() -> None:
    async with hosted() as (notes, child):

        @child.handle("tool.call")
        def call(params: Any) -> Any:
            return params

        assert await notes.call_tool_json("echo") == {"name": "echo", "input": {}}


async def test_a_tool_is_called_by_the_name_that_it_was_declared_with() -> None:
    async with hosted(tools=[ECHO | {"name": " echo "}]) as (notes, child):

        @child.handle("tool.call")
        def call(params: Any) -> Any:
            return params["name"]

        assert await notes.call_tool("echo") == " echo "


async def test_a_tool_that_was_never_declared_is_not_called() -> None:
    async with played() as (notes, script):
        with pytest.raises(NotDeclared) as caught:
            await notes.call_tool("cuont")
        assert (caught.value.what, caught.value.name, caught.value.known) == ("tool", "cuont", ("echo",))
        assert script.unread() == []


async def test_the_caller_gets_the_error_of_a_tool() -> None:
    async with hosted() as (notes, child):

        @child.handle("tool.call")
        def call(params: Any) -> Any:
            raise RpcError(7, "out of paper")

        with pytest.raises(RemoteError) as caught:
            await notes.call_tool("echo")
        assert (caught.value.code, caught.value.message) == (7, "out of paper")


async def test_an_input_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    async with played(initialized(tools=[STRICT])) as (notes, script):
        with pytest.raises(BadValue) as caught:
            await notes.call_tool("count", {"text": 5, "size": 1})
        assert {pointer for pointer, _ in caught.value.problems} == {"/text", "/size"}
        assert "count" in str(caught.value)
        assert script.unread() == []


async def test_an_input_that_does_not_fit_can_be_warned_about_only(caplog: pytest.LogCaptureFixture) -> None:
    async with hosted(tools=[STRICT], schemas="warn") as (notes, child):
        child.handle("tool.call")(lambda params: "ran")
        assert await notes.call_tool("count", {"text": 5}) == "ran"
        assert "/text" in caplog.text


async def test_the_validation_of_inputs_can_be_turned_off(caplog: pytest.LogCaptureFixture) -> None:
    async with hosted(tools=[STRICT], schemas="off") as (notes, child):
        child.handle("tool.call")(lambda params: "ran")
        assert await notes.call_tool("count", {"text": 5}) == "ran"
        assert caplog.records == []


# -- providers


async def test_a_model_request_has_every_member_of_the_contract() -> None:
    called: list[Any] = []
    async with hosted() as (notes, child):

        @child.handle("provider.complete")
        def complete(params: Any) -> Any:
            called.append(params)
            return {"content": [{"type": "text", "text": "hello"}], "stop_reason": "end", "usage": {"tokens": 1}}

        result = await notes.complete(
            "local",
            "small",
            messages=[user("hi"), assistant("yes?")],
            system_prompt="be brief",
            tools=[{"name": "bash"}],
            temperature=0.5,
            max_tokens=10,
            thinking_budget=3,
        )
        assert await notes.complete("local", "small", messages=[])
    assert result == ProviderResult(({"type": "text", "text": "hello"},), "end", {"tokens": 1})
    assert called[0] == {
        "provider_id": "local",
        "model_id": "small",
        "model": "notes:local:small",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}],
        "system_prompt": "be brief",
        "tools": [{"name": "bash"}],
        "temperature": 0.5,
        "max_tokens": 10,
        "thinking_budget": 3,
    }
    assert called[1].keys() == asdict(ProviderRequest("", "", "", ())).keys()  # all members are sent, null or not


async def test_a_complete_response_has_content() -> None:
    async with hosted() as (notes, child):
        child.handle("provider.complete")(lambda params: {"content": []})
        with pytest.raises(BadReply) as caught:
            await notes.complete("local", "small", messages=[])
        assert caught.value.problem == "Extension 'notes' provider.complete returned empty content"


@pytest.mark.parametrize(
    ("provider", "model", "what", "name"), [("remote", "small", "provider", "remote"), ("local", "big", "model", "big")]
)
async def test_an_undeclared_provider_is_not_called(provider: str, model: str, what: str, name: str) -> None:
    async with played() as (notes, script):
        with pytest.raises(NotDeclared) as caught:
            await notes.complete(provider, model, messages=[])
        assert caught.value.what.startswith(what)
        assert caught.value.name == name
        with pytest.raises(NotDeclared):
            async with notes.stream(provider, model, messages=[]):
                pass
        assert script.unread() == []


# -- hooks


async def asked_about(result: Any, event: HookEvent, *, grants: tuple[str, ...] = HOOKS) -> HookResult:
    async with hosted(grants=(*ALL, *grants)) as (notes, child):
        child.handle("hook.handle")(lambda params: result)
        return await notes.handle_hook(event)


BASH = HookEvent.before_tool_call("bash", {"command": "ls"})


@pytest.mark.parametrize(
    ("result", "meaning"),
    [
        ({"action": "continue"}, Continue()),
        ({"action": "block", "reason": "r"}, Block("r")),
        ({"action": "confirm", "message": "m"}, Confirm("m")),
        ({"action": "modify", "input": {"command": "ls -l"}}, Modify({"command": "ls -l"})),
    ],
)
async def test_an_extension_decides_about_a_tool(result: Any, meaning: HookResult) -> None:
    assert await asked_about(result, BASH) == meaning


async def test_an_extension_adds_to_a_message() -> None:
    assert await asked_about({"action": "inject", "content": "c"}, HookEvent.before_message("hi")) == Inject("c")


@pytest.mark.parametrize(
    "result", [None, 5, {}, {"action": "dance"}, {"action": "block"}, {"action": "inject", "content": "not here"}]
)
async def test_a_hook_result_that_is_invalid_or_not_allowed_continues(
    result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert await asked_about(result, BASH) == Continue()
    assert "before_tool_call" in caplog.text


async def test_a_malformed_change_of_an_input_blocks() -> None:
    result = await asked_about({"action": "modify", "input": "rm"}, BASH)
    assert result == Block("Extension returned malformed modify result")


async def test_an_output_is_replaced_only_with_the_permission_for_it() -> None:
    event = HookEvent.after_tool_call("bash", {}, "secret")
    replacing = {"action": "replace", "output": "***"}
    assert await asked_about(replacing, event) == Continue()
    assert await asked_about(replacing, event, grants=(*HOOKS, "tools.transform_output")) == Replace("***")


async def test_all_nine_members_of_an_event_are_sent() -> None:
    async with played(grants=("tools.intercept", *ALL)) as (notes, script), anyio.create_task_group() as tasks:
        tasks.start_soon(notes.handle_hook, BASH)
        called = await script.receive()
        assert called["params"] == {
            "kind": "before_tool_call",
            "tool_name": "bash",
            "tool_runtime_name": "bash",
            "tool_input": {"command": "ls"},
            "tool_output": None,
            "message": None,
            "session_id": None,
            "transcript": None,
            "data": None,
        }
        script.send(response(called, {"action": "continue"}))


async def test_an_error_or_the_end_of_the_link_continues() -> None:
    async with played(grants=("tools.intercept", *ALL)) as (notes, script), anyio.create_task_group() as tasks:
        results: list[HookResult] = []

        async def ask() -> None:
            results.append(await notes.handle_hook(BASH))

        tasks.start_soon(ask)
        script.send(refusal(await script.receive(), -32603))
        await settled()
        tasks.start_soon(ask)
        await script.receive()
        script.leave()
        await settled()
        await ask()
        assert results == [Continue()] * 3


@pytest.mark.parametrize(
    ("event", "permission"),
    [
        (BASH, "tools.intercept"),
        (HookEvent.before_message("secret"), "privacy.llm_content"),
        (HookEvent.on_session_end("1", ()), "session.lifecycle"),
    ],
)
async def test_an_extension_gets_only_events_that_it_has_permission_for(event: HookEvent, permission: str) -> None:
    async with played() as (notes, script):
        with pytest.raises(PermissionDenied) as caught:
            await notes.handle_hook(event)
        assert caught.value.permission == permission
        assert script.unread() == []


# -- times


REQUESTS = (
    "tool.call",
    "hook.handle",
    "provider.complete",
    "provider.stream",
    "command.invoke",
    "settings.editor.open",
)
SILENT = (*REQUESTS, "settings.editor.key", "settings.editor.commit", "sidecar.spawn_args", "shutdown")


def timed(action: Any, **options: Any) -> float:
    """Returns for how long the host waits for an extension that is silent after the handshake."""
    waits: list[float] = []

    async def hang(params: dict[str, Any] | None) -> None:
        await anyio.sleep_forever()

    async def main() -> None:
        ours, theirs = memory_transports()
        async with Peer.over(theirs) as child:
            child.handle("initialize")(lambda params: initialized(tools=[ECHO], providers=[LOCAL]))
            child.handle("info.get")(lambda: {})
            for name in SILENT:
                child.handle(name)(hang)
            grants = (*ALL, "tools.intercept")
            async with connect_extension_over(ours, id="notes", grants=grants, **options) as notes:
                began = anyio.current_time()
                with suppress(CallTimeout):
                    await action(notes)
                waits.append(anyio.current_time() - began)

    run_in_virtual_time(main)
    return waits[0]


async def open_stream(notes: Any) -> None:
    async with notes.stream("local", "small", messages=[]) as run:
        await run.result()


async def run_command(notes: Any) -> None:
    async with notes.invoke_command("x") as run:
        await run.result()


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        (lambda notes: notes.call_tool("echo"), 120),
        (lambda notes: notes.call_tool("echo", timeout=7), 7),
        (lambda notes: notes.complete("local", "small", messages=[]), 60),
        (open_stream, 60),
        (run_command, 60),
        (lambda notes: notes.handle_hook(BASH), 5),
        (lambda notes: notes.sidecar_args(), 5),
        (lambda notes: notes.open_editor("a", "b"), 5),
        (lambda notes: notes.press_editor_key("a", "b", "Down"), 5),
        (lambda notes: notes.commit_editor("a", "b", 1), 5),
        (lambda notes: notes.shutdown(), 0.5),
    ],
)
def test_a_host_has_the_timeouts_of_the_contract(action: Any, seconds: float) -> None:
    assert timed(action) == pytest.approx(seconds)


def test_a_host_may_have_timeouts_of_its_own() -> None:
    own = Timeouts(tool=1, complete=2, idle=3, hook=4)
    assert timed(lambda notes: notes.call_tool("echo"), timeouts=own) == pytest.approx(1)
    assert timed(lambda notes: notes.complete("local", "small", messages=[]), timeouts=own) == pytest.approx(2)
    assert timed(run_command, timeouts=own) == pytest.approx(3)
    assert timed(lambda notes: notes.handle_hook(BASH), timeouts=own) == pytest.approx(4)
    assert timed(run_command, timeouts=Timeouts(idle=None, total=9)) == pytest.approx(9)


def waits_after(send: Any, *, features: list[str] | None = None) -> float:
    """Returns how long a host waits for a command that sends one message after 40 seconds, and then nothing."""
    waits: list[float] = []

    async def main() -> None:
        ours, theirs = memory_transports()
        async with Peer.over(theirs) as child:
            child.handle("initialize")(lambda params: initialized(features=features))
            child.handle("info.get")(lambda: {})

            @child.handle("command.invoke")
            async def invoke(params: dict[str, Any], ctx: Context) -> None:
                await anyio.sleep(40)
                await send(child, ctx.id, params["request_id"])
                await anyio.sleep_forever()

            async with connect_extension_over(ours, id="notes", grants=ALL) as notes:
                began = anyio.current_time()
                with suppress(CallTimeout):
                    await run_command(notes)
                waits.append(anyio.current_time() - began)

    run_in_virtual_time(main)
    return waits[0]


TASK = {"id": "t", "label": "Indexing"}


def event_of(id: object) -> dict[str, Any]:
    return {"_meta": {"becket": {"parent": id}}}


@pytest.mark.parametrize(
    "send",
    [
        lambda child, id, run: child.notify("command.output", {"request_id": run, "event": {"kind": "done"}}),
        lambda child, id, run: child.notify("task.start", {**event_of(id), **TASK}),
        lambda child, id, run: child.notify("task.start", TASK),
        lambda child, id, run: child.notify("task.log", {"without": "an id"}),
    ],
    ids=["output", "task-of-the-command", "task-of-none", "malformed-task"],
)
def test_each_event_of_a_command_renews_its_idle_timeout(send: Any) -> None:
    assert waits_after(send, features=["deadline"]) == pytest.approx(100)


@pytest.mark.parametrize(
    "send",
    [
        lambda child, id, run: child.notify("command.output", {"request_id": "other", "event": {"kind": "done"}}),
        lambda child, id, run: child.notify("task.start", {**event_of(99), **TASK}),
        lambda child, id, run: child.notify("$/progress", {"token": id, "value": 1}),
        lambda child, id, run: child.notify("$/log", {"level": "info", "logger": "x", "message": "y"}),
        lambda child, id, run: child.notify("widget.dismiss", {"id": "clock"}),
        lambda child, id, run: child.call("config.get", {"key": "mode"}),
    ],
    ids=["output-of-another-run", "task-of-another-call", "progress", "log", "widget", "request"],
)
def test_no_other_message_renews_the_idle_timeout_of_a_command(send: Any) -> None:
    assert waits_after(send, features=["deadline", "progress", "log"]) == pytest.approx(60)


# -- the rest


async def test_an_extension_sends_its_info_and_that_of_its_sidecar() -> None:
    async with hosted() as (notes, child):
        child.handle("info.get")(lambda: {"build": {"backend": "cuda"}})
        child.handle("sidecar.spawn_args")(lambda: {"args": ["--fast"], "language": "de"})
        assert await notes.info() == ExtensionInfo(BuildInfo("cuda"))
        assert await notes.sidecar_args() == SidecarArgs(("--fast",), "de")


async def test_the_keys_of_an_editor_go_to_the_extension_and_what_it_draws_comes_back() -> None:
    drawn: list[object] = []
    received: list[object] = []
    async with hosted() as (notes, child):
        notes.on(EditorRender, EditorCommitted, EditorClosed)(drawn.append)

        @child.handle("settings.editor.open")
        async def open_editor(params: Any) -> Any:
            await child.notify("settings.editor.render", {"rows": [{"label": "one"}]})
            return {**params, "render": {"rows": [{"label": "mode"}], "cursor": 0}}

        @child.handle("settings.editor.key")
        async def press(params: Any) -> Any:
            received.append(params)
            await child.notify("settings.editor.commit", {"value": 1})
            return params

        @child.handle("settings.editor.commit")
        async def commit(params: Any) -> Any:
            received.append(params)
            await child.notify("settings.editor.close", {"reason": "done"})
            return "anything"

        assert await notes.open_editor("demo", "mode") == EditorRender((EditorRow("mode"),), 0)
        assert await notes.press_editor_key("demo", "mode", "Down") is None
        assert await notes.commit_editor("demo", "mode", [1]) == EditorTaken("anything")
    assert received == [
        {"category": "demo", "field": "mode", "key": "Down"},
        {"category": "demo", "field": "mode", "value": [1]},
    ]
    assert drawn == [EditorRender((EditorRow("one"),)), EditorCommitted(1), EditorClosed("done")]


async def test_notifications_go_to_the_functions_of_their_class() -> None:
    async with played() as (notes, script):
        tasks: list[object] = []
        widgets: list[object] = []
        calls: list[int] = []
        notes.on(TaskStarted, TaskUpdated)(tasks.append)
        notes.on(WidgetUpsert, WidgetDismiss)(widgets.append)

        @notes.on(WidgetDismiss)
        def count() -> None:
            calls.append(1)

        script.send(
            notification("task.start", {"id": "1", "label": "Loading"}),
            notification("task.update", {"id": "1", "current": 5}),
            notification("task.update", {}),
            notification("task.log", {"id": "1", "line": "nobody asked"}),
            notification("widget.upsert", {"id": "w", "lines": ["a"]}),
            notification("widget.upsert", {"id": ""}),
            notification("widget.dismiss", {"id": "w"}),
            notification("command.output", {"request_id": "long ago", "kind": "text", "content": "x"}),
        )
        await settled()
        assert tasks == [TaskStarted("1", "Loading"), TaskUpdated("1", 5)]
        assert widgets == [WidgetUpsert("w", ("a",)), WidgetDismiss("w")]
        assert calls == [1]


async def test_a_function_for_notifications_that_never_come_is_refused_at_once() -> None:
    async with played() as (notes, _):
        with pytest.raises(TypeError, match="no `BuildInfo`"):
            notes.on(BuildInfo)
        with pytest.raises(TypeError, match="async def"):

            @notes.on(TaskStarted)
            async def take(event: TaskStarted) -> None: ...


async def test_methods_of_ones_own_are_served_and_called() -> None:
    methods = Registry()
    methods.handle("host/add")(lambda params: sum(params))
    async with hosted(methods=methods) as (notes, child):
        child.handle("notes/stats")(lambda: {"notes": 3})
        assert await notes.peer.call("notes/stats") == {"notes": 3}
        assert await child.call("host/add", [1, 2]) == 3


# -- the end


async def test_leaving_sends_shutdown_and_closes_the_link() -> None:
    script = Script()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(introduce, script, initialized())
        async with connect_extension_over(script, id="notes", timeouts=SOON) as notes:
            await settled()
        called = await script.receive()
        assert called["method"] == "shutdown"
        assert "params" not in called
    assert script.is_closed
    assert notes.is_closed


async def test_an_extension_that_has_left_gets_no_shutdown() -> None:
    async with played() as (notes, script):
        script.leave()
        await notes.peer.wait_closed()
    assert script.unread() == []
    with pytest.raises(ConnectionLost):
        await notes.call_tool("echo")


async def test_shutting_down_twice_and_from_two_tasks_is_shutting_down() -> None:
    async with hosted() as (notes, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(notes.shutdown)
            tasks.start_soon(notes.shutdown)
        await notes.shutdown()
        await notes.aclose()


async def test_an_extension_can_be_awaited_and_closed_explicitly() -> None:
    ours, theirs = memory_transports()
    async with Peer.over(theirs) as child:
        child.handle("initialize")(lambda params: initialized())
        notes = await connect_extension_over(ours, id="notes", timeouts=SOON)
        async with notes:
            assert not notes.is_closed
        assert notes.is_closed


async def test_an_extension_without_a_host_has_no_supervisor() -> None:
    ours, theirs = memory_transports()
    async with Peer.over(theirs) as child:
        child.handle("initialize")(lambda params: initialized())
        async with connect_extension_over(ours, id="notes", timeouts=SOON) as notes:
            with pytest.raises(NotSupported, match="notes was connected without a host") as caught:
                _ = notes.supervisor

    assert caught.value.what == "a supervisor"


async def test_a_host_that_is_cancelled_during_the_shutdown_request_still_closes() -> None:
    async with played(timeouts=Timeouts(shutdown=60)) as (notes, script), anyio.create_task_group() as tasks:
        tasks.start_soon(notes.shutdown)
        await script.receive()
        tasks.cancel_scope.cancel()
    assert script.is_closed


async def test_invalid_timeouts_are_refused_in_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"`timeouts` must be a `Timeouts`, got int"):
        await connect_extension_over(Script(), id="notes", timeouts=5).__aenter__()  # type: ignore[arg-type]
