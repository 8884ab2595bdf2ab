"""What stands before that which changes from one message to the next, header and all, written once for each size.

A stream tells the same thing a hundred thousand times, and a method is called as often: all that differs are the id and
the params, and mostly not their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from becket.rpc.codec import END, WITH_ID

__all__ = ["CallStarts", "Start", "Starts"]

METHODS_KEPT: Final = 64
SIZES_KEPT: Final = 256


class Starts(dict[str, "Start"]):
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

    def __missing__(self, method: str) -> Start:
        if len(self) >= METHODS_KEPT:
            self.clear()
        start = self[method] = Start(self._headers, self._notices[method], len(END))
        return start


class CallStarts(dict[str, tuple["Start", bytes]]):
    """What stands before the ids of calls, by the size of id and params together, and between the two: in `names`.

    Raises:
        KeyError, LocalProtocolError: as `Starts`.
    """

    def __init__(self, headers: Mapping[int, bytes], names: Mapping[str, bytes]) -> None:
        super().__init__()
        self._headers = headers
        self._names = names

    def __missing__(self, method: str) -> tuple[Start, bytes]:
        if len(self) >= METHODS_KEPT:
            self.clear()
        name = self._names[method]
        start = self[method] = (Start(self._headers, WITH_ID, len(name) + len(END)), name)
        return start


class Start(dict[int, bytes]):
    """What stands before so many bytes that change: a header, and what comes `first` in the body; `rest` bytes follow
    that do not change either."""

    def __init__(self, headers: Mapping[int, bytes], first: bytes, rest: int) -> None:
        super().__init__()
        self._headers = headers
        self._first = first
        self._rest = rest

    def __missing__(self, size: int) -> bytes:
        if len(self) >= SIZES_KEPT:
            self.clear()
        start = self[size] = self._headers[len(self._first) + size + self._rest] + self._first
        return start
