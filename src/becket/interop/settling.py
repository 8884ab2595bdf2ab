"""What a function of a user's has returned, whether it is plain or `async def`."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any

__all__ = ["settled"]


async def settled(value: Any) -> Any:
    """Returns the value, or what comes of it once it is there."""
    return await value if isawaitable(value) else value
