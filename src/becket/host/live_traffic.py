"""Serves the traffic of a running host to programs of the same user: `becket trace --follow`.

A follower connects to a unix socket in the data directory and calls `trace.follow`; from then on each frame between the
host and its extensions is sent to it as the notification `trace.frame`. Links are observed only while there is a
follower. A follower that does not read loses frames, which are counted, and never delays an extension.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any, Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from becket._loggers import host_logger
from becket.errors import ConnectionLost, NotSent
from becket.methods.descriptors import Method, Notification
from becket.peer.peer import Peer
from becket.peer.transport.server import serve_unix

__all__ = [
    "TRACE_FOLLOW",
    "TRACE_FOLLOWING",
    "TRACE_FRAME",
    "Follow",
    "Following",
    "LiveTraffic",
    "TracedFrame",
    "reachable",
]

MAX_BODY: Final = 1024 * 1024  # bytes of a frame that is sent to followers; of longer ones the size alone
MAX_PATH: Final = 100  # bytes of the path of a unix socket: systems have 104 to 108


class Follow(Struct, frozen=True):
    """Requests the frames of these extensions, or of all if none is named. There is no response while it goes on."""

    extensions: tuple[str, ...] = ()


class Following(Struct, frozen=True):
    """The first notification: the host, and its running extensions."""

    host: str
    extensions: tuple[str, ...]


class TracedFrame(Struct, frozen=True, omit_defaults=True):
    """One frame: when it was sent (seconds since 1970), between which peers, in which dialect, and its body.

    `text` is a body in UTF-8, `base64` any other; both are empty if it is too long. `skipped` is how many frames this
    follower has lost just before it."""

    extension: str
    dialect: str
    at: float
    to_child: bool
    size: int
    text: str = ""
    base64: str = ""
    skipped: int = 0


TRACE_FOLLOW: Final[Method[Follow, None]] = Method("trace.follow", Follow, None, timeout=None)
TRACE_FOLLOWING: Final[Notification[Following]] = Notification("trace.following", Following)
TRACE_FRAME: Final[Notification[TracedFrame]] = Notification("trace.frame", TracedFrame)


class Follower:
    """One program that follows, and the extensions that it selected."""

    def __init__(self, peer: Peer, extensions: tuple[str, ...]) -> None:
        self._peer = peer
        self._extensions = frozenset(extensions)
        self._skipped = 0

    def send(self, frame: TracedFrame) -> None:
        """Sends a frame, or counts it if its queue is full."""
        if self._extensions and frame.extension not in self._extensions:
            return
        if self._skipped:
            frame = replace(frame, skipped=self._skipped)
        try:
            self._peer.notify_nowait(TRACE_FRAME, frame)
        except NotSent:
            self._skipped += 1
        except ConnectionLost:
            pass
        else:
            self._skipped = 0


class LiveTraffic:
    """The links of a host, and their followers."""

    def __init__(self, host: str, folder: Path) -> None:
        self._host = host
        self._folder = folder
        self._links: dict[Peer, tuple[str, str]] = {}  # the extension and its dialect
        self._taps: dict[Peer, Callable[[], None]] = {}
        self._followers: set[Follower] = set()

    def add(self, extension: str, dialect: str, peer: Peer) -> None:
        """Adds the link of an extension that has just been started, before its first frame."""
        for closed in [link for link in self._links if link.is_closed]:
            del self._links[closed]
            self._taps.pop(closed, None)
        self._links[peer] = extension, dialect
        if self._followers:
            self._tap(peer)

    async def serve(self) -> None:
        """Serves followers until it is cancelled. If no socket can be created, that is logged."""
        try:
            with reachable(self._folder) as path:
                async with serve_unix(self._accept, path):
                    await anyio.sleep_forever()
        except OSError as error:
            host_logger().warning("the traffic of this host cannot be followed: %s", error)

    def _accept(self, peer: Peer) -> None:
        @peer.handle(TRACE_FOLLOW)
        async def follow(params: Follow) -> None:
            follower = Follower(peer, params.extensions)
            peer.notify_nowait(TRACE_FOLLOWING, Following(self._host, tuple(sorted(self._running()))))
            self._followers.add(follower)
            host_logger().info("the traffic of this host is followed by another program")
            try:
                for link in self._links:
                    self._tap(link)
                await peer.wait_closed()
            finally:
                self._followers.discard(follower)
                if not self._followers:
                    self._end_taps()

    def _running(self) -> set[str]:
        return {extension for link, (extension, _) in self._links.items() if not link.is_closed}

    def _tap(self, link: Peer) -> None:
        if link in self._taps or link.is_closed:
            return
        extension, dialect = self._links[link]

        def observe(came_in: bool, body: bytes) -> None:
            frame = trace_frame(extension, dialect, came_in, body)
            for follower in tuple(self._followers):
                follower.send(frame)

        self._taps[link] = link.observe_frames(observe)

    def _end_taps(self) -> None:
        for end in self._taps.values():
            end()
        self._taps.clear()


def trace_frame(extension: str, dialect: str, came_in: bool, body: bytes) -> TracedFrame:
    """Returns the notification of a frame."""
    about: dict[str, Any] = {"at": time(), "to_child": not came_in, "size": len(body)}
    if len(body) > MAX_BODY:
        return TracedFrame(extension, dialect, **about)
    try:
        return TracedFrame(extension, dialect, **about, text=body.decode())
    except UnicodeDecodeError:
        return TracedFrame(extension, dialect, **about, base64=b64encode(body).decode())


@contextmanager
def reachable(folder: Path) -> Generator[str]:
    """Yields a path of the socket that is short enough, however deep the folder is.

    Raises:
        OSError: there is no such folder.
    """
    path = folder / "trace.sock"
    if len(os.fsencode(path)) <= MAX_PATH:
        yield str(path)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
