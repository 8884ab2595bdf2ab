"""Permissions on a link: its gate decides before params are decoded, and may prompt."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from msgspec import Struct
from tests.peer.scripted import notification, request, scripted, settled

from becket import Context, Limits, Meaning, RemoteError
from becket.methods.descriptors import Method, Notification
from becket.peer.permission_check import PermissionChecker
from becket.permissions.gate import Gate
from becket.permissions.grants import Grants
from becket.permissions.policies import Decision, Policy
from becket.testing import memory_pair

pytestmark = pytest.mark.loops


class Note(Struct, frozen=True):
    text: str


WRITE = Method("memory.append", Note, bool, requires="memory.write")
OPEN = Method("open", Note, bool)
WIDGET = Notification("widget", Note, requires="memory.write")


def gate(*allow: str, **options: Any) -> Gate:
    return Gate("notes", Grants.of(allow), **options)


def denied(error: RemoteError) -> bool:
    return error.meaning is Meaning.PERMISSION_DENIED


async def test_a_method_that_requires_nothing_is_open_to_all() -> None:
    async with memory_pair() as (left, right):
        right.handle(OPEN)(lambda note: True)
        assert await left.call(OPEN, Note("x")) is True


async def test_a_method_that_requires_a_permission_is_refused_on_a_link_without_a_gate() -> None:
    async with memory_pair() as (left, right):
        right.handle(WRITE)(lambda note: True)
        with pytest.raises(RemoteError) as refused:
            await left.call(WRITE, Note("x"))
        assert denied(refused.value)
        assert "memory.write" in str(refused.value)


async def test_the_gate_of_a_link_allows_granted_permissions_and_nothing_else() -> None:
    decisions: list[Decision] = []
    async with memory_pair(right_options={"gate": gate("memory.write", audit=decisions.append)}) as (left, right):
        right.handle(WRITE)(lambda note: True)
        right.handle(Method("read", Note, bool, requires="memory.read"))(lambda note: True)
        assert await left.call(WRITE, Note("x")) is True
        with pytest.raises(RemoteError) as refused:
            await left.call("read", {"text": "x"})
        assert denied(refused.value)
    assert [(decision.method, decision.allowed) for decision in decisions] == [("memory.append", True), ("read", False)]


async def test_the_params_of_a_caller_without_permission_are_not_decoded() -> None:
    async with memory_pair(right_options={"gate": gate()}) as (left, right):
        right.handle(WRITE)(lambda note: True)
        with pytest.raises(RemoteError) as refused:
            await left.call("memory.append", {"text": 5})
        assert denied(refused.value)


async def test_a_policy_also_decides_about_methods_that_require_nothing() -> None:
    def refuse(decision: Decision) -> bool:
        raise RuntimeError("out of order")

    async with memory_pair(right_options={"gate": gate(policy=refuse)}) as (left, right):
        right.handle(OPEN)(lambda note: True)
        with pytest.raises(RemoteError) as refused:
            await left.call(OPEN, Note("x"))
        assert denied(refused.value)


@pytest.mark.parametrize("consults", [False, True])
async def test_the_handler_of_unknown_methods_is_decided_about_by_the_name_of_the_method(consults: bool) -> None:
    decisions: list[Decision] = []
    asked: list[str] = []

    async def allow(decision: Decision) -> bool:
        asked.append(decision.method)
        return True

    options: dict[str, Any] = {"policy": allow} if consults else {}
    async with memory_pair(right_options={"gate": gate(audit=decisions.append, **options)}) as (left, right):
        right.handle_unknown()(lambda params, ctx: ctx.method)
        assert await left.call("known.to.others", {"a": 1}) == "known.to.others"

    assert [decision.method for decision in decisions] == ["known.to.others"]
    assert asked == (["known.to.others"] if consults else [])


async def test_the_context_has_the_caller_of_the_connection() -> None:
    async with memory_pair(right_options={"gate": gate("memory.write")}) as (left, right):

        @right.handle("who")
        def who(_: Any, ctx: Context) -> str | None:
            return ctx.caller

        assert await left.call("who", {"extension": "somebody else"}) == "notes"


async def test_a_notification_without_permission_is_dropped() -> None:
    received: list[Note] = []
    async with scripted(gate=gate("memory.read")) as (peer, script):

        @peer.on(WIDGET)
        def take(note: Note) -> None:
            received.append(note)

        script.send(notification("widget", {"text": "x"}))
        await settled()
    assert received == []


async def test_a_notification_with_permission_is_handled() -> None:
    received: list[Note] = []
    async with scripted(gate=gate("memory.write")) as (peer, script):

        @peer.on(WIDGET)
        def take(note: Note) -> None:
            received.append(note)

        script.send(notification("widget", {"text": "x"}))
        await settled()
    assert received == [Note("x")]


# -- prompts


async def test_the_prompt_is_used_for_permissions_that_are_neither_granted_nor_denied() -> None:
    prompts: list[str] = []

    async def ask(prompt: str, decision: Decision) -> bool:
        prompts.append(prompt)
        return decision.permission == "memory.write"

    decisions: list[Decision] = []
    gatekeeper = gate(asks=True, audit=decisions.append)
    async with memory_pair(right_options={"gate": gatekeeper, "ask": ask}) as (left, right):
        right.handle(WRITE)(lambda note: True)
        right.handle(Method("read", Note, bool, requires="memory.read"))(lambda note: True)
        with anyio.fail_after(60):
            assert await left.call(WRITE, Note("x")) is True
            assert await left.call(WRITE, Note("y")) is True
            with pytest.raises(RemoteError) as refused:
                await left.call("read", {"text": "x"})
        assert denied(refused.value)
    assert len(prompts) == 2
    assert [decision.allowed for decision in decisions] == [None, True, True, None, False]


async def test_a_plain_prompt_function_runs_in_its_own_thread() -> None:
    threads: list[int] = []

    def ask(prompt: str, decision: Decision) -> bool:
        threads.append(threading.get_ident())
        return True

    async with memory_pair(right_options={"gate": gate(asks=True), "ask": ask}) as (left, right):

        @right.handle(WRITE)
        async def write(note: Note, ctx: Context) -> bool:
            return note.text == "x"

        with anyio.fail_after(60):
            assert await left.call(WRITE, Note("x")) is True
    assert threads != [threading.get_ident()]


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("response", [1, "yes", [True], None])
async def test_a_decision_that_is_not_true_denies(response: Any, is_plain: bool) -> None:
    async def ask(prompt: str, decision: Decision) -> bool:
        return response  # type: ignore[no-any-return]

    def ask_plainly(prompt: str, decision: Decision) -> bool:
        return response  # type: ignore[no-any-return]

    options = {"gate": gate(asks=True), "ask": ask_plainly if is_plain else ask}
    async with memory_pair(right_options=options) as (left, right):
        right.handle(WRITE)(lambda note: True)
        with anyio.fail_after(60), pytest.raises(RemoteError) as refused:
            await left.call(WRITE, Note("x"))
    assert denied(refused.value)


@pytest.mark.parametrize("policy", [None, lambda decision: True], ids=["no policy", "a policy"])
async def test_consent_for_an_extension_is_not_consent_for_the_caller_that_it_acts_for(policy: Policy | None) -> None:
    """The prompt is about the extension alone; its caller may have lost the permission meanwhile."""
    decisions: list[Decision] = []
    strong = Gate("strong", Grants.of([]), asks=True, audit=decisions.append, policy=policy)
    weak = Gate("weak", Grants.of(["memory.write"]))

    async def ask(prompt: str, decision: Decision) -> bool:
        weak.revoke("memory.write")
        return True

    async with (
        memory_pair(dialect="native", right_options={"gate": strong, "ask": ask}) as (strong_side, to_strong),
        memory_pair(dialect="native", right_options={"gate": weak}) as (weak_side, to_weak),
    ):
        to_strong.handle(WRITE)(lambda note: True)

        @strong_side.handle("save")
        async def save(_: Any, ctx: Context) -> str:
            try:
                return str(await ctx.call(WRITE, Note("x")))
            except RemoteError as error:
                return error.message

        @to_weak.handle("ask strong")
        async def ask_strong() -> Any:
            return await to_strong.call("save", {})

        with anyio.fail_after(60):
            assert "memory.write" in await weak_side.call("ask strong")
    assert strong.allows("memory.write")
    assert [(decision.allowed, decision.on_behalf_of) for decision in decisions] == [
        (None, ("weak",)),
        (False, ("weak",)),
    ]


async def test_many_requests_cause_one_prompt() -> None:
    prompts = 0
    called, responded = anyio.Event(), anyio.Event()

    async def ask(prompt: str, decision: Decision) -> bool:
        nonlocal prompts
        prompts += 1
        called.set()
        await responded.wait()
        return False

    refusals = 0
    async with memory_pair(right_options={"gate": gate(asks=True), "ask": ask}) as (left, right):
        right.handle(WRITE)(lambda note: True)

        async def write() -> None:
            nonlocal refusals
            with pytest.raises(RemoteError) as refused:
                await left.call(WRITE, Note("x"))
            refusals += denied(refused.value)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(write)
                await called.wait()
                await settled()
                responded.set()
            for _ in range(100):
                await write()
    assert (prompts, refusals) == (1, 200)


async def test_no_decision_in_time_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PermissionChecker.__init__, "__kwdefaults__", {"prompt_timeout": 0.01})
    ended = anyio.Event()

    async def ask(prompt: str, decision: Decision) -> bool:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return True

    async with memory_pair(right_options={"gate": gate(asks=True), "ask": ask}) as (left, right):
        right.handle(WRITE)(lambda note: True)
        with anyio.fail_after(60):
            with pytest.raises(RemoteError) as refused:
                await left.call(WRITE, Note("x"))
            await ended.wait()
        assert denied(refused.value)


async def test_a_prompt_that_fails_denies() -> None:
    class Asker:
        async def __call__(self, prompt: str, decision: Decision) -> bool:
            raise OSError("no terminal")

    async with memory_pair(right_options={"gate": gate(asks=True), "ask": Asker()}) as (left, right):
        right.handle(WRITE)(lambda note: True)
        with anyio.fail_after(60), pytest.raises(RemoteError) as refused:
            await left.call(WRITE, Note("x"))
        assert denied(refused.value)


async def test_a_gate_without_a_prompt_denies() -> None:
    async with memory_pair(right_options={"gate": gate(asks=True)}) as (left, right):
        right.handle(WRITE)(lambda note: True)
        with pytest.raises(RemoteError) as refused:
            await left.call(WRITE, Note("x"))
        assert denied(refused.value)


async def test_invalid_params_are_refused_after_the_prompt() -> None:
    async def ask(prompt: str, decision: Decision) -> bool:
        return True

    async with memory_pair(right_options={"gate": gate(asks=True), "ask": ask}) as (left, right):
        right.handle(WRITE)(lambda note: True)
        with anyio.fail_after(60), pytest.raises(RemoteError) as refused:
            await left.call("memory.append", {"text": 5})
        assert refused.value.meaning is Meaning.INVALID_PARAMS


async def test_a_caller_that_leaves_does_not_close_the_prompt_for_the_others() -> None:
    called, responded = anyio.Event(), anyio.Event()
    served: list[str] = []

    async def ask(prompt: str, decision: Decision) -> bool:
        called.set()
        await responded.wait()
        return True

    async with memory_pair(right_options={"gate": gate(asks=True), "ask": ask}) as (left, right):

        @right.handle(WRITE)
        def write(note: Note) -> bool:
            served.append(note.text)
            return True

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                leaving = anyio.CancelScope()

                async def leave() -> None:
                    with leaving:
                        await left.call(WRITE, Note("first"))

                tasks.start_soon(leave)
                await called.wait()
                tasks.start_soon(left.call, WRITE, Note("second"))
                await settled()
                leaving.cancel()
                await settled()
                responded.set()
    assert served == ["second"]


async def test_the_end_of_a_link_closes_its_prompts() -> None:
    called = anyio.Event()
    gatekeeper = gate(asks=True)

    async def ask(prompt: str, decision: Decision) -> bool:
        called.set()
        await anyio.sleep_forever()
        return True

    async with scripted(gate=gatekeeper, ask=ask) as (peer, script):
        peer.handle(WRITE)(lambda note: True)
        script.send(request(1, "memory.append", {"text": "x"}))
        with anyio.fail_after(60):
            await called.wait()
    assert not gatekeeper.begin_prompt("memory.write")


# -- revocation


async def test_a_revocation_ends_what_runs_on_the_permission() -> None:
    gatekeeper = gate("memory.write", "memory.read")
    begun = anyio.Event()
    async with memory_pair(right_options={"gate": gatekeeper}) as (left, right):

        @right.handle(WRITE)
        async def write(note: Note) -> bool:
            begun.set()
            await anyio.sleep_forever()
            return True

        other = anyio.Event()

        @right.handle(Method("read", Note, bool, requires="memory.read"))
        async def read(note: Note) -> bool:
            await other.wait()
            return True

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:

                async def reads() -> None:
                    assert await left.call("read", {"text": "x"}) is True

                async def writes() -> None:
                    with pytest.raises(RemoteError) as refused:
                        await left.call(WRITE, Note("x"))
                    assert denied(refused.value)
                    other.set()

                tasks.start_soon(reads)
                tasks.start_soon(writes)
                await begun.wait()
                await settled()
                await anyio.to_thread.run_sync(gatekeeper.revoke, "memory.write")


async def test_a_link_that_has_ended_is_not_notified_of_a_revocation() -> None:
    gatekeeper = gate("memory.write")
    async with memory_pair(right_options={"gate": gatekeeper}):
        pass
    gatekeeper.revoke("memory.write")
    await settled()


# -- on behalf of others


async def test_an_extension_that_acts_for_a_caller_has_no_more_permissions_than_the_caller() -> None:
    decisions: list[Decision] = []
    strong = Gate("strong", Grants.of(["memory.write"]), audit=decisions.append)
    weak = Gate("weak", Grants.of([]))
    async with (
        memory_pair(dialect="native", right_options={"gate": strong}) as (strong_side, to_strong),
        memory_pair(dialect="native", right_options={"gate": weak}) as (weak_side, to_weak),
    ):
        to_strong.handle(WRITE)(lambda note: True)

        @strong_side.handle("save")
        async def save(_: Any, ctx: Context) -> bool:
            return await ctx.call(WRITE, Note("x"))

        @to_weak.handle("ask strong")
        async def ask_strong() -> Any:
            try:
                return await to_strong.call("save", {})
            except RemoteError as error:
                return error.message

        with anyio.fail_after(60):
            assert await to_strong.call("save", {}) is True  # of its own
            assert "internal error" in await weak_side.call("ask strong")  # without the denial
    assert [(decision.allowed, decision.on_behalf_of) for decision in decisions] == [(True, ()), (False, ("weak",))]


async def test_a_nested_call_ends_with_its_parent_call() -> None:
    remaining: list[float] = []
    async with memory_pair(dialect="native", limits=Limits(call_timeout=100.0)) as (left, right):

        @right.handle("outer")
        async def outer(_: Any, ctx: Context) -> None:
            left_of_it = ctx.deadline
            await right.call("inner", {"_meta": {"becket": {"parent": ctx.id}}}, timeout=None)
            remaining.append(left_of_it)

        @left.handle("inner")
        def inner(_: Any, ctx: Context) -> None:
            remaining.append(ctx.remaining())

        with anyio.fail_after(60):
            await left.call("outer", {}, timeout=20)
    assert remaining[0] <= 20.001  # differences of a clock are rounded
