"""Conversations of nexo, reproduced with our host and with our extension, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from becket.adapters.nexo import NexoManifest
from becket.testing import check_dialect

TRANSCRIPTS = sorted((Path(__file__).parents[2] / "transcripts" / "nexo").glob("*.jsonl"))


def read_manifest(given: Any) -> NexoManifest:
    return NexoManifest(**given or {})


@pytest.mark.loops
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
async def test_host_and_extension_reproduce_the_recording(path: Path) -> None:
    await check_dialect("nexo", path, extra=read_manifest)
