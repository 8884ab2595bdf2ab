"""Recorded conversations are held anew by our host and by our extension, byte for byte."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from becket.dialects import cigen
from becket.dialects.cigen.protobuf import form_of
from becket.testing import check_dialect

TRANSCRIPTS = sorted((Path(__file__).parents[2] / "transcripts" / "cigen").glob("*.jsonl"))


@pytest.mark.loops
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
async def test_a_conversation_goes_as_it_was_recorded(transcript: Path) -> None:
    await check_dialect("cigen", transcript)


def test_what_stands_beside_the_bytes_for_people_is_what_they_say() -> None:
    entries = [json.loads(line) for path in TRANSCRIPTS for line in path.read_text(encoding="utf-8").splitlines()]
    told = [(entry["base64"], *entry["says"].items()) for entry in entries if "says" in entry]

    assert len(told) > 50
    for body, (kind, message) in told:
        assert form_of(getattr(cigen, kind)).encode(json.dumps(message).encode()) == b64decode(body)
