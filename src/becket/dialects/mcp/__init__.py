"""`mcp`: the Model Context Protocol over stdin and stdout, as a client speaks it and as a server does.

Here stands what it makes of the link. Its words are in the other files, and imported when they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.errors import Meaning
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.records import Cancelling, CancelRule
from becket.wire.json_lines import JsonLines

if TYPE_CHECKING:
    from becket.dialects.speech import Speech

__all__ = ["MCP"]

NUMBERS = {Meaning.TIMEOUT: -32001}  # as the protocol's own kits number it; what has no number there has ours


def lines(limits: Limits = DEFAULT_LIMITS) -> JsonLines:
    """Returns the framing: one message a line. Many programs write a greeting to their stdout, which is no message."""
    return JsonLines(limits, skip_stray=True)


def speech() -> Speech:
    from becket.dialects.mcp.speech import SPEECH

    return SPEECH


class Asked(Struct):
    """The first request of a client, as far as it tells the protocol."""

    method: str = ""
    params: Params | None = None


class Params(Struct, rename="camel"):
    protocol_version: str = ""


def recognises(frame: bytes, framing: type) -> bool:
    """Returns whether a client of MCP begins so."""
    try:
        asked = msgspec.json.decode(frame, type=Asked)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    is_greeting = asked.method == "initialize" and asked.params is not None and asked.params.protocol_version != ""
    return framing is JsonLines and (is_greeting or asked.method in FIRST)


FIRST = frozenset({"ping", "server/discover"})  # what may come before: the latter asks for what is spoken without it

HABITS = Habits(
    limits={"frame": 16 * 2**20},  # pictures come in base64
    host_limits={"handshake": 60.0},  # `npx` and `uvx` may have to fetch the program first
)

MCP = Dialect(
    name="mcp",
    framing=lines,
    answers_garbage=False,
    numbers=NUMBERS,
    cancelling=Cancelling(
        "notifications/cancelled", "requestId", CancelRule.NEVER_ANSWERED, never=frozenset({"initialize"})
    ),
    contract=speech,
    recognises=recognises,
    habits=HABITS,
)
