"""Defines the nexo dialect: JSON Lines, id rules, and host defaults with environment variables.

JSON-RPC 2.0, one message a line. The host's ids are 0 for the first request and 1, 2, 3 for those that follow; an
extension's own requests have strings that begin with `app:`, and nothing else that it sends is a request. A line that
is no message is passed over and never answered. A result that is not null is one, whatever stands beside it.
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
    """Whether a request under this id is one of an extension."""
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


# -- around the wire


def build_variables(surroundings: EnvironmentContext) -> Mapping[str, str]:
    """Returns the variables that a host sets for a program: what it is, and the folder for what it keeps.

    That lies where that system has it if `NEXO_HOME` is set, else where this host keeps data. Where it keeps none the
    folder is for the host to choose: nothing is made in the user's home."""
    extension, home = surroundings.extension, surroundings.variables.get("NEXO_HOME")
    root = os.path.join(home, "extensions", extension) if home else surroundings.data_dir
    known = {"AGENT_VERSION": surroundings.host.version, "AGENT_EXTENSION_ID": extension}
    return known if root is None else {**known, STATE_ROOT: os.path.join(root, "state")}


HOST_DEFAULTS: Final = HostDefaults(
    # A line that is too long is dropped as it comes, however long and however often: that system has no limit, and
    # drops what it cannot read. At most 64 lines of calls wait to be written or answered; the next waits for a place.
    limits={"skipped_frames": 1_000_000, "skipped_bytes": 1024**3},
    host_limits={"call_timeout": 30.0, "handshake": 10.0, "outbound_calls": 64, "stdin_grace": 0.4, "term_grace": 0.1},
    # 3 s from the goodbye to the kill: these, and the half second that follows the end of its input.
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
        "trials": 1_000_000,  # when it is tried again, all calls are let through
        "trips_on_application_errors": False,  # that system does; five wrong arguments would lock an extension out
    },
    inherited_environment="harmless",
    build_variables=build_variables,
    directory_variables=(STATE_ROOT,),
    has_prefixed_tools=True,
    duplicates="first",
    writes_in_root=True,
    kills_before_shutdown=False,  # that system does, and its goodbye never arrives
)


# -- the record


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
