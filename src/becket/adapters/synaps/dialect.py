"""Defines the synaps dialect: lenient framing, wire format, error codes and host defaults."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Final

from msgspec.structs import replace

from becket.dialects.dialect import make_dialect
from becket.dialects.host_defaults import HostDefaults
from becket.errors import ERROR_CODES, InvalidParams, Meaning, MethodNotFound, RpcError
from becket.framing.content_length import ContentLength
from becket.jsonrpc.wire_format import ErrorPrecedence, WireFormat

__all__ = ["SYNAPS", "encode_error", "find_meaning"]

# -- errors

INVALID_CODE = -32602  # invalid params, and missing permissions
FAILED_CODE = -32000  # a failed store; used here for all meanings without a code in SynapsCLI
NUMBERS: Final = {
    **dict.fromkeys(Meaning, FAILED_CODE),
    Meaning.UNKNOWN_METHOD: -32601,
    Meaning.INVALID_REQUEST: -32601,  # a request with the name of a notification: no such method
    Meaning.INVALID_PARAMS: INVALID_CODE,
    Meaning.PERMISSION_DENIED: INVALID_CODE,
}
DENIED_PREFIX = "permission denied"
MEANINGS: Final = {number: meaning for meaning, number in ERROR_CODES.items() if number < 0} | {
    FAILED_CODE: Meaning.INTERNAL
}


def encode_error(error: RpcError) -> RpcError:
    """Returns the error as SynapsCLI sends it: code and text, with only the first of several problems."""
    if isinstance(error, MethodNotFound):
        return RpcError(Meaning.UNKNOWN_METHOD, f"method not found: {error.method}")
    if isinstance(error, InvalidParams) and error.problems:
        return RpcError(Meaning.INVALID_PARAMS, error.problems[0][1])
    if error.meaning is None:  # a custom error code of a custom method
        return error
    return RpcError(error.meaning, error.message)


def find_meaning(code: int, message: str) -> Meaning | None:
    """Returns the meaning of an error; a denied permission is recognized by its text."""
    if code == INVALID_CODE and message.startswith(DENIED_PREFIX):
        return Meaning.PERMISSION_DENIED
    return MEANINGS.get(code)


HOST_WIRE_FORMAT: Final = WireFormat(
    id_is_last=True,
    has_null_params=True,
    error_precedence=ErrorPrecedence.ERROR_FIRST,
    unknown_error="unknown extension error",
    map_error=encode_error,
    classify_error=find_meaning,
)
EXTENSION_WIRE_FORMAT: Final = replace(HOST_WIRE_FORMAT, map_error=None)  # a host shows the whole text


# -- host defaults

CALL_TIMEOUT = 30.0  # seconds for all calls but tools and interactive ones; also for a whole stream

HOST_DEFAULTS: Final = HostDefaults(
    restart_limits={"handshake": 10.0},
    host_limits={
        "outbound_calls": 1,  # simple programs treat the next message as the response to their own call
        "call_timeout": CALL_TIMEOUT,
        "handshake": 120.0,  # SynapsCLI waits forever, and some programs download a model first
        # SynapsCLI kills one second after `shutdown`: half of it is for the response, and this is the other half.
        "stdin_grace": 0.4,
        "term_grace": 0.1,
    },
    timeouts={"complete": CALL_TIMEOUT, "idle": CALL_TIMEOUT, "total": CALL_TIMEOUT},
    restart={
        "most": 3,
        "window": inf,
        "delay": 0.25,
        "longest_delay": 5.0,
        "jitter": 0.0,
        "first_is_immediate": False,
    },
    inherited_variables=("PATH", "HOME", "LANG", "TERM", "XDG_RUNTIME_DIR"),
    config_variable_template="SYNAPS_EXTENSION_{id}_{key}",
    has_typed_config=False,
    keeps_ids_across_restarts=True,
    resends_hooks=True,
    sets_our_variables=False,
    writes_in_root=True,
)


SYNAPS: Final = make_dialect(
    "synaps",
    partial(ContentLength, strict=False),
    HOST_DEFAULTS,
    host_format=HOST_WIRE_FORMAT,
    extension_format=EXTENSION_WIRE_FORMAT,
    error_codes=NUMBERS,
    bad_json_is_fatal=True,
)
