"""Defines the LSP dialect: Content-Length framing, cancellation, error codes and host defaults."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, Struct

from becket.dialects.dialect import Dialect
from becket.dialects.host_defaults import HostDefaults
from becket.errors import ERROR_CODES, JSON_ERRORS, Meaning
from becket.framing.content_length import ContentLength
from becket.jsonrpc.connection import CancellationFormat

if TYPE_CHECKING:
    from becket.dialects.mapping import ContractMapping

__all__ = ["LSP"]

SERVER_NOT_INITIALIZED: Final = -32002
MIB: Final = 1024 * 1024


class LspFirstParams(Struct, rename="camel"):
    capabilities: Raw
    process_id: Raw


class LspFirstRequest(Struct):
    method: str
    params: LspFirstParams


def matches_first_frame(frame: bytes, framing: type) -> bool:
    """Returns whether a program that begins like this is a client of language servers."""
    try:
        return framing is ContentLength and msgspec.json.decode(frame, type=LspFirstRequest).method == "initialize"
    except JSON_ERRORS:
        return False


def load_mapping() -> ContractMapping:
    from becket.adapters.lsp.mapping import MAPPING

    return MAPPING


LSP: Final = Dialect(
    name="lsp",
    cancellation=CancellationFormat("$/cancelRequest"),
    error_codes=MappingProxyType({**ERROR_CODES, Meaning.NOT_READY: SERVER_NOT_INITIALIZED}),
    load_mapping=load_mapping,
    matches_first_frame=matches_first_frame,
    host_defaults=HostDefaults(
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
