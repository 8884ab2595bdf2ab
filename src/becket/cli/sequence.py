"""A conversation drawn with lines: two sides, time downwards, an arrow for each message. Pure: steps in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size

from becket.errors import harmless
from becket.testing.conversations import Kind, Step
from becket.testing.transcripts import Side

__all__ = [
    "ASCII",
    "LINES",
    "Drawing",
    "content_of",
    "draw_sequence",
    "longest_label",
    "step_object",
    "time_text",
    "without_meta",
]

NARROWEST = 40
EDGES = 7  # columns of an arrow around its label
TIME = 9  # columns for the time


class Drawing(Struct, frozen=True):
    """The characters that a diagram is made of."""

    side: str
    line: str
    dotted: str
    right: str
    left: str
    end: str


LINES: Final = Drawing("│", "─", "┄", "▶", "◀", "┴")
ASCII: Final = Drawing("|", "-", ".", ">", "<", "+")


def draw_sequence(steps: Iterable[Step], width: int, drawing: Drawing = LINES) -> Iterator[tuple[Kind | None, str]]:
    """Yields the lines of a diagram of this width, each with what it shows; None for those that show nothing."""
    room = max(width, NARROWEST) - TIME - 2  # the two sides
    yield None, f"{'':{TIME}}{'host':<{room - 3}}child"
    for step in steps:
        yield step.kind, f"{time_text(step.at):>{TIME - 1}} {draw_step(step, room, drawing)}"


def draw_step(step: Step, room: int, drawing: Drawing) -> str:
    if step.to is None:
        return f"{drawing.side}{set_cell_size(f' {label_of(step)}', room)}{drawing.end}"
    line = drawing.dotted if step.kind in (Kind.NOTIFICATION, Kind.CLOSED) else drawing.line
    label = shorten(f" {label_of(step)} ", room - 3)
    rest = line * (room - 3 - cell_len(label))
    if step.to is Side.CHILD:
        return f"{drawing.side}{line}{line}{label}{rest}{drawing.right}{drawing.side}"
    return f"{drawing.side}{drawing.left}{rest}{label}{line}{line}{drawing.side}"


def longest_label(steps: Iterable[Step]) -> int:
    """Returns how wide a diagram must be for nothing to be cut."""
    return max((cell_len(label_of(step)) + TIME + EDGES for step in steps), default=0)


def label_of(step: Step) -> str:
    """Returns what a step says in one line, however long."""
    content = content_of(step)
    match step.kind:
        case Kind.CALL:
            return f"{harmless(step.method)} #{step.id} {content}".strip()
        case Kind.NOTIFICATION:
            return f"{harmless(step.method)} {content}".strip()
        case Kind.ANSWER:
            return f"#{step.id} {harmless(step.method)}{took(step)}: {content}"
        case Kind.ERROR:
            return f"#{step.id} {harmless(step.method)}{took(step)}: error {content}"
        case _:
            return content


def content_of(step: Step) -> str:
    """Returns what is worth to be shown of what a step bears, in one line."""
    match step.kind:
        case Kind.ERROR:
            error = msgspec.json.decode(step.content)
            return harmless(f"{error['code']} {error['message']}")
        case Kind.INVALID:
            return f"no message: {harmless(step.content)}"
        case Kind.STRAY:
            return f"no frame: {harmless(step.content)}"
        case Kind.CLOSED:
            return "no more will come"
        case Kind.EXIT:
            return f"the child has ended: {exit_text(int(step.content))}"
        case _:
            return harmless(step.content)


def step_object(step: Step) -> dict[str, Any]:
    """Returns a step for programs: what it bears as a value, where it is one."""
    found: dict[str, Any] = msgspec.to_builtins(step)
    if step.content and step.kind in (Kind.CALL, Kind.NOTIFICATION, Kind.ANSWER, Kind.ERROR):
        found["content"] = Raw(step.content.encode())
    return found


def without_meta(step: Step) -> Step:
    """Returns a step without `_meta` in its params, which is the link's own and in the way of what is said."""
    if step.kind not in (Kind.CALL, Kind.NOTIFICATION) or '"_meta"' not in step.content:
        return step
    try:
        members = msgspec.json.decode(step.content, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return step
    members.pop("_meta", None)
    return replace(step, content=msgspec.json.encode(members).decode() if members else "")


def took(step: Step) -> str:
    return "" if step.seconds is None else f" after {time_text(step.seconds)}"


def time_text(seconds: float) -> str:
    """Returns a time in as few characters as tell it."""
    if seconds < 0.001:
        return f"{seconds * 1_000_000:.0f} us"
    if seconds < 1:
        return f"{seconds * 1_000:.1f} ms"
    return f"{seconds:.2f} s"


def exit_text(exit_code: int) -> str:
    """Returns how a process has ended, in words."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    from signal import Signals

    try:
        return f"killed by {Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"


def shorten(text: str, most: int) -> str:
    """Returns a text that takes at most so many columns, with dots where it was cut."""
    return text if cell_len(text) <= most else f"{set_cell_size(text, most - 4).rstrip()}... "
