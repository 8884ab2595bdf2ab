"""The messages between the host and the child of becket, typed."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Count", "Echo", "Tick", "Usage"]


class Echo(Struct):
    text: str


class Tick(Struct):
    seq: int
    text: str


class Count(Struct):
    """Requests so many events or calls with that text; the response is the same."""

    count: int
    text: str


class Usage(Struct):
    pid: int
    cpu: float
