"""Deny by default: each method of a host with each set of grants, and the faults of a decision.

Only a gate decides. Its decisions are compared with tables here, and with the rules that no history of grants,
revocations, prompts and chains of callers may break.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, strategies as st

import becket.contract
from becket.errors import BadGrants, Meaning, PermissionDenied, ReservedPermission, RpcError, UnknownPermission
from becket.methods.descriptors import Method
from becket.permissions.gate import MAX_PROMPTS, Gate
from becket.permissions.grants import Grants
from becket.permissions.names import PERMISSIONS, RESERVED_PERMISSIONS, parse_permission
from becket.permissions.permission_prompt import MAX_NAME_LENGTH, format_prompt
from becket.permissions.policies import Decision

ALL = sorted(PERMISSIONS)

# What each method that an extension may call at its host needs.
NEEDS: dict[str, str | None] = {
    "memory.append": "memory.write",
    "memory.query": "memory.read",
    "config.get": None,
    "config.set": "config.write",
    "config.subscribe": "config.subscribe",
}


def methods_of_the_contract() -> Iterator[Method[Any, Any]]:
    for module in pkgutil.iter_modules(becket.contract.__path__, "becket.contract."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Method):
                yield value


found = {method.name: method for method in methods_of_the_contract() if method.direction == "to-host"}
SERVED = [found[name] for name in sorted(found)]

# Grants, and what is held with them.
GRANT_SETS: dict[str, tuple[Grants, set[str]]] = {
    "none": (Grants(), set()),
    "all": (Grants.of(ALL), set(ALL)),
    "all, all denied": (Grants.of(ALL, ALL), set()),
    "all denied": (Grants.of([], ALL), set()),
    **{f"only {one}": (Grants.of([one]), {one}) for one in ALL},
    **{f"all but {one}": (Grants.of([name for name in ALL if name != one]), {*ALL} - {one}) for one in ALL},
    **{f"all, {one} denied": (Grants.of(ALL, [one]), {*ALL} - {one}) for one in ALL},
    **{f"only {one}, denied": (Grants.of([one], [one]), set()) for one in ALL},
}


# -- the matrix


def test_the_matrix_is_of_every_method_that_a_host_serves() -> None:
    assert {method.name: method.requires for method in SERVED} == NEEDS


@pytest.mark.parametrize("grant_set", GRANT_SETS)
def test_a_method_is_allowed_exactly_where_its_permission_is_held(grant_set: str) -> None:
    grants, held = GRANT_SETS[grant_set]
    for method in SERVED:
        needed = NEEDS[method.name]
        expected = needed is None or needed in held
        recorded: list[Decision] = []
        gate = Gate("notes", grants, audit=recorded.append)

        decision = gate.decide(method.name, method.requires)

        assert decision.allowed is expected, method.name
        assert (decision.extension, decision.method, decision.permission) == ("notes", method.name, needed)
        assert decision.own_authority, method.name
        assert recorded == [decision]
        if expected:
            gate.check(method.name, method.requires)
        else:
            with pytest.raises(PermissionDenied) as caught:
                gate.check(method.name, method.requires)
            assert caught.value.permission == needed
            assert caught.value.meaning is Meaning.PERMISSION_DENIED


@pytest.mark.parametrize("grant_set", GRANT_SETS)
def test_on_behalf_of_another_what_both_hold_is_allowed(grant_set: str) -> None:
    grants, held = GRANT_SETS[grant_set]
    callee, caller = Gate("callee", Grants.of(ALL)), Gate("caller", grants)
    for method in SERVED:
        needed = NEEDS[method.name]

        decision = callee.decide(method.name, method.requires, [caller])

        assert decision.allowed is (needed is None or needed in held), method.name
        assert (decision.extension, decision.on_behalf_of, decision.own_authority) == ("callee", ("caller",), False)
        assert caller.decide(method.name, method.requires, [callee]).allowed is decision.allowed, method.name


# -- names


def test_the_names_are_the_names_of_the_contract() -> None:
    assert {
        "audio.input",
        "audio.output",
        "config.subscribe",
        "config.write",
        "context_providers.register",
        "memory.read",
        "memory.write",
        "privacy.llm_content",
        "providers.register",
        "session.drive",
        "session.lifecycle",
        "tools.intercept",
        "tools.register",
        "tools.transform_output",
    } == PERMISSIONS
    assert {"tools.override"} == RESERVED_PERMISSIONS


@pytest.mark.parametrize("name", ALL)
def test_a_known_name_can_be_granted(name: str) -> None:
    assert parse_permission(name) == name


@pytest.mark.parametrize("name", ["", "memory", "memory.write ", "Memory.write", "memory.*", "*", "audio.telepathy"])
def test_an_unknown_name_is_refused_with_the_message_of_the_contract(name: str) -> None:
    with pytest.raises(UnknownPermission) as caught:
        parse_permission(name)
    assert caught.value.permission == name
    assert str(caught.value) == f"Unknown extension permission: {name}"


def test_a_reserved_name_is_refused_with_its_own_message() -> None:
    with pytest.raises(ReservedPermission) as caught:
        parse_permission("tools.override")
    assert caught.value.permission == "tools.override"
    assert str(caught.value) == "Reserved extension permission is not implemented yet: tools.override"


def test_a_host_may_have_permissions_of_its_own_but_never_a_reserved_one() -> None:
    known = PERMISSIONS | {"notes.share", "tools.override"}
    gate = Gate("notes", Grants.of(["notes.share"], known=known), known=known)

    assert gate.decide("notes/share", "notes.share").allowed is True
    with pytest.raises(ReservedPermission):
        parse_permission("tools.override", known)
    with pytest.raises(ReservedPermission):
        gate.grant("tools.override")


@pytest.mark.parametrize("name", ["tools.override", "audio.telepathy", ""])
def test_a_permission_that_cannot_be_granted_is_never_held_whatever_the_grants_contain(name: str) -> None:
    gate = Gate("notes", Grants(frozenset({name})), asks=True, known=PERMISSIONS | {"tools.override"})

    assert gate.decide("x", name).allowed is False
    assert not gate.allows(name)
    assert not gate.begin_prompt(name)


# -- grants as data


def test_grants_are_made_of_names_and_refuse_other_values() -> None:
    assert Grants.of(["memory.read"], ["memory.write"]) == Grants(
        frozenset({"memory.read"}), frozenset({"memory.write"})
    )
    with pytest.raises(UnknownPermission):
        Grants.of(["memory.reed"])
    with pytest.raises(ReservedPermission):
        Grants.of([], ["tools.override"])


@pytest.mark.parametrize("names", [("memory.read", ()), ((), "memory.read")])
def test_a_string_is_not_a_list_of_names(names: tuple[Iterable[str], Iterable[str]]) -> None:
    with pytest.raises(TypeError, match=r"^`permissions` must be a list of names, got str$"):
        Grants.of(*names)


def test_grants_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Grants().allow = frozenset({"memory.read"})  # type: ignore[misc]


@pytest.mark.parametrize(
    ("written", "grants"),
    [
        ([], Grants()),
        (["memory.read", "memory.read"], Grants.of(["memory.read"])),
        ({}, Grants()),
        ({"allow": ["memory.read"]}, Grants.of(["memory.read"])),
        ({"deny": ["memory.read"], "digest": "00ff"}, Grants.of([], ["memory.read"])),
        ({"allow": ["memory.read"], "deny": ["memory.read"]}, Grants.of(["memory.read"], ["memory.read"])),
    ],
)
def test_grants_are_read_from_a_list_or_a_table(written: object, grants: Grants) -> None:
    assert Grants.parse(written) == grants


@pytest.mark.parametrize(
    ("written", "pointers"),
    [
        ("memory.read", [""]),
        (None, [""]),
        ([5], ["/0"]),
        (["memory.read", "memory.reed", "tools.override"], ["/1", "/2"]),
        ({"allow": "memory.read"}, ["/allow"]),
        ({"allow": ["memory.read", None], "deny": [True]}, ["/allow/1", "/deny/0"]),
        ({"allow": ["nothing"], "deny": ["memory.read", "nothing"]}, ["/allow/0", "/deny/1"]),
        ({"denny": ["memory.read"]}, ["/denny"]),
    ],
)
def test_all_problems_of_written_grants_are_reported_at_once(written: object, pointers: list[str]) -> None:
    with pytest.raises(BadGrants) as caught:
        Grants.parse(written)
    assert [pointer for pointer, _ in caught.value.problems] == pointers


# -- policies


def test_a_policy_can_deny_granted_permissions_and_methods_that_require_none() -> None:
    messages: list[Decision] = []

    def policy(decision: Decision) -> bool:
        messages.append(decision)
        return decision.method == "memory.query"

    gate = Gate("notes", Grants.of(["memory.read", "memory.write"]), policy=policy)

    assert gate.decide("memory.query", "memory.read").allowed is True
    assert gate.decide("memory.append", "memory.write").allowed is False
    assert gate.decide("config.get", None).allowed is False
    assert [decision.method for decision in messages] == ["memory.query", "memory.append", "config.get"]
    with pytest.raises(PermissionDenied):
        gate.check("config.get", None)


def test_a_policy_cannot_allow_a_missing_permission_and_is_not_called() -> None:
    messages: list[Decision] = []

    def policy(decision: Decision) -> bool:
        messages.append(decision)
        return True

    gate = Gate("notes", Grants(), policy=policy)

    assert gate.decide("memory.query", "memory.read").allowed is False
    assert messages == []


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError(), PermissionDenied("x"), TimeoutError()])
def test_a_policy_that_raises_denies_and_is_recorded(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def policy(decision: Decision) -> bool:
        raise error

    recorded: list[Decision] = []
    gate = Gate("notes", Grants.of(ALL), policy=policy, audit=recorded.append)

    assert gate.decide("memory.query", "memory.read").allowed is False
    assert type(error).__name__ in recorded[0].because
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is error


def test_a_policy_that_is_interrupted_denies() -> None:
    def policy(decision: Decision) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(PermissionDenied):
        Gate("notes", Grants.of(ALL), policy=policy).check("memory.query", "memory.read")


@pytest.mark.parametrize("verdict", [None, 1, "yes", object(), [True], False])
def test_only_true_allows(verdict: object) -> None:
    policy: Callable[[Decision], Any] = lambda decision: verdict  # noqa: E731
    gate = Gate("notes", Grants.of(ALL), policy=policy)

    assert gate.decide("memory.query", "memory.read").allowed is False


def test_a_policy_that_does_not_respond_denies() -> None:
    released = Event()

    def policy(decision: Decision) -> bool:
        return released.wait(10)

    impatient = Gate("notes", Grants.of(ALL), policy=policy, policy_timeout=0.01)
    decision = impatient.decide("memory.append", "memory.write")
    assert (decision.allowed, decision.because) == (False, "the policy does not respond")
    released.set()
    assert Gate("notes", Grants.of(ALL), policy=policy).decide("memory.append", "memory.write").allowed is True


def test_a_policy_that_hangs_occupies_eight_threads_and_queues_nothing_behind_them() -> None:
    released = Event()
    messages: list[Decision] = []

    def policy(decision: Decision) -> bool:
        messages.append(decision)
        return released.wait(10)

    gate = Gate("notes", Grants.of(ALL), policy=policy, policy_timeout=0.2)
    threads = [Thread(target=gate.decide, args=(f"method-{number}", None)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(messages) == 8
    released.set()  # the threads are free again, and what was given up meanwhile is forgotten
    assert Gate.decide(gate, "afterwards", None).allowed is True
    assert [decision.method for decision in messages[8:]] == ["afterwards"]


def test_an_async_policy_denies_where_nothing_can_await_it() -> None:
    async def policy(decision: Decision) -> bool:
        return True

    decision = Gate("notes", Grants.of(ALL), policy=policy).decide("memory.append", "memory.write")
    assert decision.allowed is False
    assert "async" in decision.because


def test_a_permission_that_is_revoked_while_the_policy_takes_its_time_is_gone() -> None:
    def policy(decision: Decision) -> bool:
        gate.revoke("memory.write")
        return True

    gate = Gate("notes", Grants.of(ALL), policy=policy)

    decision = gate.decide("memory.append", "memory.write")
    assert (decision.allowed, decision.because) == (False, "it was revoked")


def test_the_policy_decides_about_every_caller_in_the_chain_and_sees_which() -> None:
    messages: list[Decision] = []

    def policy(decision: Decision) -> bool:
        messages.append(decision)
        return False

    callee, first = Gate("callee", Grants.of(ALL)), Gate("first", Grants.of(ALL))
    middle = Gate("middle", Grants.of(ALL), policy=policy)

    decision = callee.decide("memory.query", "memory.read", [middle, first])

    assert decision.allowed is False
    assert decision.on_behalf_of == ("middle", "first")
    assert "middle" in decision.because
    assert [(one.extension, one.on_behalf_of) for one in messages] == [("middle", ("first",))]


# -- records


def test_each_decision_is_recorded_once_by_the_gate_that_takes_it() -> None:
    own: list[Decision] = []
    theirs: list[Decision] = []
    callee = Gate("callee", Grants.of(["memory.read"]), audit=own.append, asks=True)
    caller = Gate("caller", Grants.of(["memory.read"]), audit=theirs.append)

    decisions = [
        callee.decide("memory.query", "memory.read"),
        callee.decide("memory.query", "memory.read", [caller]),
        callee.decide("memory.append", "memory.write"),
        callee.decide("memory.append", "memory.write", [caller]),
    ]

    assert own == decisions
    assert theirs == []
    assert [decision.allowed for decision in decisions] == [True, True, None, False]
    assert [decision.own_authority for decision in decisions] == [True, False, True, False]


@pytest.mark.parametrize(("requires", "expected"), [("memory.read", True), ("memory.write", False)])
def test_an_audit_that_fails_changes_no_decision(
    requires: str, expected: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def audit(decision: Decision) -> None:
        raise OSError(28, "No space left on device")

    gate = Gate("notes", Grants.of(["memory.read"]), audit=audit)

    assert gate.decide("x", requires).allowed is expected
    assert len(caplog.records) == 1


# -- changes


def test_a_revocation_holds_before_subscribers_are_notified() -> None:
    gate = Gate("notes", Grants.of(["memory.read"]))
    seen: list[tuple[str, bool | None]] = []
    gate.subscribe(lambda permission: seen.append((permission, gate.decide("memory.query", permission).allowed)))

    gate.revoke("memory.read")
    gate.revoke("memory.read")  # there is nothing left to revoke

    assert seen == [("memory.read", False)]
    assert gate.grants == Grants.of([], ["memory.read"])


def test_a_grant_holds_before_subscribers_are_notified_and_ends_a_denial() -> None:
    gate = Gate("notes", Grants.of([], ["memory.read"]))
    revoked: list[str] = []
    granted: list[tuple[str, bool]] = []
    gate.subscribe(revoked.append, lambda permission: granted.append((permission, gate.allows(permission))))
    gate.subscribe(revoked.append)

    gate.grant("memory.read")
    gate.grant("memory.read")

    assert granted == [("memory.read", True)]
    assert revoked == []
    assert gate.decide("memory.query", "memory.read").allowed is True
    assert gate.grants == Grants.of(["memory.read"])


def test_a_removed_subscriber_is_not_notified() -> None:
    gate = Gate("notes", Grants.of(["memory.read"]))
    received: list[str] = []
    unsubscribe = gate.subscribe(received.append)
    gate.subscribe(received.append)

    unsubscribe()
    unsubscribe()
    gate.revoke("memory.read")

    assert received == ["memory.read"]


def test_a_subscriber_may_unsubscribe_while_it_is_notified() -> None:
    gate = Gate("notes", Grants.of(["memory.read"]))
    received: list[str] = []
    ends = [gate.subscribe(lambda permission: [end() for end in ends]), gate.subscribe(received.append)]

    gate.revoke("memory.read")

    assert received == ["memory.read"]


def test_a_subscriber_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate("notes", Grants.of(["memory.read"]))
    received: list[str] = []

    def fail(permission: str) -> None:
        raise ValueError(permission)

    gate.subscribe(fail)
    gate.subscribe(received.append)
    gate.revoke("memory.read")

    assert received == ["memory.read"]
    [record] = caplog.records
    assert record.name == "becket.host"
    assert record.getMessage() == "a subscriber to the grants of 'notes' failed"
    assert record.exc_info is not None


@pytest.mark.parametrize("change", [Gate.grant, Gate.revoke])
def test_a_permission_that_cannot_be_granted_cannot_be_changed(change: Callable[[Gate, str], None]) -> None:
    gate = Gate("notes", Grants())
    with pytest.raises(UnknownPermission):
        change(gate, "memory.reed")
    with pytest.raises(ReservedPermission):
        change(gate, "tools.override")


def test_a_gate_shows_the_held_permissions() -> None:
    assert repr(Gate("notes", Grants())) == "<Gate of notes: nothing granted>"
    held = Gate("notes", Grants.of(["memory.write", "memory.read", "audio.input"], ["audio.input"]))
    assert repr(held) == "<Gate of notes: memory.read, memory.write granted>"


# -- prompts


def test_a_missing_permission_is_prompted_for_once_however_often_it_is_needed() -> None:
    gate = Gate("notes", Grants(), asks=True)

    prompts = 0
    for _ in range(10_000):
        assert gate.decide("memory.query", "memory.read").allowed is None
        prompts += gate.begin_prompt("memory.read")

    assert prompts == 1


@pytest.mark.parametrize("response", [True, False])
def test_a_decision_is_remembered_and_not_prompted_for_again(response: bool) -> None:
    gate = Gate("notes", Grants(), asks=True)
    granted: list[str] = []
    revoked: list[str] = []
    gate.subscribe(revoked.append, granted.append)
    assert gate.begin_prompt("memory.read")

    gate.resolve_prompt("memory.read", response)

    assert gate.decide("memory.query", "memory.read").allowed is response
    assert not gate.begin_prompt("memory.read")
    assert granted == (["memory.read"] if response else [])
    assert revoked == []


def test_a_decision_that_is_not_true_denies() -> None:
    gate = Gate("notes", Grants(), asks=True)
    gate.begin_prompt("memory.read")
    gate.resolve_prompt("memory.read", "yes")  # type: ignore[arg-type]
    assert gate.decide("memory.query", "memory.read").allowed is False


def test_a_decision_without_a_prompt_grants_nothing() -> None:
    gate = Gate("notes", Grants(), asks=True)
    gate.resolve_prompt("memory.read", True)
    assert gate.decide("memory.query", "memory.read").allowed is None


def test_a_revocation_while_the_prompt_is_open_outlasts_the_decision() -> None:
    gate = Gate("notes", Grants(), asks=True)
    gate.begin_prompt("memory.read")

    gate.revoke("memory.read")
    gate.resolve_prompt("memory.read", True)

    assert gate.decide("memory.query", "memory.read").allowed is False


def test_a_grant_while_the_prompt_is_open_outlasts_the_decision() -> None:
    gate = Gate("notes", Grants(), asks=True)
    gate.begin_prompt("memory.read")

    gate.grant("memory.read")
    gate.resolve_prompt("memory.read", False)

    assert gate.decide("memory.query", "memory.read").allowed is True


def test_a_permission_that_is_denied_held_or_not_requested_causes_no_prompt() -> None:
    gate = Gate("notes", Grants.of(["memory.read"], ["memory.write"]), asks=True)
    assert not gate.begin_prompt("memory.read")
    assert not gate.begin_prompt("memory.write")
    assert gate.decide("memory.append", "memory.write").allowed is False
    assert not Gate("notes", Grants()).begin_prompt("memory.read")


def test_the_number_of_prompts_is_bounded() -> None:
    known = PERMISSIONS | {f"own.{number}" for number in range(MAX_PROMPTS)}
    names = sorted(known)
    gate = Gate("notes", Grants(), asks=True, known=known)

    prompts = [name for name in names if gate.begin_prompt(name)]

    assert prompts == names[:MAX_PROMPTS]
    assert gate.decide("x", names[0]).allowed is None  # an open prompt still waits for a decision
    assert gate.decide("x", names[MAX_PROMPTS]).allowed is False


def test_no_prompt_is_shown_where_a_policy_or_the_chain_denies_anyway() -> None:
    forbidden = Gate("notes", Grants(), asks=True, policy=lambda decision: False)
    callee, caller = Gate("callee", Grants(), asks=True), Gate("caller", Grants(), asks=True)

    assert forbidden.decide("memory.query", "memory.read").allowed is False
    assert callee.decide("memory.query", "memory.read", [caller]).allowed is False


def test_without_a_prompt_a_missing_permission_is_denied() -> None:
    with pytest.raises(PermissionDenied):
        Gate("notes", Grants(), asks=True).check("memory.query", "memory.read")


# -- the text of a prompt


def prompt_text(extension: str = "notes", method: str = "memory.query", on_behalf_of: tuple[str, ...] = ()) -> str:
    return format_prompt(Decision(extension, method, "memory.read", None, "it needs consent", on_behalf_of))


def test_a_prompt_names_the_extension_the_permission_and_the_purpose() -> None:
    assert prompt_text() == "`notes` wants `memory.read` to call `memory.query`: allow it?"
    assert prompt_text(on_behalf_of=("a", "b")).endswith(" on behalf of `a`, `b`: allow it?")
    assert "`c`, `d`: " in prompt_text(on_behalf_of=("a", "b", "c", "d"))
    assert "`d` and 2 more:" in prompt_text(on_behalf_of=("a", "b", "c", "d", "e", "f"))


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("no\x1b[31;1mtes", "no\\x1b[31;1mtes"),
        ("\x1b]0;title\x07notes", "\\x1b]0;title\\x07notes"),
        ("no\x9b1mtes\x9c", "no\\x9b1mtes\\x9c"),
        ("no\t\r\n\x00\x7f\x85tes", "no\\t\\r\\n\\x00\\x7f\\x85tes"),
        ("no\u202e\u200b\u2028tes\ud800", "no\\u202e\\u200b\\u2028tes\\ud800"),
        ("no\u3164\ufe0f\u034ftes", "no\\u3164\\ufe0f\\u034ftes"),
        ("`: allow it? `y", "\\x60: allow it? \\x60y"),
    ],
)
def test_no_name_can_bring_control_characters_or_escapes_into_a_prompt(hostile: str, shown: str) -> None:
    assert prompt_text(hostile) == prompt_text().replace("`notes`", f"`{shown}`")


@given(st.text(), st.text(), st.lists(st.text(), max_size=6))
def test_a_prompt_is_one_short_printable_line(extension: str, method: str, behalf: list[str]) -> None:
    text = prompt_text(extension, method, tuple(behalf))
    assert text.isprintable()
    assert len(text) < 8 * (MAX_NAME_LENGTH + 10)


def test_names_that_differ_in_invisible_characters_differ_in_a_prompt() -> None:
    names = ["notes", "notes\u200b", "notes\ufe0f", "notes\x1b[0m", "notes`", "notes'"]
    assert len({prompt_text(name) for name in names}) == len(names)


def test_a_long_name_is_cut_and_shows_that_it_was() -> None:
    assert f"`{'x' * (MAX_NAME_LENGTH - 1)}…`" in prompt_text("x" * (MAX_NAME_LENGTH + 1))
    assert f"`{'x' * MAX_NAME_LENGTH}`" in prompt_text("x" * MAX_NAME_LENGTH)
    assert len(prompt_text("x" * 1_000_000)) < 4 * MAX_NAME_LENGTH
    assert len(prompt_text("\x1b" * MAX_NAME_LENGTH)) < 2 * MAX_NAME_LENGTH


# -- invariants

names = st.sampled_from(ALL)
grant_data = st.builds(Grants, st.frozensets(names), st.frozensets(names))
changes = st.lists(st.tuples(st.sampled_from(["grant", "revoke", "ask", "yes", "no"]), names), max_size=20)


def change(gate: Gate, history: list[tuple[str, str]]) -> None:
    for what, name in history:
        match what:
            case "grant":
                gate.grant(name)
            case "revoke":
                gate.revoke(name)
            case "ask":
                gate.begin_prompt(name)
            case _:
                gate.resolve_prompt(name, what == "yes")


@given(grant_data, names, st.booleans())
def test_a_denial_overrides_a_grant(grants: Grants, name: str, asks: bool) -> None:
    denied = Grants(grants.allow | {name}, grants.deny | {name})
    assert not denied.allows(name)
    assert Gate("notes", denied, asks=asks).decide("x", name).allowed is False


@given(st.lists(grant_data, min_size=1, max_size=5), names, st.booleans())
def test_a_chain_never_widens(chain: list[Grants], name: str, asks: bool) -> None:
    gates = [Gate(str(number), grants, asks=asks) for number, grants in enumerate(chain)]
    alone = gates[0].decide("x", name)

    together = gates[0].decide("x", name, gates[1:])

    assert (together.allowed is True) is all(grants.allows(name) for grants in chain)
    assert not (together.allowed and not alone.allowed)
    for others in (gates[1:], gates[:0:-1], [*gates[1:], *gates]):
        assert not gates[0].decide("x", name, others).allowed or together.allowed


@given(grant_data, changes, names, changes)
def test_a_revocation_holds_until_the_next_grant(
    grants: Grants, before: list[tuple[str, str]], name: str, after: list[tuple[str, str]]
) -> None:
    gate = Gate("notes", grants, asks=True)
    change(gate, before)

    gate.revoke(name)
    assert gate.decide("x", name).allowed is False

    change(gate, [(what, other) for what, other in after if (what, other) != ("grant", name)])
    assert gate.decide("x", name).allowed is False
    gate.grant(name)
    assert gate.decide("x", name).allowed is True


@given(grant_data, changes, st.booleans())
def test_a_gate_holds_exactly_its_grants(grants: Grants, history: list[tuple[str, str]], asks: bool) -> None:
    gate = Gate("notes", grants, asks=asks)
    change(gate, history)

    assert {name for name in ALL if gate.allows(name)} == gate.grants.allow - gate.grants.deny
    for name in ALL:
        assert (gate.decide("x", name).allowed is True) is gate.grants.allows(name)


@given(grant_data, changes)
def test_subscribers_are_notified_of_each_change_of_the_held_permissions(
    grants: Grants, history: list[tuple[str, str]]
) -> None:
    gate = Gate("notes", grants, asks=True)
    held = {name for name in ALL if gate.allows(name)}
    gate.subscribe(held.remove, held.add)
    change(gate, history)

    assert held == {name for name in ALL if gate.allows(name)}


# -- where a decision is enforced


@pytest.mark.parametrize(("requires", "named"), [("memory.read", "memory.read"), (None, "memory.query")])
def test_a_denial_names_permission_method_and_extension(requires: str | None, named: str) -> None:
    gate = Gate("notes", Grants(), policy=lambda decision: False)

    with pytest.raises(PermissionDenied) as caught:
        gate.check("memory.query", requires)

    error = caught.value
    assert (error.permission, error.method, error.extension) == (named, "memory.query", "notes")


def test_a_check_includes_the_callers_on_whose_behalf_it_is() -> None:
    gate, other = Gate("notes", Grants.of(["memory.read"])), Gate("diary", Grants())
    gate.check("memory.query", "memory.read")

    with pytest.raises(PermissionDenied):
        gate.check("memory.query", "memory.read", [other])


def test_a_policy_is_called_where_any_caller_in_the_chain_has_one() -> None:
    plain, strict = Gate("a", Grants()), Gate("b", Grants(), policy=lambda decision: True)

    assert [plain.consults(chain) for chain in ([], [plain], [plain, strict])] == [False, False, True]
    assert strict.consults([plain])


@pytest.mark.parametrize(
    ("is_unknown", "handling", "because"),
    [(True, (), "its parent is not a pending call"), (False, ("diary",), "it names no parent")],
)
def test_a_call_that_is_refused_for_its_parent_is_recorded(
    is_unknown: bool, handling: tuple[str, ...], because: str
) -> None:
    recorded: list[Decision] = []
    gate = Gate("notes", Grants(), audit=recorded.append, require_parent=True)

    with pytest.raises(RpcError) as caught:
        gate.check_parent("memory.query", "memory.read", is_unknown=is_unknown, handling=handling)

    assert caught.value.meaning is Meaning.PERMISSION_DENIED
    assert recorded == [Decision("notes", "memory.query", "memory.read", False, because, handling=handling)]


def test_a_decision_has_a_reason() -> None:
    gate = Gate("notes", Grants.of(["memory.read"], ["memory.write"]))
    known = PERMISSIONS | {f"own.{number}" for number in range(MAX_PROMPTS)}
    prompting = Gate("notes", Grants(), asks=True, known=known)
    reasons = [gate.decide("x", name).because for name in (None, "memory.read", "memory.write", "config.write", "fly")]
    reasons.append(prompting.decide("x", "memory.read").because)
    for name in ["memory.read", *(f"own.{number}" for number in range(MAX_PROMPTS - 1))]:
        prompting.begin_prompt(name)
    reasons += [prompting.decide("x", name).because for name in ("memory.read", "memory.write")]

    assert reasons == [
        "it needs no permission",
        "it is granted",
        "it is denied",
        "it is not granted",
        "no such permission can be granted",
        "it needs consent",
        "a prompt is open",
        "too many prompts",
    ]


def test_a_denial_on_behalf_of_others_names_the_caller_without_permission() -> None:
    callee, lacking = Gate("callee", Grants.of(["memory.read"])), Gate("lacking", Grants())
    denied, caller = Gate("denied", Grants.of([], ["memory.read"])), Gate("caller", Grants(), asks=True)

    def reason(gate: Gate, *chain: Gate) -> str:
        decision = gate.decide("memory.query", "memory.read", chain, ("diary",))
        assert (decision.on_behalf_of, decision.handling) == (tuple(one.extension for one in chain), ("diary",))
        return decision.because

    assert reason(callee, denied) == "on behalf of denied: it is denied"
    assert reason(callee, callee, caller) == "on behalf of caller: it is not granted"
    assert reason(lacking, denied) == "it is not granted"


def test_the_policy_of_a_caller_sees_the_method_and_the_callers_above_it() -> None:
    seen: list[Decision] = []

    def policy(decision: Decision) -> bool:
        seen.append(decision)
        return True

    grants = Grants.of(["memory.read"])
    middle = Gate("middle", grants, policy=policy)

    assert Gate("notes", grants).decide("memory.query", "memory.read", [middle, Gate("top", grants)]).allowed
    (decision,) = seen
    assert (decision.extension, decision.method, decision.on_behalf_of) == ("middle", "memory.query", ("top",))


def test_a_permission_of_the_hosts_own_can_be_denied_and_written_down() -> None:
    known = PERMISSIONS | {"acme.fly"}

    assert Grants.of([], ["acme.fly"], known=known).deny == {"acme.fly"}
    assert Grants.parse({"allow": ["acme.fly"], "deny": ["acme.fly"]}, known=known).deny == {"acme.fly"}
    with pytest.raises(BadGrants) as caught:
        Grants.parse({"allow": ["acme.swim"]}, known=known)
    assert "acme.swim" in caught.value.problems[0][1]
