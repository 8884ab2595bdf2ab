"""The editor of a setting, from a key press to the stored value, in either form."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from becket import ExtensionServer
from becket.contract import (
    EditorClosed,
    EditorCommit,
    EditorCommitted,
    EditorKey,
    EditorOpen,
    EditorRender,
    EditorRow,
    EditorTaken,
)
from becket.contract.settings import SETTINGS_EDITOR_RENDER
from becket.host import Extension
from becket.testing import connected

pytestmark = pytest.mark.loops

COLOURS = ("white", "blue")


class Menu:
    """What both of the extensions below show."""

    cursor = 0

    def draw(self) -> EditorRender:
        return EditorRender(tuple(EditorRow(colour, data=colour) for colour in COLOURS), self.cursor)

    def take(self, key: str) -> object:
        match key:
            case "Down":
                self.cursor = (self.cursor + 1) % len(COLOURS)
                return self.draw()
            case "Enter":
                return EditorCommitted(COLOURS[self.cursor])
            case "Esc":
                return EditorClosed("as it was")
            case _:
                return None


class Plain(ExtensionServer, Menu):
    id, version = "lamp", "1"

    def on_editor_open(self, opened: EditorOpen) -> EditorRender:
        return self.draw()

    def on_editor_key(self, pressed: EditorKey) -> object:
        return self.take(pressed.key)

    def on_editor_commit(self, taken: EditorCommit) -> EditorClosed:
        self.host.blocking.notify(SETTINGS_EDITOR_RENDER, EditorRender((EditorRow(f"{taken.value} it is"),)))
        return EditorClosed()


class Async(ExtensionServer, Menu):
    id, version = "lamp", "1"

    async def on_editor_open(self, opened: EditorOpen) -> EditorRender:
        return self.draw()

    async def on_editor_key(self, pressed: EditorKey) -> object:
        return self.take(pressed.key)

    async def on_editor_commit(self, taken: EditorCommit) -> EditorClosed:
        await self.host.notify(SETTINGS_EDITOR_RENDER, EditorRender((EditorRow(f"{taken.value} it is"),)))
        return EditorClosed()


def collect_updates(host: Extension) -> list[Any]:
    received: list[Any] = []
    host.on(EditorRender, EditorCommitted, EditorClosed)(received.append)
    return received


@pytest.mark.parametrize("dialect", ["native", "synaps"])
@pytest.mark.parametrize("kind", [Plain, Async])
async def test_an_editor_shows_the_rows_of_its_functions_until_one_of_them_returns_a_value(
    kind: type[ExtensionServer], dialect: str
) -> None:
    with anyio.fail_after(60):
        async with connected(kind(), dialect=dialect) as (host, _):
            received = collect_updates(host)

            opened = await host.open_editor("look", "colour")
            assert opened == EditorRender((EditorRow("white", data="white"), EditorRow("blue", data="blue")), 0)
            moved = await host.press_editor_key("look", "colour", "Down")
            assert moved is not None
            assert moved.cursor == 1
            assert await host.press_editor_key("look", "colour", "Char('x')") is None
            assert received == []
            assert await host.press_editor_key("look", "colour", "Enter") is None
            assert received == [EditorCommitted("blue")]


@pytest.mark.parametrize("kind", [Plain, Async])
async def test_an_editor_is_closed_by_a_key_or_by_the_host(kind: type[ExtensionServer]) -> None:
    with anyio.fail_after(60):
        async with connected(kind()) as (host, _):
            received = collect_updates(host)

            assert await host.press_editor_key("look", "colour", "Esc") is None
            assert received == [EditorClosed("as it was")]
            assert await host.commit_editor("look", "colour", "blue") == EditorTaken("blue")
            assert received[1:] == [EditorRender((EditorRow("blue it is"),)), EditorClosed()]


class Chooser(ExtensionServer):
    """Responds to a value as the key of the field defines."""

    id, version = "chooser", "1"

    async def on_editor_commit(self, taken: EditorCommit) -> object:
        match taken.field:
            case "kept":
                return None
            case "own":
                return EditorTaken("other", intent={"kind": "download"})
            case "committed":
                return EditorCommitted("last")
            case "shown":
                return EditorRender((EditorRow("row"),))
            case _:
                return {"path": "models"}


@pytest.mark.parametrize("dialect", ["native", "synaps"])
@pytest.mark.parametrize(
    ("field", "response"),
    [
        ("kept", "blue"),
        ("own", {"value": "other", "intent": {"kind": "download"}}),
        ("committed", "last"),
        ("shown", {"value": "blue", "render": {"rows": [{"label": "row"}]}}),
        ("bare", {"path": "models"}),
    ],
)
async def test_the_response_to_a_value_is_that_value_and_never_null(dialect: str, field: str, response: object) -> None:
    with anyio.fail_after(60):
        async with connected(Chooser(), dialect=dialect) as (host, _):
            params = {"category": "look", "field": field, "value": "blue"}
            assert await host.peer.call("settings.editor.commit", params) == response
