"""Hooks: kinds, events, results, and the fail-open decoding of a result.

A hook fails open: a result that is malformed, or that its kind does not allow, counts as `continue`, and the problem
is returned beside it. The one exception is a malformed `modify`: the tool must not run with the input that the hook
meant to change. Calling the extensions in order is the host's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from becket._deprecated import keep_renamed
from becket._text import truncate_bytes
from becket.errors import JSON_ERRORS
from becket.limits import DEFAULT_LIMITS, Limits
from becket.methods.descriptors import Method

__all__ = [
    "HOOKS",
    "HOOK_HANDLE",
    "MALFORMED_MODIFY",
    "Block",
    "Confirm",
    "Continue",
    "EncodedInput",
    "HookEvent",
    "HookKind",
    "HookMatch",
    "HookOutcome",
    "HookResult",
    "HookRule",
    "HookSubscription",
    "Inject",
    "Modify",
    "Replace",
    "decode_hook_result",
    "find_hook_problem",
    "truncate_output",
]

HANDLE_TIMEOUT = 5.0  # a person waits for the tool or the message
MALFORMED_MODIFY = "Extension returned malformed modify result"
TRANSFORM_PERMISSION = "tools.transform_output"


class HookKind(StrEnum):
    """What the host is about to do, or has done."""

    BEFORE_TOOL_CALL = "before_tool_call"
    AFTER_TOOL_CALL = "after_tool_call"
    BEFORE_MESSAGE = "before_message"
    ON_MESSAGE_COMPLETE = "on_message_complete"
    ON_COMPACTION = "on_compaction"
    ON_SESSION_START = "on_session_start"
    ON_SESSION_END = "on_session_end"


class HookEvent(Struct, frozen=True):
    """What happened or is about to happen. All nine members are sent each time, null where they do not apply."""

    kind: HookKind
    tool_name: str | None = None
    tool_runtime_name: str | None = None
    tool_input: Any = None
    tool_output: str | None = None
    message: str | None = None
    session_id: str | None = None
    transcript: tuple[Any, ...] | None = None
    data: Any = None

    @classmethod
    def before_tool_call(cls, name: str, input: Any, *, runtime_name: str | None = None) -> HookEvent:
        """Returns the event before a tool runs; `runtime_name` defaults to the API name."""
        return cls(HookKind.BEFORE_TOOL_CALL, name, runtime_name or name, input)

    @classmethod
    def after_tool_call(
        cls, name: str, input: Any, output: str, *, runtime_name: str | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> HookEvent:
        """Returns the event after a tool has run, with its output truncated to the limit for hooks."""
        shown = truncate_output(output, limits.hook_output)
        return cls(HookKind.AFTER_TOOL_CALL, name, runtime_name or name, input, shown)

    @classmethod
    def before_message(cls, message: str) -> HookEvent:
        """Returns the event before the user's last message is sent to a model."""
        return cls(HookKind.BEFORE_MESSAGE, message=message)

    @classmethod
    def on_message_complete(cls, message: str, *, content_block_count: int, has_tool_use: bool) -> HookEvent:
        """Returns the event after a model has responded."""
        data = {"content_block_count": content_block_count, "has_tool_use": has_tool_use}
        return cls(HookKind.ON_MESSAGE_COMPLETE, message=message, data=data)

    @classmethod
    def on_compaction(
        cls, summary: str, *, old_session_id: str, new_session_id: str, message_count: int, source: str
    ) -> HookEvent:
        """Returns the event after a conversation was replaced by its summary in a new session."""
        data = {
            "old_session_id": old_session_id,
            "new_session_id": new_session_id,
            "message_count": message_count,
            "source": source,
        }
        return cls(HookKind.ON_COMPACTION, message=summary, session_id=new_session_id, data=data)

    @classmethod
    def on_session_start(cls, session_id: str) -> HookEvent:
        """Returns the event of a new session."""
        return cls(HookKind.ON_SESSION_START, session_id=session_id)

    @classmethod
    def on_session_end(cls, session_id: str, transcript: tuple[Any, ...] | None = None) -> HookEvent:
        """Returns the event of a session that has ended, with its messages where they are recorded."""
        return cls(HookKind.ON_SESSION_END, session_id=session_id, transcript=transcript)


