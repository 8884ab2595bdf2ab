"""Defines the Roder dialect: JSON Lines, wire format, detection and host defaults.

JSON-RPC 2.0, one message a line, ids from 1. Only the host asks; what an extension sends under an id with a method is
no request, and answers nothing. A line that is no message is passed over and never answered. An answer with a member
`error`, even null, is an error, of which only the message counts.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from becket.dialects.dialect import make_dialect, match_first_request
from becket.dialects.host_defaults import HostDefaults
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.wire_format import ErrorPrecedence, WireFormat, accepts_no_id

__all__ = ["RODER"]

EXTENSION_WIRE_FORMAT: Final = WireFormat(
    error_precedence=ErrorPrecedence.ERROR_FIRST, unknown_error="unknown process extension error"
)
HOST_WIRE_FORMAT: Final = replace(EXTENSION_WIRE_FORMAT, accepts_id=accepts_no_id)
GIB: Final = 1024**3

HOST_DEFAULTS: Final = HostDefaults(
    # A line beyond 4 MiB is dropped, however long and however often; nothing of it is kept.
    limits={"frame": 4 * 1024**2, "skipped_frames": 1_000_000, "skipped_bytes": GIB},
    host_limits={"handshake": 10.0, "call_timeout": 30.0, "stdin_grace": 0.1, "term_grace": 0.1},
    # Its own hosts kill 2 s after `extension/shutdown`: of these the last 0.2 are the graces above.
    # Answers of models and tasks are not bounded there; here they may be silent for as long as an agent may work.
    timeouts={"tool": 30.0, "complete": 1800.0, "idle": 1800.0, "info": 30.0, "shutdown": 1.8},
    restart={"strategy": "never"},
    inherited_variables=("PATH",),
    runs_in_root=False,
    writes_in_root=True,
    starts_on_demand=True,
    duplicates="first, others are errors",  # "is already installed"
)


class RoderFirstRequest(Struct):
    method: str


RODER: Final = make_dialect(
    "roder",
    JsonLines,
    HOST_DEFAULTS,
    host_format=HOST_WIRE_FORMAT,
    extension_format=EXTENSION_WIRE_FORMAT,
    matches_first_frame=match_first_request(
        JsonLines, RoderFirstRequest, lambda request: request.method == "extension/initialize"
    ),
)
