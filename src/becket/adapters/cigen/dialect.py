"""Defines the cigen dialect: length-prefixed protobuf, one call at a time, and host defaults.

Messages have neither ids nor names and are identified by their order. So there is one call at a time, `plan` and
`generate` alternate, and an invalid frame ends the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._extras import needs_extra
from becket.dialects.dialect import make_dialect
from becket.dialects.host_defaults import HostDefaults
from becket.framing.length_prefixed import LengthPrefixed
from becket.limits import Limits

if TYPE_CHECKING:
    from becket.jsonrpc.protocols import Codec

__all__ = ["CIGEN"]

MIB = 1024 * 1024


def load_codec(limits: Limits) -> Codec:
    with needs_extra("cigen"):
        from becket.adapters.cigen.codec import CigenCodec  # needs protobuf, which the dialect itself must not

    return CigenCodec(limits)


HOST_DEFAULTS = HostDefaults(
    limits={"frame": 10 * MIB, "outbound_calls": 1},
    host_limits={
        "handshake": 30.0,  # cigen's documented timeout of every message; its program waits forever
        "call_timeout": 30.0,
        "stdin_grace": 4.9,  # cigen kills after 5 s; the rest is for plugins that handle SIGTERM
        "term_grace": 0.1,
    },
    restart={"strategy": "never"},
    inherited_environment="all",
    runs_in_root=False,
    writes_in_root=True,
)

CIGEN = make_dialect(
    "cigen",
    LengthPrefixed,
    HOST_DEFAULTS,
    codec=load_codec,
    matches_first_frame=lambda frame, framing: framing is LengthPrefixed,  # no other system sends lengths
    bad_json_is_fatal=True,
)
