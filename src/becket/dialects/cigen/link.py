"""`cigen`: the plugins of a generator of build configurations, which speak protobuf behind lengths of four bytes.

Messages have neither ids nor names: what one means is its place in the conversation. So there is one call at a time,
`plan` and `generate` take turns, and a frame that cannot be understood is the end of the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket.dialects.dialect import Dialect
from becket.dialects.habits import Habits
from becket.dialects.speech import Speech
from becket.limits import Limits
from becket.wire.length_prefixed import LengthPrefixed

if TYPE_CHECKING:
    from becket.rpc.roles import Codec

__all__ = ["CIGEN"]

MIB = 1024 * 1024


def open_codec(limits: Limits) -> Codec:
    from becket.dialects.cigen.codec import CigenCodec  # it needs protobuf, and the record must be had without

    return CigenCodec(limits)


def load_speech() -> Speech:
    from becket.dialects.cigen.handshake import SPEECH

    return SPEECH


def recognises(frame: bytes, framing: type) -> bool:
    """Tells a core by its framing: nobody else sends lengths."""
    return framing is LengthPrefixed


CIGEN = Dialect(
    name="cigen",
    framing=LengthPrefixed,
    codec=open_codec,
    answers_garbage=False,
    skips_oversize=False,
    bad_json_is_fatal=True,
    contract=load_speech,
    recognises=recognises,
    habits=Habits(
        limits={"frame": 10 * MIB, "outbound_calls": 1},
        host_limits={
            "handshake": 30.0,  # what its authors meant for every message; their program waits for ever
            "call_timeout": 30.0,
            "stdin_grace": 4.9,  # its own hosts kill after 5 s; the last moment is for those who heed a signal
            "term_grace": 0.1,
        },
        restart={"strategy": "never"},
        inherited="all",
        works_in_root=False,
        writes_in_root=True,
    ),
)
