"""Defines the Morphir dialect: JSON Lines without a version, errors as text, and host defaults."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from becket.contract.json_narrowing import is_object
from becket.dialects.dialect import make_dialect, match_first_request
from becket.dialects.host_defaults import HostDefaults
from becket.errors import Meaning, RpcError
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.wire_format import ErrorPrecedence, WireFormat, accepts_no_id, is_unsigned_id

__all__ = ["MORPHIR"]

MIB = 1024 * 1024
UNKNOWN_METHOD_PREFIXES = ("unknown method", "method not found")  # of error messages, in any case


def encode_error(error: RpcError) -> RpcError:
    """Returns the error as Morphir extensions send it: only a text, which includes the incident id."""
    if error.meaning is Meaning.UNKNOWN_METHOD:
        return RpcError(Meaning.UNKNOWN_METHOD, error.message[:1].upper() + error.message[1:])
    if is_object(error.data) and "incident" in error.data:
        return RpcError(Meaning.INTERNAL, f"{error.message}, incident {error.data['incident']}")
    return error


def find_meaning(code: int, message: str) -> Meaning | None:
    """Returns the meaning of an error that is only a text."""
    return Meaning.UNKNOWN_METHOD if message.lower().startswith(UNKNOWN_METHOD_PREFIXES) else None


HOST_WIRE_FORMAT = WireFormat(
    has_version=False,
    has_null_params=True,
    first_id=0,
    accepts_id=accepts_no_id,
    error_precedence=ErrorPrecedence.ERROR_UNLESS_NULL,
    is_error_text=True,
    has_scalar_params=True,
    map_error=encode_error,
    classify_error=find_meaning,
)
EXTENSION_WIRE_FORMAT = replace(HOST_WIRE_FORMAT, accepts_id=is_unsigned_id)


class MorphirFirstRequest(Struct):
    """The members of a host's first line that identify the dialect."""

    id: int
    method: str
    jsonrpc: Raw | UnsetType = UNSET


HOST_DEFAULTS = HostDefaults(
    # Messages can be models of whole programs, and Morphir has no limit; these are decoded in 0.1 s. Longer lines are
    # dropped, without a limit on their size and number.
    limits={
        "frame": 16 * MIB,
        "nodes": 500_000,
        "depth": 128,
        "skipped_frames": 1_000_000,
        "skipped_bytes": 1024 * MIB,
    },
    host_limits={"handshake": 30.0, "call_timeout": 30.0, "outbound_calls": 32},
    timeouts={"tool": 30.0, "info": 30.0},
    restart={"strategy": "never", "first_is_immediate": False},
    inherited_environment="all",
    runs_in_root=False,
    duplicates="last",
    writes_in_root=True,
)

MORPHIR = make_dialect(
    "morphir",
    JsonLines,
    HOST_DEFAULTS,
    host_format=HOST_WIRE_FORMAT,
    extension_format=EXTENSION_WIRE_FORMAT,
    # unlike all other dialects, its requests have no version
    matches_first_frame=match_first_request(JsonLines, MorphirFirstRequest, lambda request: request.jsonrpc is UNSET),
)
