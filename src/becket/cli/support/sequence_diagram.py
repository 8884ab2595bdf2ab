"""Draws a transcript as a text sequence diagram. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size

from becket._text import escape
from becket.errors import JSON_ERRORS
from becket.testing.transcripts.file_format import LinkEnd
from becket.testing.transcripts.steps import StepKind, TranscriptStep

__all__ = [
    "ASCII_STYLE",
    "UNICODE_STYLE",
    "DiagramStyle",
    "draw_sequence",
    "format_content",
    "format_seconds",
    "max_label_width",
    "step_object",
    "without_meta",
]

NARROWEST = 40
EDGES = 7  # columns of an arrow around its label
TIME = 9  # columns for the time


class DiagramStyle(Struct, frozen=True):
    """The characters of a diagram."""

    edge: str
    line: str
    dotted: str
    right: str
    left: str
    end: str


UNICODE_STYLE: Final = DiagramStyle("│", "─", "┄", "▶", "◀", "┴")
ASCII_STYLE: Final = DiagramStyle("|", "-", ".", ">", "<", "+")


def draw_sequence(
    steps: Iterable[TranscriptStep], width: int, drawing: DiagramStyle = UNICODE_STYLE
) -> Iterator[tuple[StepKind | None, str]]:
    """Yields the lines of a diagram of this width, each with the kind of its step; None for the header."""
    room = max(width, NARROWEST) - TIME - 2  # the two edges
    yield None, f"{'':{TIME}}{'host':<{room - 3}}child"
    for step in steps:
        yield step.kind, f"{format_seconds(step.at):>{TIME - 1}} {draw_step(step, room, drawing)}"


def draw_step(step: TranscriptStep, room: int, drawing: DiagramStyle) -> str:
    if step.to is None:
        return f"{drawing.edge}{set_cell_size(f' {format_label(step)}', room)}{drawing.end}"
    line = drawing.dotted if step.kind in (StepKind.NOTIFICATION, StepKind.CLOSED) else drawing.line
    label = truncate_columns(f" {format_label(step)} ", room - 3)
    rest = line * (room - 3 - cell_len(label))
    if step.to is LinkEnd.CHILD:
        return f"{drawing.edge}{line}{line}{label}{rest}{drawing.right}{drawing.edge}"
    return f"{drawing.edge}{drawing.left}{rest}{label}{line}{line}{drawing.edge}"


def max_label_width(steps: Iterable[TranscriptStep]) -> int:
    """Returns the width at which no label is truncated."""
    return max((cell_len(format_label(step)) + TIME + EDGES for step in steps), default=0)


def format_label(step: TranscriptStep) -> str:
    """Returns the label of a step: one line of any length."""
    content = format_content(step)
    match step.kind:
        case StepKind.CALL:
            return f"{escape(step.method)} #{step.id} {content}".strip()
        case StepKind.NOTIFICATION:
            return f"{escape(step.method)} {content}".strip()
        case StepKind.RESPONSE:
            return f"#{step.id} {escape(step.method)}{format_duration(step)}: {content}"
        case StepKind.ERROR:
            return f"#{step.id} {escape(step.method)}{format_duration(step)}: error {content}"
        case _:
            return content


def format_content(step: TranscriptStep) -> str:
    """Returns the content of a step in one line."""
    match step.kind:
        case StepKind.ERROR:
            error = msgspec.json.decode(step.content)
            return escape(f"{error['code']} {error['message']}")
        case StepKind.INVALID:
            return f"not a message: {escape(step.content)}"
        case StepKind.STRAY:
            return f"not a frame: {escape(step.content)}"
        case StepKind.CLOSED:
            return "end of stream"
        case StepKind.EXIT:
            return f"the child has exited: {format_exit(int(step.content))}"
        case _:
            return escape(step.content)


def step_object(step: TranscriptStep) -> dict[str, Any]:
    """Returns a step as a JSON object, with its content as a JSON value if it is one."""
    found: dict[str, Any] = msgspec.to_builtins(step)
    if step.content and step.kind in (StepKind.CALL, StepKind.NOTIFICATION, StepKind.RESPONSE, StepKind.ERROR):
        found["content"] = Raw(step.content.encode())
    return found


def without_meta(step: TranscriptStep) -> TranscriptStep:
    """Returns a step without `_meta` in its params: it is noise in a table."""
    if step.kind not in (StepKind.CALL, StepKind.NOTIFICATION) or '"_meta"' not in step.content:
        return step
    try:
        members = msgspec.json.decode(step.content, type=dict[str, Raw])
    except JSON_ERRORS:
        return step
    members.pop("_meta", None)
    return replace(step, content=msgspec.json.encode(members).decode() if members else "")


def format_duration(step: TranscriptStep) -> str:
    return "" if step.seconds is None else f" after {format_seconds(step.seconds)}"


def format_seconds(seconds: float) -> str:
    """Returns a short form of a duration."""
    if seconds < 0.001:
        return f"{seconds * 1_000_000:.0f} us"
    if seconds < 1:
        return f"{seconds * 1_000:.1f} ms"
    return f"{seconds:.2f} s"


def format_exit(exit_code: int) -> str:
    """Returns a description of an exit code."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    from signal import Signals

    try:
        return f"killed by {Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"


def truncate_columns(text: str, most: int) -> str:
    """Returns a text of at most this many columns, with dots if it was truncated."""
    return text if cell_len(text) <= most else f"{set_cell_size(text, most - 4).rstrip()}... "
