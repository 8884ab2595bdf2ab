"""The lines of a sidecar: valid ones are decoded, others are refused."""

from __future__ import annotations

import msgspec
import pytest

from becket.contract.sidecar import (
    SIDECAR_VERSION,
    CustomSidecarEvent,
    InsertMode,
    InsertText,
    KnownSidecarEvent,
    SidecarCommand,
    SidecarConfig,
    SidecarFailed,
    SidecarHello,
    SidecarInit,
    SidecarShutdown,
    SidecarStatus,
    SidecarTrigger,
    check_hello,
    decode_command,
    decode_event,
    encode_line,
)
from becket.errors import BadMessage, RemoteProtocolError


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (SidecarInit(SidecarConfig()), b'{"type":"init","config":{"protocol_version":2}}\n'),
        (SidecarTrigger("press"), b'{"type":"trigger","name":"press"}\n'),
        (SidecarTrigger("press", {}), b'{"type":"trigger","name":"press","payload":{}}\n'),
        (SidecarShutdown(), b'{"type":"shutdown"}\n'),
    ],
)
def test_commands_of_the_host_are_encoded_and_decoded(command: SidecarCommand, line: bytes) -> None:
    assert encode_line(command) == line
    assert decode_command(line) == command


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (SidecarHello(2, "x"), b'{"type":"hello","protocol_version":2,"extension":"x","capabilities":[]}\n'),
        (SidecarStatus("ready", "L"), b'{"type":"status","state":"ready","label":"L"}\n'),
        (SidecarStatus("ready"), b'{"type":"status","state":"ready"}\n'),
        (InsertText("t", InsertMode.FINAL), b'{"type":"insert_text","text":"t","mode":"final"}\n'),
        (SidecarFailed("m"), b'{"type":"error","message":"m"}\n'),
    ],
)
def test_events_of_the_sidecar_are_encoded_and_decoded(event: KnownSidecarEvent, line: bytes) -> None:
    assert encode_line(event) == line
    assert decode_event(line) == event


def test_an_unknown_type_belongs_to_the_sidecar() -> None:
    event = decode_event(b'{"level":0.5,"type":"level","more":[1]}')

    assert event == CustomSidecarEvent("level", {"level": 0.5, "more": [1]})


def test_unknown_members_are_ignored() -> None:
    assert decode_command(b'{"type":"init","config":{"protocol_version":2,"mode":"x"},"y":1}') == SidecarInit(
        SidecarConfig(2)
    )


@pytest.mark.parametrize(
    ("line", "pointer"),
    [
        (b"", ""),
        (b"{", ""),
        (b"[]", ""),
        (b"{}", ""),
        (b'{"type":1}', "/type"),
        (b'{"type":"hello"}', ""),
        (b'{"type":"hello","protocol_version":"2","extension":"x"}', "/protocol_version"),
        (b'{"type":"insert_text","text":"t","mode":"x"}', "/mode"),
        (b'{"type":"error","message":""}', "/message"),
        (b'{"type":"other","x":}', ""),
        (b'{"type":"other","x":"\xff"}', ""),
    ],
)
def test_an_invalid_event_is_refused(line: bytes, pointer: str) -> None:
    with pytest.raises(BadMessage) as caught:
        decode_event(line)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("line", [b"{}", b'{"type":"hello"}', b'{"type":"trigger"}', b"1"])
def test_an_invalid_command_is_refused(line: bytes) -> None:
    with pytest.raises(BadMessage):
        decode_command(line)


@pytest.mark.parametrize("version", [2, 3])
def test_a_sidecar_of_this_version_or_a_later_one_is_accepted(version: int) -> None:
    check_hello(SidecarHello(version, "voice"))


@pytest.mark.parametrize("version", [1, 0, -1])
def test_an_older_sidecar_is_refused_and_both_versions_are_named(version: int) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        check_hello(SidecarHello(version, "voice"))
    assert all(str(part) in str(caught.value) for part in ("voice", version, SIDECAR_VERSION))


@pytest.mark.parametrize(("state", "is_active"), [("idle", False), ("ready", False), ("stopped", False), ("x", True)])
def test_a_sidecar_is_active_in_every_state_but_the_inactive_ones(state: str, is_active: bool) -> None:
    assert SidecarStatus(state).is_active is is_active


def test_each_message_is_one_line() -> None:
    assert encode_line(InsertText("a\nb\r\u2028", InsertMode.APPEND)).count(b"\n") == 1
    assert msgspec.json.decode(encode_line(SidecarFailed("a\nb")))["message"] == "a\nb"
