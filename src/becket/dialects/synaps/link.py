"""The record of the dialect: how its messages are framed and spelled, its errors, and what its hosts are used to."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.errors import NUMBERS, InvalidParams, Meaning, MethodNotFound, RpcError
from becket.rpc.spelling import Answers, Spelling
from becket.wire.content_length import ContentLength

if TYPE_CHECKING:
    from becket.dialects.speech import Speech

__all__ = ["SYNAPS", "mean", "say_error"]

# -- errors

INVALID = -32602  # bad params, and permissions that are not held
FAILED = -32000  # a store that failed; here all that the system itself has no number for
ERROR_NUMBERS: Final = {
    **dict.fromkeys(Meaning, FAILED),
    Meaning.UNKNOWN_METHOD: -32601,
    Meaning.INVALID_REQUEST: -32601,  # a request under the name of a notification: there is no such method
    Meaning.INVALID_PARAMS: INVALID,
    Meaning.PERMISSION_DENIED: INVALID,
}
DENIED = "permission denied"
MEANINGS: Final = {number: meaning for meaning, number in NUMBERS.items() if number < 0} | {FAILED: Meaning.INTERNAL}


def say_error(error: RpcError) -> RpcError:
    """Returns the error in the words of a host: a number and a text, of several problems the first, and no more."""
    if isinstance(error, MethodNotFound):
        return RpcError(Meaning.UNKNOWN_METHOD, f"method not found: {error.method}")
    if isinstance(error, InvalidParams) and error.problems:
        return RpcError(Meaning.INVALID_PARAMS, error.problems[0][1])
    if error.meaning is None:  # of a method of the host's own, with a number of its own
        return error
    return RpcError(error.meaning, error.message)


def mean(code: int, message: str) -> Meaning | None:
    """Returns what an error means; of a denial only the text tells."""
    if code == INVALID and message.startswith(DENIED):
        return Meaning.PERMISSION_DENIED
    return MEANINGS.get(code)


HOST_SPELLING: Final = Spelling(
    id_is_last=True,
    writes_null_params=True,
    answers=Answers.ERROR_FIRST,
    unknown_error="unknown extension error",
    say_error=say_error,
    mean=mean,
)
EXTENSION_SPELLING: Final = replace(HOST_SPELLING, say_error=None)  # a host shows the whole text, and all of it helps


# -- what its hosts are used to

CALL = 30.0  # seconds for all but tools and what a person waits for; a stream has no more

HABITS: Final = Habits(
    restart_limits={"handshake": 10.0},
    host_limits={
        "outbound_calls": 1,  # simple programs take the next message for the answer to a call of their own
        "call_timeout": CALL,
        "handshake": 120.0,  # its own hosts wait for ever, and some programs fetch a model first
        # Its own hosts kill one second after `shutdown`: half of it is for the response, and this is the other half.
        "stdin_grace": 0.4,
        "term_grace": 0.1,
    },
    timeouts={"complete": CALL, "idle": CALL, "total": CALL},
    restart={
        "most": 3,
        "window": inf,
        "delay": 0.25,
        "longest_delay": 5.0,
        "jitter": 0.0,
        "first_is_immediate": False,
    },
    variables=("PATH", "HOME", "LANG", "TERM", "XDG_RUNTIME_DIR"),
    config_variable="SYNAPS_EXTENSION_{id}_{key}",
    has_typed_config=False,
    keeps_ids=True,
    resends_hooks=True,
    sets_our_variables=False,
    writes_in_root=True,
)


def load_speech() -> Speech:
    """Returns the words of the dialect, which only a link needs."""
    from becket.dialects.synaps.speech import SPEECH

    return SPEECH


SYNAPS: Final = Dialect(
    name="synaps",
    framing=partial(ContentLength, strict=False),
    spelling=HOST_SPELLING,
    extension_spelling=EXTENSION_SPELLING,
    answers_garbage=False,
    skips_oversize=False,
    numbers=ERROR_NUMBERS,
    bad_json_is_fatal=True,
    contract=load_speech,
    habits=HABITS,
)
