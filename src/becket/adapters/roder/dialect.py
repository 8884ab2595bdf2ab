"""Defines the Roder dialect: JSON Lines, wire format, detection and host defaults.

JSON-RPC 2.0, one message per line, ids from 1. Only the host sends requests; a request of an extension is ignored. A
line that is not a message is skipped without a response. A response with a member `error`, even null, is an error, of
which only the message is used.
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
    # Lines above 4 MiB are dropped, without a limit on their size and number.
    limits={"frame": 4 * 1024**2, "skipped_frames": 1_000_000, "skipped_bytes": GIB},
    host_limits={"handshake": 10.0, "call_timeout": 30.0, "stdin_grace": 0.1, "term_grace": 0.1},
    # Roder kills 2 s after `extension/shutdown`; the graces above are the last 0.2 s of these.
    # Roder does not bound turns and tasks; here they may be idle for as long as an agent may work.
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
