"""LSP on the wire: the base protocol. `$/progress` belongs to tokens in the params of requests, which are the business
of whoever makes the request: nothing of it is the link's.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, Struct

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.errors import NUMBERS, Meaning
from becket.rpc.records import Cancelling
from becket.wire.content_length import ContentLength

if TYPE_CHECKING:
    from becket.dialects.speech import Speech

__all__ = ["LSP"]

SERVER_NOT_INITIALIZED: Final = -32002
MIB: Final = 1024 * 1024


class Params(Struct, rename="camel"):
    capabilities: Raw
    process_id: Raw


class Opening(Struct):
    method: str
    params: Params


def recognises(frame: bytes, framing: type) -> bool:
    """Returns whether a program that begins like this is a client of language servers."""
    try:
        return framing is ContentLength and msgspec.json.decode(frame, type=Opening).method == "initialize"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def load_speech() -> Speech:
    from becket.dialects.lsp.speech import SPEECH

    return SPEECH


LSP: Final = Dialect(
    name="lsp",
    cancelling=Cancelling("$/cancelRequest"),
    numbers=MappingProxyType({**NUMBERS, Meaning.NOT_READY: SERVER_NOT_INITIALIZED}),
    contract=load_speech,
    recognises=recognises,
    habits=Habits(
        limits={
            "frame": 32 * MIB,
            "nodes": 2_000_000,  # the tokens of a large file are half a million numbers
            "send_queue": 128 * MIB,  # servers tell all that they find in a project at once, and wait for nothing
            "inbound_requests": 4_096,  # editors ask at each key for all that they show, and cancel what is old
            "handshake": 60.0,  # some servers read a whole project before they answer
            "stdin_grace": 5.0,  # and write what they know of it before they end
        },
        eof_exit_codes=(0, 1),  # `exit`: "success code 0 if the shutdown request has been received before; otherwise 1"
    ),
)
