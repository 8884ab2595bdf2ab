"""Widgets: small boxes of text that an extension shows on the host's screen."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from becket.methods.descriptors import Notification

__all__ = [
    "WIDGET_DISMISS",
    "WIDGET_UPSERT",
    "Position",
    "StyledText",
    "WidgetDismiss",
    "WidgetUpsert",
]

Name = Annotated[str, Meta(min_length=1)]


class Position(StrEnum):
    """The position of a widget on the screen."""

    TOP_LEFT = "top_left"
    TOP_CENTER = "top_center"
    TOP_RIGHT = "top_right"
    MIDDLE_LEFT = "middle_left"
    CENTER = "center"
    MIDDLE_RIGHT = "middle_right"
    BOTTOM_LEFT = "bottom_left"
    BOTTOM_CENTER = "bottom_center"
    BOTTOM_RIGHT = "bottom_right"


if TYPE_CHECKING:
    OptionalPosition = Position
else:
    OptionalPosition = Position | None


class StyledText(Struct, frozen=True, omit_defaults=True):
    """A part of a line with its colours, such as `#ff8800`."""

    text: str
    fg: str | None = None
    bg: str | None = None


class WidgetUpsert(Struct, frozen=True, omit_defaults=True):
    """The new content of a widget. `styled_lines` are shown instead of `lines` if the host supports colours.

    Without `ttl_secs` the widget stays until it is dismissed. A position of null is the default."""

    id: Name
    lines: tuple[str, ...]
    position: OptionalPosition = Position.TOP_RIGHT
    title: str | None = None
    ttl_secs: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    styled_lines: tuple[tuple[StyledText, ...], ...] | None = None

    def __post_init__(self) -> None:
        if not self.position:
            force_setattr(self, "position", Position.TOP_RIGHT)


class WidgetDismiss(Struct, frozen=True):
    """Removes a widget."""

    id: Name


WIDGET_UPSERT: Final = Notification(
    "widget.upsert",
    WidgetUpsert,
    direction="to-host",
    summary="Shows a widget, or changes one that is shown.",
)
WIDGET_DISMISS: Final = Notification(
    "widget.dismiss",
    WidgetDismiss,
    direction="to-host",
    summary="Removes a widget.",
)
