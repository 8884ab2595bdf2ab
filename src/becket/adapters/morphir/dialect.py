"""Defines the Morphir dialect: JSON Lines without a version, errors as text, and host defaults."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from becket.contract.json_narrowing import is_object
from becket.dialects.dialect import Dialect
from becket.dialects.host_defaults import HostDefaults
from becket.dialects.mapping import ContractMapping
from becket.errors import JSON_ERRORS, Meaning, RpcError
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.wire_format import ErrorPrecedence, WireFormat, accepts_no_id, is_unsigned_id

__all__ = ["MORPHIR"]

MIB = 1024 * 1024
UNKNOWN_METHOD_PREFIXES = ("unknown method", "method not found")  # what programs begin to say then, in any case


def encode_error(error: RpcError) -> RpcError:
    """Returns the error in the words that extensions of Morphir use. All that is told is its text: what leads to the
    log stands in it."""
    if error.meaning is Meaning.UNKNOWN_METHOD:
        return RpcError(Meaning.UNKNOWN_METHOD, error.message[:1].upper() + error.message[1:])
    if is_object(error.data) and "incident" in error.data:
        return RpcError(Meaning.INTERNAL, f"{error.message}, incident {error.data['incident']}")
    return error


def find_meaning(code: int, message: str) -> Meaning | None:
    """Returns what an error means that is nothing but a text."""
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


def load_mapping() -> ContractMapping:
    from becket.adapters.morphir.mapping import MAPPING

    return MAPPING


class MorphirFirstRequest(Struct):
    """The first line of a host, as far as it tells the dialect."""

    id: int
    method: str
    jsonrpc: Raw | UnsetType = UNSET


decode_first_request = msgspec.json.Decoder(MorphirFirstRequest).decode


def matches_first_frame(frame: bytes, framing: type) -> bool:
    """Tells a host by what its requests lack: the version that all others have."""
    try:
        return framing is JsonLines and decode_first_request(frame).jsonrpc is UNSET
    except JSON_ERRORS:
        return False


MORPHIR = Dialect(
    name="morphir",
    framing=JsonLines,
    wire_format=HOST_WIRE_FORMAT,
    extension_wire_format=EXTENSION_WIRE_FORMAT,
    responds_to_invalid=False,
    skips_oversize=False,
    load_mapping=load_mapping,
    matches_first_frame=matches_first_frame,
    host_defaults=HostDefaults(
        # Models of whole programs travel here, and no limit is known: these are read in a tenth of a second. A longer
        # line is dropped as it comes, however long and however often.
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
    ),
)
