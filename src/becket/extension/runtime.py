"""The type of both runtimes: plain functions alone, or functions on an event loop. For annotations only."""

from __future__ import annotations

from typing import TypeAlias

from becket.extension.runtime_async import AsyncRuntime
from becket.extension.runtime_blocking import BlockingRuntime

__all__ = ["Runtime"]

Runtime: TypeAlias = AsyncRuntime | BlockingRuntime