# -- results


class Continue(Struct, frozen=True, tag_field="action", tag="continue"):
    """Go on unchanged."""


class Block(Struct, frozen=True, tag_field="action", tag="block"):
    """Do not run the tool. The reason is shown."""

    reason: str


class Inject(Struct, frozen=True, tag_field="action", tag="inject"):
    """Add this text to the model's context, attributed to the extension and not to the user."""

    content: str


class Confirm(Struct, frozen=True, tag_field="action", tag="confirm"):
    """Prompts the user first; without a prompt it is a block."""

    message: str


class Modify(Struct, frozen=True, tag_field="action", tag="modify"):
    """Run the tool with this input instead. From a synaps program it may be any JSON value."""

    input: dict[str, Any]


class Replace(Struct, frozen=True, tag_field="action", tag="replace"):
    """Show the model this output instead; needs `tools.transform_output` besides the hook's permission."""

    output: str


HookResult: TypeAlias = Continue | Block | Inject | Confirm | Modify | Replace


class HookRule(Struct, frozen=True):
    """The permission that a kind of hook needs, and the results that it allows."""

    permission: str
    takes_tool_filter: bool
    actions: tuple[type[HookResult], ...]

    @property
    def can_hold_back(self) -> bool:
        """Whether a hook of this kind can prevent an action or change its result."""
        return Block in self.actions or Replace in self.actions


HOOKS: Final[Mapping[HookKind, HookRule]] = MappingProxyType(
    {
        HookKind.BEFORE_TOOL_CALL: HookRule("tools.intercept", True, (Continue, Block, Confirm, Modify)),
        HookKind.AFTER_TOOL_CALL: HookRule("tools.intercept", True, (Continue, Replace)),
        HookKind.BEFORE_MESSAGE: HookRule("privacy.llm_content", False, (Continue, Block, Inject)),
        HookKind.ON_MESSAGE_COMPLETE: HookRule("privacy.llm_content", False, (Continue,)),
        HookKind.ON_COMPACTION: HookRule("privacy.llm_content", False, (Continue,)),
        HookKind.ON_SESSION_START: HookRule("session.lifecycle", False, (Continue, Inject)),
        HookKind.ON_SESSION_END: HookRule("session.lifecycle", False, (Continue,)),
    }
)


HOOK_HANDLE: Final[Method[HookEvent, HookResult]] = Method(
    "hook.handle",
    HookEvent,
    HookResult,
    timeout=HANDLE_TIMEOUT,
    direction="to-extension",
    summary="Consults an extension about something that the host is about to do or has done.",
)


# -- decoding a result


class HookOutcome(Struct, frozen=True):
    """The result of a hook, and its problem where there was one.

    `timed_out`: no response in time. `is_lost`: the connection ended first. `crash` is why the event was sent a
    second time, if it was; the result is then that of the second time."""

    result: HookResult
    problem: str | None = None
    timed_out: bool = False
    is_lost: bool = False
    crash: str | None = None


def decode_hook_result(
    raw: Raw | bytes, kind: HookKind, *, may_transform: bool = False, limits: Limits = DEFAULT_LIMITS
) -> HookOutcome:
    """Decodes the result of a hook of this kind; never raises.

    `may_transform` is whether the extension holds `tools.transform_output`."""
    return judge_reading(decode_any_result(raw), kind, may_transform=may_transform, limits=limits)


def judge_reading(
    reading: HookOutcome, kind: HookKind, *, may_transform: bool = False, limits: Limits = DEFAULT_LIMITS
) -> HookOutcome:
    """Returns `reading`, or `continue` with a problem where this hook does not allow the result."""
    problem = find_result_problem(reading.result, kind, may_transform, limits)
    if problem is None:
        return reading
    return HookOutcome(Continue(), problem if reading.problem is None else f"{reading.problem}; {problem}")


RESULT_DECODER = msgspec.json.Decoder(HookResult)


def decode_any_result(raw: Raw | bytes, *, any_input: bool = False) -> HookOutcome:
    """Decodes a result of any hook; with `any_input` the input of a `modify` need not be an object."""
    try:
        return HookOutcome(RESULT_DECODER.decode(raw))
    except JSON_ERRORS as error:
        return build_fail_open(raw, error, any_input)


