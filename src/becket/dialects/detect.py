"""Detects the dialect of a host from its first frame."""

from __future__ import annotations

from becket.dialects import DIALECTS, NATIVE, Dialect
from becket.errors import JSON_ERRORS
from becket.jsonrpc.codec import decode_envelope

__all__ = ["detect_dialect"]


def detect_dialect(frame: bytes, framing: type) -> Dialect:
    """Returns the dialect of a host whose first frame, in this framing, is this one.

    A frame that no dialect recognises is taken for native, which has the best error messages."""
    if is_native(frame):
        return NATIVE
    for dialect in DIALECTS.values():
        if dialect.matches_first_frame is not None and dialect.matches_first_frame(frame, framing):
            return dialect
    return NATIVE


def is_native(frame: bytes) -> bool:
    try:
        opening = decode_envelope(frame)
    except JSON_ERRORS:
        return False
    return b'"extension_protocol_version"' in bytes(opening.params)
