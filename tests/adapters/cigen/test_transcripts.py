"""Recorded conversations are reproduced by our host and by our extension, byte for byte."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from becket.adapters import cigen
from becket.adapters.cigen.messages import proto_name
from becket.adapters.cigen.protobuf import get_codec
from becket.testing import check_dialect

CLASSES = {proto_name(one): one for name in cigen.__all__ if isinstance(one := getattr(cigen, name), type)}
TRANSCRIPTS = sorted((Path(__file__).parents[2] / "transcripts" / "cigen").glob("*.jsonl"))


@pytest.mark.loops
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
async def test_a_recorded_conversation_is_reproduced(transcript: Path) -> None:
    await check_dialect("cigen", transcript)


def test_the_readable_text_matches_the_recorded_bytes() -> None:
    entries = [json.loads(line) for path in TRANSCRIPTS for line in path.read_text(encoding="utf-8").splitlines()]
    received = [(entry["base64"], *entry["says"].items()) for entry in entries if "says" in entry]

    assert len(received) > 50
    for body, (kind, message) in received:
        assert get_codec(CLASSES[kind]).encode(json.dumps(message).encode()) == b64decode(body)
