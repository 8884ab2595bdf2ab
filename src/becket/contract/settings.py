"""Settings editor: open, key and commit requests, and the rows an extension renders.

The host opens the editor and forwards the keys; the extension responds with what to show, and may at any time render
more, commit a value, or close the editor. Drawing the rows is the host's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from becket._deprecated import keep_renamed
from becket.contract.json_narrowing import is_object
from becket.methods.descriptors import Method, Notification

__all__ = [
    "SETTINGS_EDITOR_CLOSE",
    "SETTINGS_EDITOR_COMMIT",
    "SETTINGS_EDITOR_COMMITTED",
    "SETTINGS_EDITOR_KEY",
    "SETTINGS_EDITOR_OPEN",
    "SETTINGS_EDITOR_RENDER",
    "EditorClosed",
    "EditorCommit",
    "EditorCommitted",
    "EditorKey",
    "EditorKind",
    "EditorOpen",
    "EditorOpened",
    "EditorRender",
    "EditorRow",
    "EditorTaken",
    "parse_render",
    "read_taken",
]

EDITOR_TIMEOUT = 5.0  # a person has pressed a key and looks at the screen

EditorKind = Literal["text", "cycler", "picker", "custom"]
"""How a value is edited, as manifests declare it; the requests here are those of a `custom` editor."""


# -- requests of the host


class EditorOpen(Struct, frozen=True):
    """The user opened this field."""

    category: str
    field: str


class EditorKey(Struct, frozen=True):
    """The user pressed a key while this field was open: `Down`, `Enter`, `Esc`, `Char('x')`."""

    category: str
    field: str
    key: str


class EditorCommit(Struct, frozen=True):
    """The user chose this value: the `data` of a row."""

    category: str
    field: str
    value: Any


# -- responses and notifications of the extension


class EditorRow(Struct, frozen=True, omit_defaults=True):
    """One line of the editor. A row that is not selectable is dimmed, and the cursor skips it."""

    label: str
    marker: str | None = None
    selectable: bool = True
    data: Any = None


class EditorRender(Struct, frozen=True, omit_defaults=True):
    """The whole content of the editor. Without a cursor no row is marked."""

    rows: tuple[EditorRow, ...]
    cursor: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    footer: str | None = None


class EditorOpened(Struct, frozen=True, omit_defaults=True):
    """The usual response to opening a field, and to a key. The contract allows any other."""

    category: str
    field: str
    render: EditorRender | None = None


class EditorTaken(Struct, frozen=True, omit_defaults=True):
    """The response to a chosen value: the value to store, what else the host is to do, and what to show.

    `intent` is any JSON that host and extension agree on, such as `{"kind": "download", "url": ...}`."""

    value: Any
    intent: Any = None
    render: EditorRender | None = None


class EditorCommitted(Struct, frozen=True):
    """The user chose this value; the host stores it and closes the editor."""

    value: Any


class EditorClosed(Struct, frozen=True, omit_defaults=True):
    """Closes the editor without a value. The reason is shown briefly."""

    reason: str | None = None


def parse_render(response: object) -> EditorRender | None:
    """Returns what the response to opening a field, to a key or to a value renders; None if nothing.

    Besides `EditorOpened` the response may be `{"render": ...}` alone, or the members of `EditorRender` themselves."""
    if not is_object(response):
        return None
    shown = response.get("render", response)
    try:
        return None if shown is None else msgspec.convert(shown, EditorRender)
    except msgspec.ValidationError:
        return None  # the contract allows any response


def read_taken(response: object, value: Any) -> EditorTaken:
    """Decodes the response to a chosen value; without a value in it, the chosen one is to be stored."""
    render = parse_render(response)
    if is_object(response) and ("value" in response or "intent" in response or render is not None):
        return EditorTaken(response.get("value", value), response.get("intent"), render)
    return EditorTaken(value if response is None else response)


SETTINGS_EDITOR_OPEN: Final[Method[EditorOpen, Any]] = Method(
    "settings.editor.open",
    EditorOpen,
    Any,
    timeout=EDITOR_TIMEOUT,
    direction="to-extension",
    summary="Opens the extension's own editor of a field.",
)
SETTINGS_EDITOR_KEY: Final[Method[EditorKey, Any]] = Method(
    "settings.editor.key",
    EditorKey,
    Any,
    timeout=EDITOR_TIMEOUT,
    direction="to-extension",
    summary="Forwards a key that was pressed in an open editor.",
)
SETTINGS_EDITOR_COMMIT: Final[Method[EditorCommit, Any]] = Method(
    "settings.editor.commit",
    EditorCommit,
    Any,
    timeout=EDITOR_TIMEOUT,
    direction="to-extension",
    summary="Sends the extension the value that the user chose.",
)
SETTINGS_EDITOR_RENDER: Final = Notification(
    "settings.editor.render",
    EditorRender,
    direction="to-host",
    summary="Shows new content in the open editor.",
)
SETTINGS_EDITOR_COMMITTED: Final = Notification(
    "settings.editor.commit",
    EditorCommitted,
    direction="to-host",
    summary="Commits the value that was chosen in the open editor, and closes it.",
)
SETTINGS_EDITOR_CLOSE: Final = Notification(
    "settings.editor.close",
    EditorClosed,
    direction="to-host",
    summary="Closes the open editor without a value.",
)


if not TYPE_CHECKING:  # for a type checker, a module with this function has every name
    __getattr__ = keep_renamed(__name__, {"read_render": "parse_render"})
