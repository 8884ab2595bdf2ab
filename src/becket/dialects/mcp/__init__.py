"""`mcp`: the Model Context Protocol over stdin and stdout, as a client speaks it and as a server does.

Here stands what it makes of the link. Its words are in the other files, and imported when they are needed.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from becket.dialects.dialect import AskedProgress, Dialect, ProgressForm
from becket.dialects.habits import Habits
from becket.errors import Meaning
from becket.limits import DEFAULT_LIMITS, Limits
from becket.rpc.json_values import decode_json, encode_json
from becket.rpc.records import Cancelling
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

# -- progress


class WithMeta(Struct):
    meta: WithToken | None = msgspec.field(default=None, name="_meta")


class WithToken(Struct):
    token: int | str | None = msgspec.field(default=None, name="progressToken")


def write_token(params: bytes | None, token: bytes) -> bytes:
    """Returns the params of a request whose sender wants to hear of its progress."""
    members = decode_members(params or b"{}")
    meta = decode_members(members.get("_meta", b"{}"))
    meta["progressToken"] = Raw(token)
    members["_meta"] = Raw(encode_json(meta))
    return encode_json(members)


decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def read_token(params: Raw | None) -> bytes | None:
    """Returns the token under which the progress of a request is to be told; None where nobody wants to hear of it."""
    if params is None or b'"progressToken"' not in bytes(params):
        return None
    try:
        meta = msgspec.json.decode(params, type=WithMeta).meta
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if meta is None or meta.token is None else encode_json(meta.token)


def write_progress(token: bytes, value: object) -> bytes:
    """Returns what is told of a value: a number, a text, or the members of a `Progress`."""
    from becket.dialects.mcp.notices import progress_of

    return encode_json(progress_of(decode_json(token), value, GROWING))


GROWING = count(1)  # what is reported without a number must have one that grows

HABITS = Habits(
    limits={
        "frame": 16 * 2**20,  # pictures come in base64
        "nodes": 250_000,  # and tables as JSON
        "stray": 64 * 2**20,  # some servers write their log to stdout for as long as they run
        "stdin_grace": 5.0,  # the servers behind `npx` and `uvx` end slowly
    },
    host_limits={"handshake": 60.0},  # `npx` and `uvx` may have to fetch the program first
)

MCP = Dialect(
    name="mcp",
    framing=lines,
    answers_garbage=False,
    numbers=NUMBERS,
    cancelling=Cancelling("notifications/cancelled", "requestId", "never answered", never=frozenset({"initialize"})),
    progress=ProgressForm(
        "notifications/progress", "progressToken", asked=AskedProgress(write_token, read_token, write_progress)
    ),
    contract=speech,
    recognises=recognises,
    habits=HABITS,
)
