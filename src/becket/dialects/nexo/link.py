"""The link of nexo, and how its hosts treat the programs that they start.

JSON-RPC 2.0, one message a line. The host's ids are 0 for the first request and 1, 2, 3 for those that follow; an
extension's own requests have strings that begin with `app:`, and nothing else that it sends is a request. A line that
is no message is passed over and never answered. A result that is not null is one, whatever stands beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits, Surroundings
from becket.dialects.nexo.administration import NOT_GRANTED, say_error
from becket.errors import NUMBERS, Meaning
from becket.rpc.spelling import Answers, Spelling
from becket.wire.json_lines import JsonLines

if TYPE_CHECKING:
    from becket.dialects.speech import Speech

__all__ = ["NEXO", "is_admin_id", "own_variables", "recognises"]

ADMIN_ID: Final = b'"app:'
STATE_ROOT: Final = "NEXO_EXTENSION_STATE_ROOT"


def is_admin_id(id: bytes) -> bool:
    """Whether a request under this id is one of an extension."""
    return id.startswith(ADMIN_ID)


HOST_SPELLING: Final = Spelling(
    id_is_last=True,
    first_id=0,
    fixed_ids={"shutdown": 0},
    hears=is_admin_id,
    answers=Answers.RESULT_FIRST,
    say_error=say_error,
)
EXTENSION_SPELLING: Final = Spelling(id_prefix="app:", answers=Answers.RESULT_FIRST)


# -- around the wire


def own_variables(surroundings: Surroundings) -> Mapping[str, str]:
    """Returns the variables that a host sets for a program: what it is, and the folder for what it keeps.

    That lies where that system has it if `NEXO_HOME` is set, else where this host keeps data. Where it keeps none the
    folder is for the host to choose: nothing is made in the user's home."""
    extension, home = surroundings.extension, surroundings.variables.get("NEXO_HOME")
    root = os.path.join(home, "extensions", extension) if home else surroundings.data
    known = {"AGENT_VERSION": surroundings.host.version, "AGENT_EXTENSION_ID": extension}
    return known if root is None else {**known, STATE_ROOT: os.path.join(root, "state")}


HABITS: Final = Habits(
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
    inherited="harmless",
    own_variables=own_variables,
    folder_variables=(STATE_ROOT,),
    prefixes_tools=True,
    duplicates="first",
    writes_in_root=True,
    kills_before_goodbye=False,  # that system does, and its goodbye never arrives
)


# -- the record


class Opening(Struct):
    method: str
    params: Introduced


class Introduced(Struct):
    agent_version: str
    extension_id: str


def recognises(frame: bytes, framing: type) -> bool:
    """Returns whether a host that begins like this speaks nexo."""
    if framing is not JsonLines:
        return False
    try:
        return msgspec.json.decode(frame, type=Opening).method == "initialize"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def load_speech() -> Speech:
    """Returns the words for the contract, loaded when a link needs them."""
    from becket.dialects.nexo.speech import SPEECH

    return SPEECH


NEXO: Final = Dialect(
    name="nexo",
    framing=JsonLines,
    spelling=HOST_SPELLING,
    extension_spelling=EXTENSION_SPELLING,
    answers_garbage=False,
    skips_oversize=False,
    numbers={**NUMBERS, Meaning.PERMISSION_DENIED: NOT_GRANTED},
    contract=load_speech,
    recognises=recognises,
    habits=HABITS,
)
