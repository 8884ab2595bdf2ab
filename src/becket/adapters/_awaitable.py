"""Awaits the result of a user's callback if it is awaitable."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any

__all__ = ["maybe_await"]


async def maybe_await(value: Any) -> Any:
    """Returns the value, awaited if it is awaitable."""
    return await value if isawaitable(value) else value
