"""Recorded conversations are reproduced by our host and by our extension, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.testing import check_dialect

TRANSCRIPTS = sorted((Path(__file__).parents[2] / "transcripts" / "morphir").glob("*.jsonl"))


@pytest.mark.loops
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
async def test_a_recorded_conversation_is_reproduced(transcript: Path) -> None:
    await check_dialect("morphir", transcript)
