"""Hooks: the wire form, the interpretation of results, and event filters."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from becket.contract.hooks import (
    HOOK_HANDLE,
    HOOKS,
    MALFORMED_MODIFY,
    Block,
    Confirm,
    Continue,
    HookEvent,
    HookKind,
    HookMatch,
    HookResult,
    Inject,
    Modify,
    Replace,
    decode_hook_result,
    find_hook_problem,
    truncate_output,
)
from becket.limits import Limits
from becket.permissions.names import PERMISSIONS

KIB = 1024
BEFORE = HookKind.BEFORE_TOOL_CALL
AFTER = HookKind.AFTER_TOOL_CALL


def wire(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


# -- events


@pytest.mark.parametrize("kind", HookKind)
def test_all_nine_members_are_sent_and_inapplicable_ones_are_null(kind: HookKind) -> None:
    assert wire(HookEvent(kind)) == {
        "kind": kind.value,
        "tool_name": None,
        "tool_runtime_name": None,
        "tool_input": None,
        "tool_output": None,
        "message": None,
        "session_id": None,
        "transcript": None,
        "data": None,
    }


@pytest.mark.parametrize(
    ("event", "filled"),
    [
        (
            HookEvent.before_tool_call("bash", {"command": "ls"}),
            {"tool_name": "bash", "tool_runtime_name": "bash", "tool_input": {"command": "ls"}},
        ),
        (
            HookEvent.after_tool_call("notes_count", {}, "3", runtime_name="notes:count"),
            {"tool_name": "notes_count", "tool_runtime_name": "notes:count", "tool_input": {}, "tool_output": "3"},
        ),
        (HookEvent.before_message("hi"), {"message": "hi"}),
        (
            HookEvent.on_message_complete("hello", content_block_count=2, has_tool_use=True),
            {"message": "hello", "data": {"content_block_count": 2, "has_tool_use": True}},
        ),
        (
            HookEvent.on_compaction("short", old_session_id="a", new_session_id="b", message_count=9, source="auto"),
            {
                "message": "short",
                "session_id": "b",
                "data": {"old_session_id": "a", "new_session_id": "b", "message_count": 9, "source": "auto"},
            },
        ),
        (HookEvent.on_session_start("s"), {"session_id": "s"}),
        (
            HookEvent.on_session_end("s", ({"role": "user", "content": "hi"},)),
            {"session_id": "s", "transcript": [{"role": "user", "content": "hi"}]},
        ),
        (HookEvent.on_session_end("s"), {"session_id": "s"}),
    ],
    ids=lambda value: str(value.kind) if isinstance(value, HookEvent) else "",
)
def test_each_kind_fills_its_own_members(event: HookEvent, filled: dict[str, Any]) -> None:
    assert {name: value for name, value in wire(event).items() if value is not None} == {"kind": event.kind, **filled}


def test_an_event_is_read_where_members_are_missing_or_unknown() -> None:
    event = msgspec.json.decode(b'{"kind":"on_session_start","session_id":"s","turn":1}', type=HookEvent)

    assert event == HookEvent.on_session_start("s")


# -- truncation


def test_an_output_of_32_kib_is_shown_unchanged() -> None:
    output = "é" * (16 * KIB)

    assert HookEvent.after_tool_call("bash", {}, output).tool_output == output


def test_of_a_longer_output_the_beginning_and_its_size_are_shown() -> None:
    shown = HookEvent.after_tool_call("bash", {}, "x" * (32 * KIB + 1)).tool_output

    assert shown == "x" * (32 * KIB) + "…[truncated, 32769 total bytes]"


@pytest.mark.parametrize("offset", range(4))
def test_no_character_is_cut_in_two(offset: int) -> None:
    text = "x" * offset + "\U0001f4a1" * 10

    shown = truncate_output(text, 20)

    whole = (20 - offset) // 4
    assert shown == f"{'x' * offset}{chr(0x1F4A1) * whole}…[truncated, {offset + 40} total bytes]"


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 40))
def test_shown_text_begins_the_output_and_has_a_limited_number_of_bytes(text: str, limit: int) -> None:
    shown = truncate_output(text, limit)

    if len(text.encode()) <= limit:
        assert shown == text
    else:
        note = f"…[truncated, {len(text.encode())} total bytes]"
        assert shown.endswith(note)
        beginning = shown.removesuffix(note)
        assert text.startswith(beginning)
        assert limit - 3 <= len(beginning.encode()) <= limit


def test_another_limit_may_be_set() -> None:
    event = HookEvent.after_tool_call("bash", {}, "x" * 11, limits=Limits(hook_output=10))

    assert event.tool_output == "x" * 10 + "…[truncated, 11 total bytes]"


# -- results


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        *[(kind, Continue()) for kind in HookKind],
        (BEFORE, Block("no")),
        (BEFORE, Confirm("really?")),
        (BEFORE, Modify({"command": "ls"})),
        (AFTER, Replace("3 files")),
        (HookKind.BEFORE_MESSAGE, Inject("context")),
        (HookKind.ON_SESSION_START, Inject("context")),
    ],
)
def test_a_hook_result_that_its_kind_allows_is_used_unchanged(kind: HookKind, result: HookResult) -> None:
    reading = decode_hook_result(msgspec.json.encode(result), kind, may_transform=True)

    assert reading.result == result
    assert reading.problem is None


RESULTS: list[HookResult] = [Continue(), Block("b"), Inject("i"), Confirm("c"), Modify({}), Replace("r")]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
@pytest.mark.parametrize("kind", HookKind)
def test_a_hook_result_that_its_kind_does_not_allow_is_ignored_and_reported(kind: HookKind, result: HookResult) -> None:
    reading = decode_hook_result(msgspec.json.encode(result), kind, may_transform=True)

    if isinstance(result, HOOKS[kind].actions):
        assert reading.result == result
    else:
        assert reading.result == Continue()
        assert reading.problem is not None
        assert kind in reading.problem
        assert type(result).__name__.lower() in reading.problem


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b'{"action":"block"}', "/reason"),
        (b'{"action":"block","reason":1}', "/reason"),
        (b'{"action":"allow"}', "/action"),
        (b"{}", "/"),
        (b"null", "/"),
        (b'"continue"', "/"),
        (b'[{"action":"modify"}]', "/"),
        (b"{", "not JSON"),
        (b'{"action":"block","reason":"\xff"}', "not JSON"),
    ],
)
def test_a_malformed_hook_result_continues_and_is_reported(raw: bytes, problem: str) -> None:
    reading = decode_hook_result(raw, BEFORE)

    assert reading.result == Continue()
    assert reading.problem is not None
    assert problem in reading.problem


@pytest.mark.parametrize("rest", ["", ',"input":null', ',"input":"ls"', ',"content":{}'])
def test_a_malformed_modify_blocks(rest: str) -> None:
    reading = decode_hook_result(f'{{"action":"modify"{rest}}}'.encode(), BEFORE)

    assert reading.result == Block("Extension returned malformed modify result")
    assert reading.result == Block(MALFORMED_MODIFY)
    assert reading.problem is not None
    assert "/input" in reading.problem


def test_a_malformed_modify_of_a_hook_that_cannot_block_continues() -> None:
    reading = decode_hook_result(b'{"action":"modify"}', HookKind.ON_SESSION_END)

    assert reading.result == Continue()
    assert reading.problem is not None
    assert "/input" in reading.problem
    assert "not allowed" in reading.problem


def test_an_output_is_replaced_only_with_the_permission_for_it() -> None:
    reading = decode_hook_result(msgspec.json.encode(Replace("x")), AFTER)

    assert reading.result == Continue()
    assert reading.problem is not None
    assert "tools.transform_output" in reading.problem


@pytest.mark.parametrize(("size", "is_taken"), [(8, True), (9, False)])
def test_an_output_is_replaced_by_so_many_bytes_at_most(size: int, is_taken: bool) -> None:
    replacement = Replace("é" * 4 + "x" * (size - 8))
    limits = Limits(hook_replacement=8)

    reading = decode_hook_result(msgspec.json.encode(replacement), AFTER, may_transform=True, limits=limits)

    assert reading.result == (replacement if is_taken else Continue())
    assert (reading.problem is None) is is_taken


@given(st.binary(max_size=64), st.sampled_from(HookKind))
def test_no_hook_result_raises(raw: bytes, kind: HookKind) -> None:
    assert isinstance(decode_hook_result(raw, kind).result, HOOKS[kind].actions)


# -- the table


def test_every_kind_has_a_rule_with_a_permission_that_exists_and_may_continue() -> None:
    assert set(HOOKS) == set(HookKind)
    assert all(rule.permission in PERMISSIONS and Continue in rule.actions for rule in HOOKS.values())


def test_a_hook_is_a_request_to_the_extension_with_a_timeout_of_five_seconds() -> None:
    assert (HOOK_HANDLE.name, HOOK_HANDLE.timeout) == ("hook.handle", 5.0)
    assert HOOK_HANDLE.direction == "to-extension"


# -- matching


LS = HookEvent.before_tool_call("notes_run", {"command": "ls", "n": 1}, runtime_name="notes:run")


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (HookMatch(), True),
        (HookMatch(tool="notes_run"), True),
        (HookMatch(tool="notes:run"), True),
        (HookMatch(tool="run"), False),
        (HookMatch(tool=""), False),
        (HookMatch(input_contains='"command":"ls"'), True),
        (HookMatch(input_contains='"command": "ls"'), False),
        (HookMatch(input_contains="LS"), False),
        (HookMatch(input_contains=""), True),
        (HookMatch(input_equals={"n": 1, "command": "ls"}), True),
        (HookMatch(input_equals={"command": "ls"}), False),
        (HookMatch(input_equals={"n": True, "command": "ls"}), False),
        (HookMatch(input_equals={"n": 1.0, "command": "ls"}), False),
        (HookMatch(tool="notes:run", input_contains="ls", input_equals={"n": 1, "command": "ls"}), True),
        (HookMatch(tool="bash", input_contains="ls"), False),
        (HookMatch(tool="notes:run", input_contains="rm"), False),
        (HookMatch(input_contains="ls", input_equals={}), False),
    ],
)
def test_an_event_matches_where_all_conditions_hold(match: HookMatch, expected: bool) -> None:
    assert match.matches(LS) is expected


def test_text_is_matched_literally_without_escapes() -> None:
    assert HookMatch(input_contains="größer").matches(HookEvent.before_tool_call("bash", {"a": "größer"}))


def test_an_event_without_an_input_has_null_there() -> None:
    event = HookEvent.before_message("hi")

    assert HookMatch(input_contains="null").matches(event)
    assert not HookMatch(input_contains="hi").matches(event)
    assert not HookMatch(tool="bash").matches(event)


def test_an_unknown_condition_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"input_matches":"rm.*"}', type=HookMatch)


@pytest.mark.parametrize("kind", HookKind)
def test_only_tool_hooks_take_a_tool(kind: HookKind) -> None:
    problem = find_hook_problem(kind, HookMatch(tool="bash"))

    assert find_hook_problem(kind) is None
    assert find_hook_problem(kind, HookMatch(input_contains="x")) is None
    assert problem is None if kind in (BEFORE, AFTER) else problem is not None and kind in problem


def test_the_error_for_an_unknown_hook_lists_the_known_ones() -> None:
    problem = find_hook_problem("on_usage")

    assert problem is not None
    assert "on_usage" in problem
    assert "before_tool_call" in problem
