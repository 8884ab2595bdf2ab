"""Permissions of an extension: decided by its connection, prompted for once, revoked at once.

Every decision is recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from tests.host.stand_ins import ALL, ECHO, SOON, hosted, initialized, played
from tests.peer.scripted import Script, notification, request, response, settled

from becket import CallTimeout, Context, Meaning, Peer, Registry, RemoteError
from becket.contract.audit import (
    AuditEvent,
    CallDecided,
    GrantChanged,
    ProcessStarted,
    ProviderCalled,
    ProviderOutcome,
)
from becket.contract.config import ConfigSet
from becket.contract.hooks import HookEvent
from becket.contract.memory import MEMORY_QUERY, Query
from becket.contract.providers import ProviderResult, TextDelta, user
from becket.errors import PermissionDenied
from becket.host.extension import Extension
from becket.host.serving.audited_gate import AuditedGate
from becket.host.starting.connect import connect_extension_over
from becket.methods.descriptors import Method
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision
from becket.stores.in_memory import InMemoryStore
from becket.testing import run_in_virtual_time

pytestmark = pytest.mark.loops

BOTH = ("tools.register", "providers.register")
EVENT = "provider.stream.event"
NOTE = {"namespace": "notes", "content": "x"}


async def denied(peer: Peer, method: str, params: object) -> str:
    """Returns which permission a call was refused for."""
    with pytest.raises(RemoteError) as caught:
        await peer.call(method, params)
    assert caught.value.meaning is Meaning.PERMISSION_DENIED
    return caught.value.message


# -- identity by connection


@pytest.mark.parametrize("method", ["memory.append", "memory.query"])
async def test_an_extension_cannot_name_another(method: str) -> None:
    store = InMemoryStore()
    async with hosted(store=store) as (_, child):
        for name in ("others", "", "NOTES", "notes ", "../notes"):
            with pytest.raises(RemoteError) as caught:
                await child.call(method, {"namespace": name, "content": "x"})
            assert caught.value.code == -32602
            assert isinstance(caught.value.data, dict)
            output = caught.value.data["problems"][0]
            assert output["pointer"] == "/namespace"
            assert output["message"] == f"namespace must equal extension id 'notes' (got '{name}')"
        assert store.query(Query("others")) == []


async def test_the_declarations_of_an_extension_do_not_change_its_permissions() -> None:
    store = InMemoryStore()
    store.set_config("others", ConfigSet("k", "secret"))
    async with hosted(store=store) as (_, child):
        for claimed in ({"extension": "others"}, {"plugin_id": "others"}, {"_meta": {"becket": {"parent": 1}}}):
            found = await child.call("config.get", {"key": "k", **claimed})
            assert found["value"] is None
        await child.call("memory.append", {**NOTE, "extension": "others", "plugin_id": "others"})
        assert len(store.query(Query("notes"))) == 1


# -- prompts


class SlowUser:
    """A user who responds when allowed to."""

    def __init__(self, response: bool = True) -> None:
        self.questions: list[str] = []
        self.may_respond = anyio.Event()
        self._response = response

    async def __call__(self, prompt: str, decision: Decision) -> bool:
        self.questions.append(prompt)
        await self.may_respond.wait()
        return self._response


async def test_a_permission_that_is_requested_a_thousand_times_causes_one_prompt() -> None:
    user = SlowUser(response=False)
    async with hosted(grants=BOTH, ask=user) as (_, child):
        refusals = 0
        with anyio.fail_after(60):
            for _ in range(10):
                async with anyio.create_task_group() as tasks:

                    async def ask() -> None:
                        nonlocal refusals
                        assert "memory.write" in await denied(child, "memory.append", NOTE)
                        refusals += 1

                    for _ in range(100):
                        tasks.start_soon(ask)
                    await settled()
                    user.may_respond.set()
        assert refusals == 1000
    assert user.questions == ["`notes` wants `memory.write` to call `memory.append`: allow it?"]


async def test_a_decision_resumes_all_waiting_calls() -> None:
    user = SlowUser()
    events: list[AuditEvent] = []
    async with hosted(grants=BOTH, ask=user, audit=events.append) as (_, child):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(child.call, "memory.append", NOTE)
            await settled()
            user.may_respond.set()
        assert (await child.call("memory.append", NOTE))["id"] == 6
    assert len(user.questions) == 1
    assert GrantChanged("notes", "memory.write", True, "answer") in events


async def test_a_prompt_that_times_out_denies_and_is_recorded() -> None:
    events: list[AuditEvent] = []

    async def broken(prompt: str, decision: Decision) -> bool:
        raise OSError("no terminal")

    async with hosted(grants=BOTH, ask=broken, audit=events.append) as (_, child):
        await denied(child, "memory.append", NOTE)
        await denied(child, "memory.append", NOTE)
    changes = [event for event in events if isinstance(event, GrantChanged)]
    assert changes == [GrantChanged("notes", "memory.write", False, "answer")]
    refusals = [event for event in events if isinstance(event, CallDecided) and not event.allowed]
    assert [event.because for event in refusals] == ["it is denied"] * 2


async def test_a_prompt_is_one_escaped_line() -> None:
    user = SlowUser()
    hostile = "x\x1b[2J\n" * 1000
    known = {hostile, *BOTH}
    methods = Registry()
    methods.handle(Method("host/do", dict, bool, requires=hostile))(lambda params: True)
    async with hosted(grants=BOTH, ask=user, known=known, methods=methods) as (_, child):
        user.may_respond.set()
        assert await child.call("host/do", {}) is True
    (prompt,) = user.questions
    assert prompt.isprintable()
    assert len(prompt) < 500


# -- revocation


async def ended_by(revoke: Callable[[], object], action: Callable[[], Any]) -> PermissionDenied:
    """Returns the error of a call or a stream whose permission is revoked while it runs."""
    errors: list[PermissionDenied] = []

    async def run() -> None:
        with pytest.raises(PermissionDenied) as caught:
            await action()
        errors.append(caught.value)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await settled()
            revoke()
    return errors[0]


async def test_a_revocation_cancels_a_running_tool_and_notifies_the_extension() -> None:
    ended = anyio.Event()
    async with hosted() as (notes, child):

        @child.handle("tool.call")
        async def call(params: Any) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        error = await ended_by(lambda: notes.gate.revoke("tools.register"), lambda: notes.call_tool("echo"))
        assert error.permission == "tools.register"
        with anyio.fail_after(60):
            await ended.wait()


@pytest.mark.parametrize("features", [(), ("cancel", "credit")])
async def test_a_revocation_ends_a_running_response_whether_its_events_are_awaited_or_not(features: Any) -> None:
    async with hosted(features=features) as (notes, child):

        @child.handle("provider.stream")
        async def stream(params: Any) -> None:
            await child.notify(EVENT, {"type": "text", "delta": "x"})
            await anyio.sleep_forever()

        async def iterate() -> None:
            async with notes.stream("local", "small", messages=[]) as run:
                async for event in run:
                    assert event == TextDelta("x")

        async def await_result() -> None:
            async with notes.stream("local", "small", messages=[]) as run:
                await run.result()

        for action in (iterate, await_result):
            notes.gate.grant("providers.register")
            error = await ended_by(lambda: notes.gate.revoke("providers.register"), action)
            assert error.permission == "providers.register"
        notes.gate.grant("providers.register")
        async with notes.stream("local", "small", messages=[]) as run:
            assert await anext(run) == TextDelta("x")
            notes.gate.revoke("providers.register")
            await settled()
            with pytest.raises(PermissionDenied):
                await anext(run)
            with pytest.raises(PermissionDenied):
                await run.result()
            assert run.batch_nowait() == []


async def test_a_response_that_is_not_read_is_cancelled_by_a_revocation_too() -> None:
    ended = anyio.Event()
    async with hosted() as (notes, child):

        @child.handle("provider.stream")
        async def stream(params: Any) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        async with notes.stream("local", "small", messages=[]):
            await settled()
            notes.gate.revoke("providers.register")
            with anyio.fail_after(60):
                await ended.wait()


async def test_a_revocation_ends_complete_responses_and_hooks_too() -> None:
    async with hosted(grants=(*ALL, "tools.intercept")) as (notes, child):
        for name in ("provider.complete", "hook.handle"):

            @child.handle(name)
            async def hang(params: Any) -> None:
                await anyio.sleep_forever()

        error = await ended_by(
            lambda: notes.gate.revoke("providers.register"), lambda: notes.complete("local", "small", messages=[])
        )
        assert error.permission == "providers.register"
        event = HookEvent.before_tool_call("bash", {})
        error = await ended_by(lambda: notes.gate.revoke("tools.intercept"), lambda: notes.handle_hook(event))
        assert error.permission == "tools.intercept"


async def test_a_call_under_another_permission_continues() -> None:
    async with hosted() as (notes, child):
        go_on = anyio.Event()

        @child.handle("tool.call")
        async def call(params: Any) -> str:
            await go_on.wait()
            return "done"

        @child.handle("command.invoke")
        async def invoke(params: Any) -> str:
            await go_on.wait()
            return "done too"

        results: list[str] = []

        async def call_tool() -> None:
            results.append(await notes.call_tool("echo"))

        async with anyio.create_task_group() as tasks, notes.invoke_command("x") as run:
            tasks.start_soon(call_tool)
            await settled()
            notes.gate.revoke("providers.register")
            notes.gate.revoke("memory.write")
            await settled()
            go_on.set()
            assert await run.result() == "done too"
        assert results == ["done"]


async def test_a_revocation_may_come_from_any_thread_and_each_change_is_delivered() -> None:
    async with hosted() as (notes, child):

        @child.handle("tool.call")
        async def call(params: Any) -> str:
            notes.gate.revoke("tools.register")
            notes.gate.grant("tools.register")
            await settled()
            return "ran on"

        assert await notes.call_tool("echo") == "ran on"
        thread = threading.Thread(target=notes.gate.revoke, args=("tools.register",))
        child.methods.remove("tool.call")

        @child.handle("tool.call")
        async def sleep(params: Any) -> None:
            await anyio.sleep_forever()

        await ended_by(thread.start, lambda: notes.call_tool("echo"))
        thread.join()


async def test_a_finished_call_is_not_undone() -> None:
    async with played() as (notes, script), notes.stream("local", "small", messages=[]) as run:
        requested = await script.receive()
        script.send(notification(EVENT, {"type": "text", "delta": "x"}), response(requested, {"content": []}))
        await settled()
        notes.gate.revoke("providers.register")
        await settled()
        assert [event async for event in run] == [TextDelta("x")]
        assert await run.result() == ProviderResult(())


async def test_without_the_permission_nothing_is_sent() -> None:
    async with played() as (notes, script):
        notes.gate.revoke("tools.register")
        notes.gate.revoke("providers.register")
        with pytest.raises(PermissionDenied) as caught:
            await notes.call_tool("echo")
        assert caught.value.permission == "tools.register"
        with pytest.raises(PermissionDenied):
            await notes.complete("local", "small", messages=[])
        with pytest.raises(PermissionDenied):
            async with notes.stream("local", "small", messages=[]):
                pass
        assert script.unread() == []


async def test_a_revocation_while_a_response_waits_for_its_turn_takes_effect() -> None:
    async with played() as (notes, script), anyio.create_task_group() as tasks:
        errors: list[Exception] = []

        async def wait_for_turn() -> None:
            try:
                async with notes.stream("local", "small", messages=[user("second")]):
                    pass
            except PermissionDenied as error:
                errors.append(error)

        async with notes.stream("local", "small", messages=[user("first")]) as first:
            requested = await script.receive()
            tasks.start_soon(wait_for_turn)
            await settled()
            notes.gate.revoke("providers.register")
            await settled()
            with pytest.raises(PermissionDenied):
                await first.result()
        script.send(response(requested, {"content": []}))
        await settled()
        assert len(errors) == 1
        assert script.unread() == []


async def test_a_revocation_ends_notifications_to_the_extension() -> None:
    store = InMemoryStore()
    async with played(store=store) as (notes, script):
        script.send(request(1, "config.subscribe", {}))
        await script.receive()
        store.set_config("notes", ConfigSet("a", "1"))
        assert (await script.receive())["method"] == "config.changed"
        notes.gate.revoke("config.subscribe")
        await settled()
        store.set_config("notes", ConfigSet("a", "2"))
        await settled()
        assert script.unread() == []


async def test_a_revocation_ends_host_calls_of_the_extension() -> None:
    begun = anyio.Event()

    methods = Registry()

    @methods.handle(MEMORY_QUERY)
    async def query(params: Query) -> Any:
        begun.set()
        await anyio.sleep_forever()

    async with hosted(methods=methods) as (notes, child), anyio.create_task_group() as tasks:

        async def ask() -> None:
            assert "memory.read" in await denied(child, "memory.query", {"namespace": "notes"})

        tasks.start_soon(ask)
        await begun.wait()
        notes.gate.revoke("memory.read")


# -- unknown methods, and policies that fail


async def test_an_unknown_method_and_an_unknown_permission_are_refused() -> None:
    methods = Registry()
    methods.handle(Method("host/secret", dict, bool, requires="no.such.permission"))(lambda params: True)
    async with hosted(methods=methods) as (_, child):
        with pytest.raises(RemoteError) as caught:
            await child.call("memory.forget", {})
        assert caught.value.meaning is Meaning.UNKNOWN_METHOD
        assert "no.such.permission" in await denied(child, "host/secret", {})


async def test_a_policy_that_raises_denies_in_both_directions() -> None:
    def policy(decision: Decision) -> bool:
        raise ZeroDivisionError

    decisions: list[Decision] = []
    gate = Gate("notes", Grants.of(ALL), policy=policy, audit=decisions.append)
    async with hosted(gate=gate) as (notes, child):
        for method, params in (("memory.append", NOTE), ("memory.query", {"namespace": "notes"})):
            await denied(child, method, params)
        with pytest.raises(PermissionDenied):
            await notes.call_tool("echo")
    assert {decision.allowed for decision in decisions} == {False}


def test_a_prompt_without_a_decision_denies() -> None:
    async def never(prompt: str, decision: Decision) -> bool:
        await anyio.sleep_forever()
        return True

    async def main() -> None:
        async with hosted(grants=BOTH, ask=never) as (_, child):
            began = anyio.current_time()
            with pytest.raises(RemoteError) as caught:
                await child.call("memory.append", NOTE, timeout=600)
            assert caught.value.meaning is Meaning.PERMISSION_DENIED
            assert anyio.current_time() - began == pytest.approx(60)

    run_in_virtual_time(main)


# -- on behalf of another


def joined(b: Extension) -> Registry:
    """Returns what a host offers to an extension `a`: to have a tool of `b` called."""
    methods = Registry()

    @methods.handle("host/call_b")
    async def call_b(params: dict[str, Any]) -> str:
        try:
            return await b.call_tool("save", params)
        except RemoteError as error:
            return f"failed: {error.message}"

    return methods


SAVE = ECHO | {"name": "save"}


def saves(child: Peer) -> None:
    """Has an extension store the input of its tool."""

    @child.handle("tool.call")
    async def save(params: Any, ctx: Context) -> str:
        try:
            await ctx.call("memory.append", {"namespace": "b", "content": params["input"]["text"]})
        except RemoteError as error:
            return error.message
        return "saved"


@pytest.mark.parametrize(("also", "outcome"), [((), "permission denied: memory.write required"), (ALL, "saved")])
async def test_an_extension_gets_nothing_done_by_another_that_it_may_not_do_itself(also: Any, outcome: str) -> None:
    store = InMemoryStore()
    events: list[AuditEvent] = []
    async with hosted(id="b", store=store, tools=[SAVE], audit=events.append) as (b, b_child):
        saves(b_child)
        async with hosted(id="a", store=store, grants={*BOTH, *also}, methods=joined(b)) as (_, a_child):
            assert await b.call_tool("save", {"text": "of its own"}) == "saved"
            assert await a_child.call("host/call_b", {"text": "for a"}) == outcome
    kept = [record.content for record in store.query(Query("b"))]
    assert kept == (["for a", "of its own"] if outcome == "saved" else ["of its own"])
    appends = [event for event in events if isinstance(event, CallDecided) and event.method == "memory.append"]
    assert [(event.allowed, event.on_behalf_of) for event in appends] == [(True, ()), (outcome == "saved", ("a",))]


async def test_the_chain_goes_through_as_many_as_there_are() -> None:
    events: list[AuditEvent] = []
    async with hosted(id="b", tools=[SAVE], audit=events.append) as (b, b_child):
        saves(b_child)
        async with hosted(id="a", methods=joined(b), tools=[SAVE]) as (a, a_child):

            @a_child.handle("tool.call")
            async def pass_on(params: Any, ctx: Context) -> Any:
                return await ctx.call("host/call_b", params["input"])

            methods = Registry()

            @methods.handle("host/call_a")
            async def call_a(params: dict[str, Any]) -> str:
                return await a.call_tool("save", params)

            async with hosted(id="weak", grants=BOTH, methods=methods) as (_, weak):
                refused = "permission denied: memory.write required"
                assert await weak.call("host/call_a", {"text": "x"}) == refused
    (append,) = [event for event in events if isinstance(event, CallDecided) and event.method == "memory.append"]
    assert append.on_behalf_of == ("a", "weak")
    assert "weak" in append.because


async def test_an_old_extension_without_a_parent_acts_on_its_own_authority_and_this_is_recorded() -> None:
    events: list[AuditEvent] = []
    async with hosted(id="b", tools=[SAVE], features=(), audit=events.append) as (b, b_child):

        @b_child.handle("tool.call")
        async def save(params: Any) -> str:
            await b_child.call("memory.append", {"namespace": "b", "content": "x"})
            return "saved"

        async with hosted(id="a", grants=BOTH, methods=joined(b)) as (_, a_child):
            assert await a_child.call("host/call_b", {}) == "saved"
    (append,) = [event for event in events if isinstance(event, CallDecided) and event.method == "memory.append"]
    assert (append.allowed, append.on_behalf_of, append.handling) == (True, (), ("a",))


def of_old(child: Peer) -> None:
    """Has an extension store something in its tool without naming the parent call."""

    @child.handle("tool.call")
    async def save(params: Any) -> str:
        try:
            await child.call("memory.append", {"namespace": "b", "content": "x"})
        except RemoteError as error:
            return error.message
        return "saved"


async def test_where_a_parent_is_required_a_call_without_one_is_refused_and_recorded() -> None:
    events: list[AuditEvent] = []
    async with hosted(id="b", tools=[SAVE], features=(), audit=events.append, require_parent=True) as (b, b_child):
        of_old(b_child)
        async with hosted(id="a", methods=joined(b)) as (_, a_child):
            assert await a_child.call("host/call_b", {}) == "permission denied: it names no parent"
        assert await b.call_tool("save", {}) == "saved"  # there is no other caller
        await b_child.call("memory.append", {"namespace": "b", "content": "of its own"})
    appends = [event for event in events if isinstance(event, CallDecided) and event.method == "memory.append"]
    assert [(event.allowed, event.handling) for event in appends] == [(False, ("a",)), (True, ()), (True, ())]


async def test_where_a_parent_is_required_an_extension_that_names_it_is_served() -> None:
    async with hosted(id="b", tools=[SAVE], require_parent=True) as (b, b_child):
        saves(b_child)
        async with hosted(id="a", methods=joined(b)) as (_, a_child):
            assert await a_child.call("host/call_b", {"text": "for a"}) == "saved"


async def test_a_policy_sees_that_a_call_names_no_parent() -> None:
    seen: list[tuple[str, ...]] = []

    def note(decision: Decision) -> bool:
        seen.append(decision.handling)
        return True

    gate = Gate("b", Grants.of(ALL), policy=note)
    async with hosted(id="b", tools=[SAVE], features=(), gate=gate) as (b, b_child):
        of_old(b_child)
        async with hosted(id="a", methods=joined(b)) as (_, a_child):
            assert await a_child.call("host/call_b", {}) == "saved"
    assert ("a",) in seen


@pytest.mark.parametrize("parent", [99, "99", 1.5, -1])
@pytest.mark.parametrize(("method", "params"), [("memory.append", NOTE), ("config.get", {"key": "a"})])
async def test_a_call_with_an_unknown_parent_is_refused_and_recorded(parent: Any, method: str, params: Any) -> None:
    events: list[AuditEvent] = []
    store = InMemoryStore()
    async with hosted(features=(), store=store, audit=events.append) as (_, child):
        subscription = {**params, "_meta": {"becket": {"parent": parent}}}
        assert await denied(child, method, subscription) == "permission denied: its parent is not a pending call"
    assert store.query(Query("notes")) == []
    (call,) = [event for event in events if isinstance(event, CallDecided)]
    assert (call.method, call.allowed, call.because) == (method, False, "its parent is not a pending call")


async def test_a_parent_that_got_a_response_is_unknown_from_then_on() -> None:
    subscriptions: list[dict[str, Any]] = []
    async with hosted(tools=[ECHO], features=()) as (notes, child):

        @child.handle("tool.call")
        async def run(params: Any, ctx: Context) -> str:
            subscriptions.append({**NOTE, "_meta": {"becket": {"parent": ctx.id}}})
            await child.call("memory.append", subscriptions[0])
            return "ran"

        assert await notes.call_tool("echo") == "ran"
        assert "not a pending call" in await denied(child, "memory.append", subscriptions[0])


async def test_an_extension_that_tidies_up_after_a_cancelled_call_does_so_for_its_caller() -> None:
    events: list[AuditEvent] = []
    running, tidied = anyio.Event(), anyio.Event()
    async with hosted(id="b", tools=[SAVE], audit=events.append) as (b, b_child):

        @b_child.handle("tool.call")
        async def save(params: Any, ctx: Context) -> str:
            running.set()
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    assert "memory.write" in await denied(b_child, "memory.append", {"namespace": "b", "content": "x"})
                    tidied.set()
            return "never"

        async with hosted(id="a", grants=BOTH, methods=joined(b)) as (_, a_child), anyio.create_task_group() as tasks:
            tasks.start_soon(a_child.call, "host/call_b", {})
            with anyio.fail_after(60):
                await running.wait()
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await tidied.wait()
    (append,) = [event for event in events if isinstance(event, CallDecided) and event.method == "memory.append"]
    assert (append.allowed, append.on_behalf_of) == (False, ("a",))


async def test_a_task_that_outlives_its_handler_acts_on_the_extensions_own_authority() -> None:
    events: list[AuditEvent] = []
    has_response, is_kept = anyio.Event(), anyio.Event()
    async with (
        anyio.create_task_group() as tasks,
        hosted(tools=[ECHO], audit=events.append) as (notes, child),
    ):

        async def keep_later(ctx: Context) -> None:
            await has_response.wait()
            await ctx.call("memory.append", NOTE)
            is_kept.set()

        @child.handle("tool.call")
        async def run(params: Any, ctx: Context) -> str:
            tasks.start_soon(keep_later, ctx)
            return "ran"

        with anyio.fail_after(60):
            assert await notes.call_tool("echo") == "ran"
            has_response.set()
            await is_kept.wait()
    (append,) = [event for event in events if isinstance(event, CallDecided) and event.method == "memory.append"]
    assert (append.allowed, append.on_behalf_of) == (True, ())


async def test_a_function_that_continues_after_its_response_acts_on_the_extensions_own_authority() -> None:
    is_kept = anyio.Event()
    async with hosted(tools=[ECHO]) as (notes, child):

        @child.handle("tool.call")
        async def run(params: Any, ctx: Context) -> None:
            ctx.respond("ran")
            await ctx.call("memory.append", NOTE)
            is_kept.set()

        with anyio.fail_after(60):
            assert await notes.call_tool("echo") == "ran"
            await is_kept.wait()


# -- records


async def test_every_decision_in_either_direction_is_recorded() -> None:
    events: list[AuditEvent] = []
    grants = Grants.of([*BOTH, "memory.write", "memory.read"], ["memory.read"])
    async with hosted(grants=grants, audit=events.append) as (notes, child):
        child.handle("tool.call")(lambda params: "ran")
        await child.call("memory.append", NOTE)
        await child.call("config.get", {"key": "a"})
        await denied(child, "memory.query", {"namespace": "notes"})
        await notes.call_tool("echo")
        notes.gate.revoke("tools.register")
        notes.gate.revoke("tools.register")
        with pytest.raises(PermissionDenied):
            await notes.call_tool("echo")
        notes.gate.grant("tools.register")
        notes.gate.grant("tools.register")
    assert events == [
        ProcessStarted("notes", (), "native", ("memory.write", *sorted(BOTH)), "none"),
        CallDecided("notes", "memory.append", "memory.write", True, "it is granted"),
        CallDecided("notes", "config.get", None, True, "it needs no permission"),
        CallDecided("notes", "memory.query", "memory.read", False, "it is denied"),
        CallDecided("notes", "tool.call", "tools.register", True, "it is granted"),
        GrantChanged("notes", "tools.register", False, "host"),
        CallDecided("notes", "tool.call", "tools.register", False, "it is denied"),
        GrantChanged("notes", "tools.register", True, "host"),
    ]


async def test_a_denial_without_a_prompt_is_recorded() -> None:
    events: list[AuditEvent] = []
    gate = AuditedGate("notes", Grants(), events.append, asks=True)
    with pytest.raises(PermissionDenied):
        gate.check("tool.call", "tools.register")
    assert [event.allowed for event in events if isinstance(event, CallDecided)] == [False]


async def test_every_model_request_is_recorded_with_its_outcome() -> None:
    events: list[AuditEvent] = []
    results: list[Any] = [
        {"content": [{"type": "tool_use", "id": "1", "name": "bash"}, {"type": "text", "text": "x"}]},
        {"content": []},
        {"content": 5},
    ]
    async with hosted(audit=events.append) as (notes, child):

        @child.handle("provider.complete")
        def complete(params: Any) -> Any:
            return results[len([event for event in events if isinstance(event, ProviderCalled)])]

        await notes.complete("local", "small", messages=[], tools=[{"name": "bash"}])
        for _ in range(2):
            with pytest.raises(Exception, match=r"provider\.complete"):
                await notes.complete("local", "small", messages=[])

        @child.handle("provider.stream")
        async def stream(params: Any) -> Any:
            match params["messages"][0]["content"]:
                case "answer":
                    return {"content": []}
                case "fail":
                    raise ZeroDivisionError
                case _:
                    await anyio.sleep_forever()

        async with notes.stream("local", "small", messages=[user("answer")]) as run:
            assert await run.result() == ProviderResult(())
        async with notes.stream("local", "small", messages=[user("fail")]):
            await settled()
        async with notes.stream("local", "small", messages=[user("leave")]):
            pass
        async with notes.stream("local", "small", messages=[user("time out")], idle_timeout=0.01) as run:
            with pytest.raises(CallTimeout):
                await run.result()
        async with notes.stream("local", "small", messages=[user("revoke")]):
            notes.gate.revoke("providers.register")
            await settled()
        with pytest.raises(PermissionDenied):
            await notes.complete("local", "small", messages=[])
    called = [event for event in events if isinstance(event, ProviderCalled)]
    assert {(event.extension, event.provider_id, event.model_id) for event in called} == {("notes", "local", "small")}
    assert [(event.streamed, event.outcome, event.error_class) for event in called] == [
        (False, ProviderOutcome.OK, None),
        (False, ProviderOutcome.ERROR, "undecodable"),
        (False, ProviderOutcome.ERROR, "undecodable"),
        (True, ProviderOutcome.OK, None),
        (True, ProviderOutcome.ERROR, "refused"),
        (True, ProviderOutcome.ERROR, "failed"),
        (True, ProviderOutcome.ERROR, "timeout"),
        (True, ProviderOutcome.BLOCKED, "denied"),
        (False, ProviderOutcome.BLOCKED, "denied"),
    ]
    assert (called[0].tools_exposed, called[0].tools_requested) == (True, 1)


async def test_an_audit_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: AuditEvent) -> None:
        raise OSError("the disk is full")

    async with hosted(audit=broken) as (notes, child):
        child.handle("provider.complete")(lambda params: {"content": [1]})
        await child.call("memory.append", NOTE)
        await notes.complete("local", "small", messages=[])
        notes.gate.revoke("memory.write")
        await denied(child, "memory.append", NOTE)
    assert "audit" in caplog.text


async def test_a_custom_gate_is_used_unchanged() -> None:
    decisions: list[Decision] = []
    gate = Gate("notes", Grants.of(BOTH), audit=decisions.append)
    script = Script()
    async with anyio.create_task_group() as tasks:

        async def introduce() -> None:
            script.send(response(await script.receive(), initialized()), notification("nobody/knows"))

        tasks.start_soon(introduce)
        async with connect_extension_over(script, id="notes", gate=gate, timeouts=SOON) as notes:
            assert notes.gate is gate
            script.send(request(1, "memory.query", {"namespace": "notes"}))
            await script.receive()
    assert [(decision.method, decision.allowed) for decision in decisions] == [("memory.query", False)]


# -- calls of one extension that another has no permission for


async def test_a_permission_error_of_another_extension_is_not_forwarded() -> None:
    methods = Registry()
    async with hosted(id="other") as (other, _):
        other.gate.revoke("tools.register")

        @methods.handle("relay")
        async def relay() -> str:
            return await other.call_tool("echo", {})

        async with hosted(methods=methods) as (_, child):
            with pytest.raises(RemoteError) as caught:
                await child.call("relay")
    assert caught.value.meaning is Meaning.INTERNAL


# -- slow policies


async def test_a_slow_policy_delays_only_the_call_of_the_host_that_it_decides() -> None:
    release = anyio.Event()
    order: list[str] = []

    async def policy(decision: Decision) -> bool:
        if decision.method == "tool.call":
            await release.wait()
        return True

    gate = Gate("notes", Grants.of(ALL), policy=policy)
    async with hosted(gate=gate) as (notes, child):
        child.handle("tool.call")(lambda params: params["input"]["text"])

        async def call_tool() -> None:
            order.append(await notes.call_tool("echo", {"text": "x"}))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call_tool)
                await settled()
                await child.call("memory.append", NOTE)
                order.append("appended")
                release.set()
    assert order == ["appended", "x"]


async def test_a_call_that_waits_for_a_policy_ends_with_its_scope_and_sends_nothing() -> None:
    decisions: list[Decision] = []

    async def policy(decision: Decision) -> bool:
        await anyio.sleep_forever()
        return True

    gate = Gate("notes", Grants.of(ALL), policy=policy, audit=decisions.append)
    async with hosted(gate=gate) as (notes, _):
        with anyio.fail_after(60), anyio.move_on_after(0.02):
            await notes.call_tool("echo", {"text": "x"})
        await notes.aclose()
        with anyio.fail_after(60), anyio.move_on_after(0.02):  # also on a link that has ended
            await notes.call_tool("echo", {"text": "x"})
    assert decisions == []


async def test_a_run_waits_for_the_policy_as_a_call_does() -> None:
    async def policy(decision: Decision) -> bool:
        return decision.method != "provider.stream"

    async with hosted(gate=Gate("notes", Grants.of(ALL), policy=policy)) as (notes, _):
        with anyio.fail_after(60), pytest.raises(PermissionDenied):
            async with notes.stream("local", "small", messages=[user("hi")]):
                pass
