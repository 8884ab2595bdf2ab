"""nexo poller methods: ticks, cursors, failures and poller tools.

A host calls `POLL_TICK` when a job is due, with the cursor of the previous tick. An extension returns what it found, or
raises one of the errors here. The host owns the schedule, the cursors and the delivery of messages.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from becket.contract.json_narrowing import is_array
from becket.contract.tools import Tool
from becket.errors import JSON_ERRORS, Meaning, RemoteError, RpcError
from becket.methods.descriptors import Method

__all__ = [
    "POLL_LIST_TOOLS",
    "POLL_TICK",
    "POLL_TOOL_CALL",
    "BadJobConfig",
    "Delivery",
    "PermanentFailure",
    "PollFailure",
    "PollListToolsParams",
    "PollTickParams",
    "PollTickResult",
    "PollToolCallParams",
    "PollerTool",
    "TransientFailure",
    "classify_failure",
    "decode_cursor",
    "decode_poller_tools",
    "encode_cursor",
]

TRANSIENT_CODE: Final = -32001
PERMANENT_CODE: Final = -32002
CONFIG_CODE: Final = -32602

Count = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Seconds = Annotated[int, Meta(ge=0, le=2**63 - 1)]


# -- a tick


class PollTickParams(Struct, frozen=True):
    """A job of this kind is due. `cursor` is that of the previous tick, `now` an RFC 3339 time."""

    kind: str
    job_id: str
    agent_id: str
    cursor: str | None
    config: Any
    now: str


class Delivery(Struct, frozen=True):
    """A message to deliver."""

    channel: str
    recipient: str
    payload: Any


class PollTickResult(Struct, frozen=True):
    """Result of a tick. A null cursor clears the host's cursor; a null interval restores the host's own."""

    items_seen: Count = 0
    items_dispatched: Count = 0
    deliver: tuple[Delivery, ...] = ()
    next_cursor: str | None = None
    next_interval_secs: Seconds | None = None


POLL_TICK: Final = Method(
    "poll_tick", PollTickParams, PollTickResult, direction="to-extension", summary="Polls for new items."
)


def encode_cursor(cursor: bytes) -> str:
    """Returns a cursor as unpadded URL-safe base64."""
    return urlsafe_b64encode(cursor).rstrip(b"=").decode()


def decode_cursor(cursor: str | None) -> bytes | None:
    """Returns the bytes of a cursor, padded or not; None for a missing or invalid one."""
    if cursor is None:
        return None
    text = cursor.rstrip("=")
    try:
        return urlsafe_b64decode((text + "=" * (-len(text) % 4)).encode("ascii"))
    except (BadBase64, UnicodeEncodeError):
        return None


# -- failures


class PollFailure(Enum):
    """Kinds of failures of a tick."""

    TRANSIENT = "try again later"
    PERMANENT = "do not retry before an operator has looked at it"
    CONFIG = "the job's configuration is wrong"


class TransientFailure(RpcError):
    """Raised by a poller if the next tick may succeed."""

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(TRANSIENT_CODE, message, data)


class PermanentFailure(RpcError):
    """Raised by a poller if ticks fail until the user intervenes."""

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(PERMANENT_CODE, message, data)


class BadJobConfig(RpcError):
    """Raised by a poller if the configuration of the job is invalid."""

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(Meaning.INVALID_PARAMS, message, data)


FAILURES_BY_CODE: Final = {PERMANENT_CODE: PollFailure.PERMANENT, CONFIG_CODE: PollFailure.CONFIG}


def classify_failure(error: BaseException) -> PollFailure:
    """Returns the kind of a failed tick by its error code; transient for all other errors."""
    if not isinstance(error, RemoteError):
        return PollFailure.TRANSIENT
    return FAILURES_BY_CODE.get(error.code, PollFailure.TRANSIENT)


# -- tools of a poller


class PollListToolsParams(Struct, frozen=True):
    """Names a kind of poller."""

    kind: str


class PollerTool(Struct, frozen=True):
    """A tool that comes with a kind of poller."""

    name: str
    description: str = ""
    parameters: Any = field(default_factory=dict[str, Any])


class PollToolCallParams(Struct, frozen=True):
    """Params of `poll_tool_call`."""

    kind: str
    tool_name: str
    args: Any = None


POLL_LIST_TOOLS: Final[Method[PollListToolsParams, Raw]] = Method(
    "poll_list_tools",
    PollListToolsParams,
    Raw,
    direction="to-extension",
    summary="Lists the tools of a kind of poller; `decode_poller_tools` decodes the result.",
)
POLL_TOOL_CALL: Final[Method[PollToolCallParams, Any]] = Method(
    "poll_tool_call", PollToolCallParams, Any, direction="to-extension", summary="Runs a tool of a poller."
)


def decode_poller_tools(response: Raw | bytes) -> tuple[Tool, ...]:
    """Returns the tools of a poller; ignores invalid entries, and anything that is not a list."""
    try:
        entries: object = msgspec.json.decode(response)
    except JSON_ERRORS:
        return ()
    found: list[Tool] = []
    for entry in entries if is_array(entries) else ():
        try:
            tool = msgspec.convert(entry, PollerTool)
        except msgspec.ValidationError:
            continue
        found.append(Tool(tool.name, tool.description, tool.parameters))
    return tuple(found)
