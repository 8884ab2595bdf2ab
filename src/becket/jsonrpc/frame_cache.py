"""Caches frame prefixes (header and envelope up to the id) by method and body size.

A stream tells the same thing a hundred thousand times, and a method is called as often: all that differs are the id and
the params, and mostly not their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from becket.jsonrpc.codec import END, ENVELOPE_WITH_ID

__all__ = ["CallPrefixCache", "NotificationPrefixCache", "PrefixCache"]

MAX_CACHED_METHODS: Final = 64
MAX_CACHED_SIZES: Final = 256


class NotificationPrefixCache(dict[str, "PrefixCache"]):
    """What stands before the params of notifications. `headers` has what stands before a body of any size, `notices`
    what stands in a body before the params of each method.

    Raises:
        KeyError: the method was not encoded before.
        LocalProtocolError: a body may not be that large.
    """

    def __init__(self, headers: Mapping[int, bytes], notices: Mapping[str, bytes]) -> None:
        super().__init__()
        self._headers = headers
        self._notices = notices

    def __missing__(self, method: str) -> PrefixCache:
        if len(self) >= MAX_CACHED_METHODS:
            self.clear()
        start = self[method] = PrefixCache(self._headers, self._notices[method], len(END))
        return start


class CallPrefixCache(dict[str, tuple["PrefixCache", bytes]]):
    """What stands before the ids of calls, by the size of id and params together, and between the two: in `names`.

    Raises:
        KeyError, LocalProtocolError: as `NotificationPrefixCache`.
    """

    def __init__(self, headers: Mapping[int, bytes], names: Mapping[str, bytes]) -> None:
        super().__init__()
        self._headers = headers
        self._names = names

    def __missing__(self, method: str) -> tuple[PrefixCache, bytes]:
        if len(self) >= MAX_CACHED_METHODS:
            self.clear()
        name = self._names[method]
        start = self[method] = (PrefixCache(self._headers, ENVELOPE_WITH_ID, len(name) + len(END)), name)
        return start


class PrefixCache(dict[int, bytes]):
    """What stands before so many bytes that change: a header, and what comes `first` in the body; `rest` bytes follow
    that do not change either."""

    def __init__(self, headers: Mapping[int, bytes], first: bytes, rest: int) -> None:
        super().__init__()
        self._headers = headers
        self._first = first
        self._rest = rest

    def __missing__(self, size: int) -> bytes:
        if len(self) >= MAX_CACHED_SIZES:
            self.clear()
        start = self[size] = self._headers[len(self._first) + size + self._rest] + self._first
        return start
