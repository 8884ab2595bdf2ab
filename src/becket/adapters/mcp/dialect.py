"""Defines the MCP dialect: JSON Lines framing, cancellation, progress tokens and host defaults.

Messages and mapping are in the other files, and imported when they are needed.
"""

from __future__ import annotations

from functools import partial
from itertools import count

import msgspec
from msgspec import Raw, Struct

from becket.dialects.dialect import (
    Dialect,
    ProgressFormat,
    ProgressTokenCodec,
    load_host_support,
    load_mapping,
    match_first_request,
)
from becket.dialects.host_defaults import HostDefaults
from becket.errors import JSON_ERRORS, Meaning
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.calls import CancellationFormat
from becket.jsonrpc.json_values import decode_json, encode_json
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = ["MCP"]

ERROR_CODES = {Meaning.TIMEOUT: -32001}  # as in the official SDKs; meanings without a code there use ours


def build_framing(limits: Limits = DEFAULT_LIMITS) -> JsonLines:
    """Returns JSON Lines framing that skips stray text: many programs print a banner to stdout."""
    return JsonLines(limits, skip_stray=True)


class McpFirstRequest(Struct):
    """The members of a client's first request that identify the protocol."""

    method: str = ""
    params: McpFirstParams | None = None


class McpFirstParams(Struct, rename="camel"):
    protocol_version: str = ""


# Allowed before the handshake; `server/discover` is for protocols without a handshake.
METHODS_BEFORE_INITIALIZE = frozenset({"ping", "server/discover"})


def is_first_request(request: McpFirstRequest) -> bool:
    version = "" if request.params is None else request.params.protocol_version
    return request.method in METHODS_BEFORE_INITIALIZE or (request.method == "initialize" and version != "")


matches_first_frame = match_first_request(JsonLines, McpFirstRequest, is_first_request)


# -- progress


class ProgressTokenParams(Struct):
    meta: ProgressTokenMeta | None = msgspec.field(default=None, name="_meta")


class ProgressTokenMeta(Struct):
    token: int | str | None = msgspec.field(default=None, name="progressToken")


def insert_progress_token(params: bytes | None, token: bytes) -> bytes:
    """Returns params with a progress token added."""
    members = decode_members(params or b"{}")
    meta = decode_members(members.get("_meta", b"{}"))
    meta["progressToken"] = Raw(token)
    members["_meta"] = Raw(encode_json(meta))
    return encode_json(members)


decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def extract_progress_token(params: Raw | None) -> bytes | None:
    """Returns the progress token of a request, or None."""
    if params is None or b'"progressToken"' not in bytes(params):
        return None
    try:
        meta = msgspec.json.decode(params, type=ProgressTokenParams).meta
    except JSON_ERRORS:
        return None
    return None if meta is None or meta.token is None else encode_json(meta.token)


def encode_progress_params(token: bytes, value: object) -> bytes:
    """Returns the params of a progress notification for a number, a text, or the members of a `Progress`."""
    from becket.adapters.mcp.messages.notifications import build_progress

    return encode_json(build_progress(decode_json(token), value, PROGRESS_COUNTER))


PROGRESS_COUNTER = count(1)  # for reports without a number: progress must increase

HOST_DEFAULTS = HostDefaults(
    limits={
        "frame": 16 * 2**20,  # images are base64
        "nodes": 250_000,  # tables are JSON
        "stray": 64 * 2**20,  # some servers log to stdout all the time
        "stdin_grace": 5.0,  # servers behind `npx` and `uvx` exit slowly
    },
    host_limits={"handshake": 60.0},  # `npx` and `uvx` may have to fetch the program first
)

MCP = Dialect(
    name="mcp",
    framing=build_framing,
    responds_to_invalid=False,
    error_codes=ERROR_CODES,
    cancellation=CancellationFormat(
        "notifications/cancelled", "requestId", "never sent", excluded_methods=frozenset({"initialize"})
    ),
    progress=ProgressFormat(
        "notifications/progress",
        "progressToken",
        token_codec=ProgressTokenCodec(insert_progress_token, extract_progress_token, encode_progress_params),
    ),
    load_mapping=partial(load_mapping, "mcp"),
    load_host_support=partial(load_host_support, "mcp", "hosted_servers"),
    matches_first_frame=matches_first_frame,
    host_defaults=HOST_DEFAULTS,
)
