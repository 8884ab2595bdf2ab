"""Service types that a Roder manifest lists: tools, engines, executors, dispatchers and sinks.

Two lists are equal if order and content are: schemas are compared as JSON, in which `true` is not `1` and `1` is
not `1.0`, and the order of members does not matter.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

__all__ = [
    "EventSink",
    "InferenceEngine",
    "Service",
    "SubagentDispatcher",
    "TaskExecutor",
    "ToolProvider",
    "ToolSpec",
    "are_equal_services",
    "filter_services",
]


class ToolSpec(Struct, frozen=True):
    """A tool; `parameters` is the JSON Schema of its input."""

    name: str
    description: str
    parameters: Any


class InferenceEngine(Struct, frozen=True, tag_field="type", tag="inference_engine"):
    """An engine that offers models."""

    id: str


class EventSink(Struct, frozen=True, tag_field="type", tag="event_sink"):
    """A receiver of the host's events."""

    id: str


class SubagentDispatcher(Struct, frozen=True, tag_field="type", tag="subagent_dispatcher"):
    """A dispatcher of its own agents."""

    id: str


class TaskExecutor(Struct, frozen=True, tag_field="type", tag="task_executor"):
    """An executor of long-running tasks of one kind."""

    id: str


class ToolProvider(Struct, frozen=True, tag_field="type", tag="tool_provider"):
    """A provider of tools."""

    id: str
    tools: tuple[ToolSpec, ...]


Service: TypeAlias = InferenceEngine | EventSink | SubagentDispatcher | TaskExecutor | ToolProvider
S = TypeVar("S", InferenceEngine, EventSink, SubagentDispatcher, TaskExecutor, ToolProvider)


def filter_services(provides: tuple[Service, ...], kind: type[S]) -> list[S]:
    """Returns the services of one type, in order."""
    return [service for service in provides if isinstance(service, kind)]


def are_equal_services(one: tuple[Service, ...], other: tuple[Service, ...]) -> bool:
    """Returns whether two lists of services are equal."""
    return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
