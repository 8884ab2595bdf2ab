"""Prints the events and result of a running stream: live, as text or as JSON lines."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import asdict

from becket.cli.support.output import console, print_json_line
from becket.contract.names import snake_case
from becket.host.live_view import LiveView
from becket.host.serving.streams import ExtensionStream

__all__ = ["print_event", "print_result", "show_stream"]

R = TypeVar("R")


async def show_stream(
    run: ExtensionStream[Any, R], *, as_json: bool, leave_out: tuple[type, ...] = (), view: LiveView | None = None
) -> R:
    """Shows the events of a run, except classes in `leave_out`, in `view` or a new one; returns the run's result.

    Raises:
        BecketError: the error of the run; events before it are shown.
    """
    if as_json:
        async for batch in run.batches():
            for event in batch:
                print_event(event)
        return await run.result()
    with view or LiveView(console()) as view:
        async for batch in run.batches():
            for event in batch:
                if not isinstance(event, leave_out):
                    view.show(event)
    return await run.result()


def print_event(event: Any) -> None:
    """Writes an event as a line of JSON: its class as `event`, and its members."""
    print_json_line({"event": snake_case(type(event).__name__), **asdict(event)})


def print_result(result: object) -> None:
    """Writes the result of a run as the last line of JSON."""
    print_json_line({"event": "result", "result": result})
