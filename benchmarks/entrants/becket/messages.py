"""What the host and the child of becket say to each other, typed."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Count", "Echo", "Tick", "Usage"]


class Echo(Struct):
    text: str


class Tick(Struct):
    seq: int
    text: str


class Count(Struct):
    """Asks for so many events or calls with that text, and is answered with the same."""

    count: int
    text: str


class Usage(Struct):
    pid: int
    cpu: float
