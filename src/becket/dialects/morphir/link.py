"""The link of Morphir: JSON Lines, an id and a method, a result or a text that says what went wrong."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from becket.contract.shapes import is_object
from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.dialects.speech import Speech
from becket.errors import Meaning, RpcError
from becket.rpc.spelling import Answers, Spelling, nobody, unsigned
from becket.wire.json_lines import JsonLines

__all__ = ["MORPHIR"]

MIB = 1024 * 1024
UNKNOWN = ("unknown method", "method not found")  # what programs begin to say then, in any case


def say_error(error: RpcError) -> RpcError:
    """Returns the error in the words that extensions of Morphir use. All that is told is its text: what leads to the
    log stands in it."""
    if error.meaning is Meaning.UNKNOWN_METHOD:
        return RpcError(Meaning.UNKNOWN_METHOD, error.message[:1].upper() + error.message[1:])
    if is_object(error.data) and "incident" in error.data:
        return RpcError(Meaning.INTERNAL, f"{error.message}, incident {error.data['incident']}")
    return error


def mean(code: int, message: str) -> Meaning | None:
    """Returns what an error means that is nothing but a text."""
    return Meaning.UNKNOWN_METHOD if message.lower().startswith(UNKNOWN) else None


HOST_SPELLING = Spelling(
    has_version=False,
    writes_null_params=True,
    first_id=0,
    hears=nobody,
    answers=Answers.ERROR_UNLESS_NULL,
    error_is_text=True,
    any_params=True,
    say_error=say_error,
    mean=mean,
)
EXTENSION_SPELLING = replace(HOST_SPELLING, hears=unsigned)


def load_speech() -> Speech:
    from becket.dialects.morphir.speech import SPEECH

    return SPEECH


class Opening(Struct):
    """The first line of a host, as far as it tells the dialect."""

    id: int
    method: str
    jsonrpc: Raw | UnsetType = UNSET


read_opening = msgspec.json.Decoder(Opening).decode


def recognises(frame: bytes, framing: type) -> bool:
    """Tells a host by what its requests lack: the version that all others have."""
    try:
        return framing is JsonLines and read_opening(frame).jsonrpc is UNSET
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


MORPHIR = Dialect(
    name="morphir",
    framing=JsonLines,
    spelling=HOST_SPELLING,
    extension_spelling=EXTENSION_SPELLING,
    answers_garbage=False,
    skips_oversize=False,
    contract=load_speech,
    recognises=recognises,
    habits=Habits(
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
        inherited="all",
        works_in_root=False,
        duplicates="last",
        writes_in_root=True,
    ),
)