def build_fail_open(raw: Raw | bytes, error: Exception, any_input: bool) -> HookOutcome:
    from becket.conversion.problems import find_problems, to_problem

    try:
        value: Any = msgspec.json.decode(raw)
    except JSON_ERRORS:
        return HookOutcome(Continue(), f"the hook's result is not JSON: {error}")
    if any_input and is_modify(value) and "input" in value:
        return HookOutcome(Modify(value["input"]))
    problems = find_problems(value, HookResult) or [to_problem(error)]
    text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems)
    result = Block(MALFORMED_MODIFY) if is_modify(value) else Continue()
    return HookOutcome(result, f"malformed hook result: {text}")


def is_modify(value: Any) -> bool:
    match value:
        case {"action": "modify"}:
            return True
        case _:
            return False


def find_result_problem(result: HookResult, kind: HookKind, may_transform: bool, limits: Limits) -> str | None:
    if not isinstance(result, HOOKS[kind].actions):
        return f"`{result.__struct_config__.tag}` is not allowed for {kind}: ignored"
    if isinstance(result, Replace):
        if not may_transform:
            return f"`replace` needs {TRANSFORM_PERMISSION}: ignored"
        size = len(result.output.encode())
        if size > limits.hook_replacement:
            return f"`replace` with {size} bytes, the limit is {limits.hook_replacement}: ignored"
    return None


def truncate_output(output: str, limit: int = DEFAULT_LIMITS.hook_output) -> str:
    """Returns an output of at most `limit` bytes unchanged, and of a longer one the beginning and its total size."""
    size = len(output.encode())
    if size <= limit:
        return output
    return f"{truncate_bytes(output, limit)}…[truncated, {size} total bytes]"


# -- subscriptions


class HookMatch(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Selects events of a kind: all conditions must hold; without conditions every event matches.

    `tool` is an API name or a runtime name. `input_contains` searches the compact JSON text of the input;
    `input_equals` compares whole JSON values, where 1, 1.0 and true differ."""

    tool: str | None = None
    input_contains: str | None = None
    input_equals: Any = None

    def matches(self, event: HookEvent, encoded: EncodedInput | None = None) -> bool:
        """Returns whether all conditions hold for this event. Pass `encoded` to share the encoded input between
        matches."""
        if self.tool is not None and self.tool not in (event.tool_name, event.tool_runtime_name):
            return False
        encoded = EncodedInput(event.tool_input) if encoded is None else encoded
        if self.input_contains is not None and not encoded.contains(self.input_contains):
            return False
        return self.input_equals is None or canonical_json(self.input_equals) == encoded.canonical


class EncodedInput:
    """The input of one event as JSON, encoded at first use. Each search is cached."""

    def __init__(self, input: Any) -> None:
        self._input = input
        self._found: dict[str, bool] = {}

    @cached_property
    def text(self) -> bytes:
        """The compact JSON text, in UTF-8."""
        return msgspec.json.encode(self._input)

    @cached_property
    def canonical(self) -> bytes:
        """The canonical JSON text, the same for equal inputs."""
        return canonical_json(self._input)

    def contains(self, text: str) -> bool:
        """Returns whether the compact JSON text contains this text."""
        if text not in self._found:
            self._found[text] = text.encode("utf-8", "surrogatepass") in self.text
        return self._found[text]


def canonical_json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


class HookSubscription(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A kind of event that an extension handles, and a filter; without `match` all events of the kind."""

    hook: HookKind
    match: HookMatch | None = None


def find_hook_problem(hook: str, match: HookMatch | None = None, *, required: bool = False) -> str | None:
    """Returns why no subscription to this hook with this match is possible, or None."""
    if hook not in HOOKS:
        return f"unknown hook `{hook}`, there are: {', '.join(HOOKS)}"
    rule = HOOKS[HookKind(hook)]
    if match is not None and match.tool is not None and not rule.takes_tool_filter:
        return f"hook `{hook}` does not allow a tool filter"
    if required and not rule.can_hold_back:
        return f"hook `{hook}` cannot be required: it cannot prevent anything"
    return None


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"HookReading": "HookOutcome", "read_hook_result": "decode_hook_result"})
