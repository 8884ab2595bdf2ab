"""Defines the LSP dialect and the default limits of an LSP connection."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Final

from msgspec import Raw, Struct

from becket.dialects.dialect import Dialect, load_mapping, match_first_request
from becket.dialects.host_defaults import HostDefaults
from becket.errors import ERROR_CODES, Meaning
from becket.framing.content_length import ContentLength
from becket.jsonrpc.calls import CancellationFormat

__all__ = ["LSP", "LSP_LIMITS"]

SERVER_NOT_INITIALIZED: Final = -32002
MIB: Final = 1024 * 1024


class LspFirstParams(Struct, rename="camel"):
    capabilities: Raw
    process_id: Raw


class LspFirstRequest(Struct):
    method: str
    params: LspFirstParams


matches_first_frame = match_first_request(
    ContentLength, LspFirstRequest, lambda request: request.method == "initialize"
)

LSP: Final = Dialect(
    name="lsp",
    cancellation=CancellationFormat("$/cancelRequest"),
    error_codes=MappingProxyType({**ERROR_CODES, Meaning.NOT_READY: SERVER_NOT_INITIALIZED}),
    load_mapping=partial(load_mapping, "lsp"),
    matches_first_frame=matches_first_frame,
    host_defaults=HostDefaults(
        limits={
            "frame": 32 * MIB,
            "nodes": 2_000_000,  # the tokens of a large file are half a million numbers
            "send_queue": 128 * MIB,  # servers send all diagnostics of a project at once
            "inbound_requests": 4_096,  # editors send many requests at each key, and cancel the old ones
            "handshake": 60.0,  # some servers read a whole project before they respond
            "stdin_grace": 5.0,  # and write an index before they exit
        },
        eof_exit_codes=(0, 1),  # `exit`: "success code 0 if the shutdown request has been received before; otherwise 1"
    ),
)

LSP_LIMITS: Final = LSP.limits
