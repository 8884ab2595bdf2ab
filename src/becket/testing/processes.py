"""Commands of the misbehaving child programs, and a watch on any process by pid.

They can test any host that uses JSON-RPC over pipes, in whatever language it is written.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping
from types import MappingProxyType, TracebackType

import anyio

from becket.testing import children

__all__ = ["CHILDREN", "ProcessWatch", "child"]

CHILDREN: Mapping[str, str] = MappingProxyType({name: str(run.__doc__) for name, run in children.PROGRAMS.items()})
"""The name of each program, and what it does wrong."""


def child(name: str, *arguments: object) -> list[str]:
    """Returns the command line of a program of `CHILDREN`.

    Raises:
        LookupError: there is none of this name.
    """
    if name not in CHILDREN:
        raise LookupError(f"no such child: {name!r}; there are {', '.join(sorted(CHILDREN))}")
    # Without site-packages it starts in 12 ms, and installed packages cannot affect it.
    return [sys.executable, "-I", "-S", children.__file__, name, *map(str, arguments)]


class ProcessWatch:
    """Watches any process, safe from pid reuse: `with ProcessWatch(pid) as it: await it.gone()`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; a zombie does not."""
        return not select.select([self._pidfd], [], [], 0)[0]

    async def gone(self) -> None:
        """Waits until the process has exited."""
        # anyio's `wait_readable` takes an object or a number; a pidfd is readable once its process has exited.
        await anyio.wait_readable(self._pidfd)

    def close(self) -> None:
        """Closes the descriptors of the watch."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def __enter__(self) -> ProcessWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
