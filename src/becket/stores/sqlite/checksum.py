"""The checksum of a row of a store: `rows` checks it when a row is read, `verification` checks all of them."""

from __future__ import annotations

from zlib import crc32

import msgspec

__all__ = ["checksum"]

encode = msgspec.msgpack.Encoder().encode  # deterministic, whatever the version


def checksum(fields: tuple[object, ...]) -> int:
    """Returns the checksum of a row with these fields."""
    return crc32(encode(fields))
