"""Settings editor: open, key and commit requests, and the rows an extension renders.

The host opens the editor and passes the keys on; the extension answers with what to show, and may at any time show
more, give the chosen value, or close. Drawing the rows is the host's.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

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
    "EditorOpen",
    "EditorOpened",
    "EditorRender",
    "EditorRow",
    "EditorTaken",
    "parse_render",
    "read_taken",
]

EDITOR_TIMEOUT = 5.0  # a person has pressed a key and looks at the screen


# -- the host asks


class EditorOpen(Struct, frozen=True):
    """The user has opened this field."""

    category: str
    field: str


class EditorKey(Struct, frozen=True):
    """The user has pressed a key while this field was open: `Down`, `Enter`, `Esc`, `Char('x')`."""

    category: str
    field: str
    key: str


class EditorCommit(Struct, frozen=True):
    """The user has taken this value: of a row its `data`."""

    category: str
    field: str
    value: Any


# -- the extension answers, and tells


class EditorRow(Struct, frozen=True, omit_defaults=True):
    """One line of the editor. A row that is not selectable is dimmed, and the cursor passes over it."""

    label: str
    marker: str | None = None
    selectable: bool = True
    data: Any = None


class EditorRender(Struct, frozen=True, omit_defaults=True):
    """All that is to be seen now. Without a cursor no row is marked."""

    rows: tuple[EditorRow, ...]
    cursor: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    footer: str | None = None


class EditorOpened(Struct, frozen=True, omit_defaults=True):
    """The usual answer to opening a field, and to a key. The contract allows any other."""

    category: str
    field: str
    render: EditorRender | None = None


class EditorTaken(Struct, frozen=True, omit_defaults=True):
    """The response to a value that was taken: the value to store, what the host shall do besides, what to show now.

    `intent` is any JSON that host and extension agree on, such as `{"kind": "download", "url": ...}`."""

    value: Any
    intent: Any = None
    render: EditorRender | None = None


class EditorCommitted(Struct, frozen=True):
    """The user has chosen this value; the host keeps it and closes the editor."""

    value: Any


class EditorClosed(Struct, frozen=True, omit_defaults=True):
    """The editor is to be closed without a value. The reason is shown for a moment."""

    reason: str | None = None


def parse_render(response: object) -> EditorRender | None:
    """Returns what the response to opening a field, to a key or to a value shows; None if there is nothing new in it.

    Besides `EditorOpened` it may be `{"render": ...}` alone, or the members of `EditorRender` themselves."""
    if not is_object(response):
        return None
    shown = response.get("render", response)
    try:
        return None if shown is None else msgspec.convert(shown, EditorRender)
    except msgspec.ValidationError:
        return None  # the contract allows any response


def read_taken(response: object, value: Any) -> EditorTaken:
    """Returns what the response to a value that was taken says: a value of its own, an intent, something to show.

    Without a value in it the one that was taken is to be stored."""
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
    summary="Passes on a key that was pressed in an open editor.",
)
SETTINGS_EDITOR_COMMIT: Final[Method[EditorCommit, Any]] = Method(
    "settings.editor.commit",
    EditorCommit,
    Any,
    timeout=EDITOR_TIMEOUT,
    direction="to-extension",
    summary="Gives the extension the value that the user has taken.",
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
    summary="Tells the value that was chosen in the open editor, and closes it.",
)
SETTINGS_EDITOR_CLOSE: Final = Notification(
    "settings.editor.close",
    EditorClosed,
    direction="to-host",
    summary="Closes the open editor without a value.",
)
