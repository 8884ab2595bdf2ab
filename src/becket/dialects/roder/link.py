"""The link of Roder, and how its hosts treat the programs that they start.

JSON-RPC 2.0, one message a line, ids from 1. Only the host asks; what an extension sends under an id with a method is
no request, and answers nothing. A line that is no message is passed over and never answered. An answer with a member
`error`, even null, is an error, of which only the message counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.rpc.spelling import Answers, Spelling, nobody
from becket.wire.json_lines import JsonLines

if TYPE_CHECKING:
    from becket.dialects.speech import Speech

__all__ = ["RODER"]

EXTENSION_SPELLING: Final = Spelling(answers=Answers.ERROR_FIRST, unknown_error="unknown process extension error")
HOST_SPELLING: Final = replace(EXTENSION_SPELLING, hears=nobody)
GIB: Final = 1024**3

HABITS: Final = Habits(
    # A line beyond 4 MiB is dropped, however long and however often; nothing of it is kept.
    limits={"frame": 4 * 1024**2, "skipped_frames": 1_000_000, "skipped_bytes": GIB},
    host_limits={"handshake": 10.0, "call_timeout": 30.0, "stdin_grace": 0.1, "term_grace": 0.1},
    # Its own hosts kill 2 s after `extension/shutdown`: of these the last 0.2 are the graces above.
    # Answers of models and tasks are not bounded there; here they may be silent for as long as an agent may work.
    timeouts={"tool": 30.0, "complete": 1800.0, "idle": 1800.0, "info": 30.0, "shutdown": 1.8},
    restart={"strategy": "never"},
    variables=("PATH",),
    works_in_root=False,
    writes_in_root=True,
    starts_when_needed=True,
    duplicates="first, others are errors",  # "is already installed"
)


class Opening(Struct):
    method: str


def recognises(frame: bytes, framing: type) -> bool:
    """Returns whether a host that begins like this speaks Roder's dialect."""
    if framing is not JsonLines:
        return False
    try:
        return msgspec.json.decode(frame, type=Opening).method == "extension/initialize"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def load_speech() -> Speech:
    """Returns how the contract is said; loaded when a link needs it."""
    from becket.dialects.roder.speech import SPEECH

    return SPEECH


RODER: Final = Dialect(
    name="roder",
    framing=JsonLines,
    spelling=HOST_SPELLING,
    extension_spelling=EXTENSION_SPELLING,
    answers_garbage=False,
    skips_oversize=False,
    contract=load_speech,
    recognises=recognises,
    habits=HABITS,
)
