"""What stands before the params of notifications, header and all, written once for each method and size.

A stream tells the same thing a hundred thousand times: all that differs are the params, and mostly not their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from becket.rpc.codec import END

__all__ = ["Starts"]

METHODS_KEPT: Final = 64
SIZES_KEPT: Final = 256


class Starts(dict[str, "Start"]):
    """One `Start` for each method that is told. `headers` has what stands before a body of any size, `notices` what
    stands in a body before the params of each method.

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
        start = self[method] = Start(self._headers, self._notices[method])
        return start


class Start(dict[int, bytes]):
    """What stands before params of each size."""

    def __init__(self, headers: Mapping[int, bytes], notice: bytes) -> None:
        super().__init__()
        self._headers = headers
        self._notice = notice

    def __missing__(self, size: int) -> bytes:
        if len(self) >= SIZES_KEPT:
            self.clear()
        header = self._headers[len(self._notice) + size + len(END)]
        start = self[size] = header + self._notice
        return start
