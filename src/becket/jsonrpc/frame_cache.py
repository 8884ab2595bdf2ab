"""Caches frame prefixes (header and first bytes of the body) by the size of the rest.

The same methods are called and the same events sent many thousand times: only the id and the params differ, and mostly
not in size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["NO_PREFIXES", "FramePrefixes", "NotificationPrefixes"]

MAX_CACHED_METHODS: Final = 64
MAX_CACHED_SIZES: Final = 256


class FramePrefixes(dict[int, bytes]):
    """The header and the beginning of a body, by the number of bytes that follow.

    Raises:
        KeyError: the framing must see the whole body.
        LocalProtocolError: the body would be too large.
    """

    def __init__(self, prefix: Callable[[int], bytes | None], beginning: bytes) -> None:
        super().__init__()
        self._prefix = prefix
        self._beginning = beginning

    def __missing__(self, size: int) -> bytes:
        header = self._prefix(len(self._beginning) + size)
        if header is None:
            raise KeyError(size)
        if len(self) >= MAX_CACHED_SIZES:
            self.clear()
        cached = self[size] = header + self._beginning
        return cached


class NotificationPrefixes(dict[str, FramePrefixes]):
    """The prefixes of notifications by method; `beginnings` has the beginning of the body for each method, and `mark`
    is the first part of the params.

    Raises:
        KeyError: the method was not encoded before.
    """

    def __init__(
        self, prefix: Callable[[int], bytes | None], beginnings: Mapping[str, bytes], mark: bytes = b""
    ) -> None:
        super().__init__()
        self._prefix = prefix
        self._beginnings = beginnings
        self._mark = mark

    def add(self, method: str) -> FramePrefixes:
        """Adds a method and returns its prefixes."""
        beginning = self._beginnings[method] + self._mark
        if len(self) >= MAX_CACHED_METHODS:
            self.clear()
        cached = self[method] = FramePrefixes(self._prefix, beginning)
        return cached

    __missing__ = add


NO_PREFIXES: Final = NotificationPrefixes(lambda _: None, {})
"""Stays empty."""
