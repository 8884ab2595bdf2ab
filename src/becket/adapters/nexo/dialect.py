"""Defines the nexo dialect: JSON Lines, id rules, and host defaults with environment variables.

JSON-RPC 2.0, one message per line. The host's ids are 0, 1, 2, and so on. The ids of an extension's requests are
strings that begin with `app:`; messages with other ids are not requests. A line that is no message is skipped without
a response. A response with a result that is not null is a success, even if it also has an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from becket.adapters.nexo.admin import NOT_GRANTED_CODE, encode_error
from becket.dialects.dialect import make_dialect, match_first_request
from becket.dialects.host_defaults import EnvironmentContext, HostDefaults
from becket.errors import ERROR_CODES, Meaning
from becket.framing.json_lines import JsonLines
from becket.jsonrpc.wire_format import ErrorPrecedence, WireFormat

__all__ = ["NEXO", "build_variables", "is_admin_id"]

ADMIN_ID_PREFIX: Final = b'"app:'
STATE_ROOT: Final = "NEXO_EXTENSION_STATE_ROOT"


def is_admin_id(id: bytes) -> bool:
    """Returns whether this is the id of an extension's request."""
    return id.startswith(ADMIN_ID_PREFIX)


HOST_WIRE_FORMAT: Final = WireFormat(
    id_is_last=True,
    first_id=0,
    fixed_ids={"shutdown": 0},
    accepts_id=is_admin_id,
    error_precedence=ErrorPrecedence.RESULT_FIRST,
    map_error=encode_error,
)
EXTENSION_WIRE_FORMAT: Final = WireFormat(id_prefix="app:", error_precedence=ErrorPrecedence.RESULT_FIRST)


# -- host defaults


def build_variables(context: EnvironmentContext) -> Mapping[str, str]:
    """Returns the variables that a host sets for a program: version, id and state folder.

    The state folder is in `NEXO_HOME` if that is set, else in the host's data directory. A host without one chooses
    another folder: nothing is created in the user's home."""
    extension, home = context.extension, context.variables.get("NEXO_HOME")
    root = os.path.join(home, "extensions", extension) if home else context.data_dir
    known = {"AGENT_VERSION": context.host.version, "AGENT_EXTENSION_ID": extension}
    return known if root is None else {**known, STATE_ROOT: os.path.join(root, "state")}


HOST_DEFAULTS: Final = HostDefaults(
    # Lines that are too long are dropped, without a limit on their size and number: nexo has no limit and drops what it
    # cannot decode. At most 64 calls are pending; the next one waits for a slot.
    limits={"skipped_frames": 1_000_000, "skipped_bytes": 1024**3},
    host_limits={"call_timeout": 30.0, "handshake": 10.0, "outbound_calls": 64, "stdin_grace": 0.4, "term_grace": 0.1},
    # 3 s from the shutdown request to the kill: 2.5 s here, and 0.5 s after the end of stdin.
    timeouts={"tool": 30.0, "hook": 30.0, "shutdown": 2.5},
    restart={
        "most": 5,
        "window": 300.0,
        "delay": 1.0,
        "longest_delay": 16.0,
        "healthy_after": 300.0,
        "jitter": 0.0,
        "first_is_immediate": False,
    },
    breaker={
        "failures": 5,
        "open_for": 10.0,
        "longest_open": 120.0,
        "successes": 2,
        "trials": 1_000_000,  # a half-open breaker lets all calls through
        "trips_on_application_errors": False,  # nexo does; there five invalid arguments block an extension
    },
    inherited_environment="harmless",
    build_variables=build_variables,
    directory_variables=(STATE_ROOT,),
    has_prefixed_tools=True,
    duplicates="first",
    writes_in_root=True,
    kills_before_shutdown=False,  # nexo does, so that its shutdown request never arrives
)


# -- dialect


class NexoFirstRequest(Struct):
    method: str
    params: NexoFirstParams


class NexoFirstParams(Struct):
    agent_version: str
    extension_id: str


NEXO: Final = make_dialect(
    "nexo",
    JsonLines,
    HOST_DEFAULTS,
    host_format=HOST_WIRE_FORMAT,
    extension_format=EXTENSION_WIRE_FORMAT,
    error_codes={**ERROR_CODES, Meaning.PERMISSION_DENIED: NOT_GRANTED_CODE},
    matches_first_frame=match_first_request(
        JsonLines, NexoFirstRequest, lambda request: request.method == "initialize"
    ),
)
