"""The settings editor, widgets and info: the wire form, directions and timeouts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS, BuildInfo, ExtensionInfo, ModelInfo, SidecarArgs
from becket.contract.settings import (
    SETTINGS_EDITOR_CLOSE,
    SETTINGS_EDITOR_COMMIT,
    SETTINGS_EDITOR_COMMITTED,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_OPEN,
    SETTINGS_EDITOR_RENDER,
    EditorClosed,
    EditorCommit,
    EditorKey,
    EditorOpened,
    EditorRender,
    EditorRow,
    EditorTaken,
    parse_render,
    read_taken,
)
from becket.contract.widgets import WIDGET_DISMISS, WIDGET_UPSERT, Position, StyledText, WidgetDismiss, WidgetUpsert


@pytest.mark.parametrize(
    ("message", "travels"),
    [
        (EditorKey("c", "f", "Down"), {"category": "c", "field": "f", "key": "Down"}),
        (EditorCommit("c", "f", None), {"category": "c", "field": "f", "value": None}),
        (EditorRow("l"), {"label": "l"}),
        (EditorRow("l", "✓", False, 1), {"label": "l", "marker": "✓", "selectable": False, "data": 1}),
        (EditorRender((EditorRow("l"),), 0, "f"), {"rows": [{"label": "l"}], "cursor": 0, "footer": "f"}),
        (EditorOpened("c", "f", EditorRender(())), {"category": "c", "field": "f", "render": {"rows": []}}),
        (EditorClosed(), {}),
        (WidgetUpsert("w", ()), {"id": "w", "lines": []}),
        (
            WidgetUpsert("w", ("a",), Position.CENTER, "t", 0, ((StyledText("a", "#fff"),),)),
            {
                "id": "w",
                "lines": ["a"],
                "position": "center",
                "title": "t",
                "ttl_secs": 0,
                "styled_lines": [[{"text": "a", "fg": "#fff"}]],
            },
        ),
        (WidgetDismiss("w"), {"id": "w"}),
        (ExtensionInfo(), {}),
        (
            ExtensionInfo(BuildInfo("cpu"), models=(ModelInfo("m"),)),
            {"build": {"backend": "cpu"}, "models": [{"id": "m"}]},
        ),
        (SidecarArgs(), {}),
        (SidecarArgs(("--a",), "en"), {"args": ["--a"], "language": "en"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_encoded_messages_decode_to_the_same(message: object, travels: dict[str, Any]) -> None:
    raw = msgspec.json.encode(message)

    assert msgspec.json.decode(raw) == travels
    assert msgspec.json.decode(raw, type=type(message)) == message


def test_a_widget_is_at_the_top_right_by_default() -> None:
    received = msgspec.json.decode(b'{"id":"w","lines":[],"position":null}', type=WidgetUpsert)

    assert received.position is WidgetUpsert("w", ()).position is Position.TOP_RIGHT
    assert len(Position) == 9


@pytest.mark.parametrize(
    "method",
    [SETTINGS_EDITOR_OPEN, SETTINGS_EDITOR_KEY, SETTINGS_EDITOR_COMMIT, INFO_GET, SIDECAR_SPAWN_ARGS],
    ids=lambda method: method.name,
)
def test_a_host_request_times_out_after_five_seconds(method: Any) -> None:
    assert method.direction == "to-extension"
    assert method.timeout == 5.0
    assert method.requires is None


@pytest.mark.parametrize(
    "notification",
    [SETTINGS_EDITOR_RENDER, SETTINGS_EDITOR_COMMITTED, SETTINGS_EDITOR_CLOSE, WIDGET_UPSERT, WIDGET_DISMISS],
    ids=lambda notification: notification.name,
)
def test_the_extension_sends_notifications(notification: Any) -> None:
    assert notification.direction == "to-host"


def test_info_and_sidecar_arguments_are_requested_without_params() -> None:
    assert INFO_GET.params is None
    assert SIDECAR_SPAWN_ARGS.params is None


def test_the_value_of_an_editor_has_one_name_in_both_directions() -> None:
    assert SETTINGS_EDITOR_COMMIT.name == SETTINGS_EDITOR_COMMITTED.name == "settings.editor.commit"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"category": "c", "field": "f", "render": {"rows": [{"label": "l"}]}}, EditorRender((EditorRow("l"),))),
        ({"category": "c", "field": "f"}, None),
        ({"category": "c", "field": "f", "render": None}, None),
        ({"category": "c", "field": "f", "render": {"rows": "l"}}, None),
        ({"render": {"rows": [{"label": "l"}]}}, EditorRender((EditorRow("l"),))),
        ({"rows": [{"label": "l"}], "cursor": 0}, EditorRender((EditorRow("l"),), 0)),
        ({"rows": "l"}, None),
        ("anything", None),
        (None, None),
    ],
)
def test_a_render_is_read_in_three_forms_and_any_other_response_shows_nothing_new(
    answer: object, shown: EditorRender | None
) -> None:
    assert parse_render(answer) == shown


@pytest.mark.parametrize(
    ("response", "taken"),
    [
        ("small", EditorTaken("small")),
        (0, EditorTaken(0)),
        (False, EditorTaken(False)),
        ({"path": "a"}, EditorTaken({"path": "a"})),
        ({"value": "small"}, EditorTaken("small")),
        ({"value": None}, EditorTaken(None)),
        ({"ok": True, "intent": {"kind": "download"}}, EditorTaken("given", {"kind": "download"})),
        ({"value": "small", "intent": 1}, EditorTaken("small", 1)),
        ({"render": {"rows": []}}, EditorTaken("given", None, EditorRender(()))),
        (None, EditorTaken("given")),
    ],
)
def test_the_response_to_a_value_has_the_value_to_store(response: object, taken: EditorTaken) -> None:
    assert read_taken(response, "given") == taken
