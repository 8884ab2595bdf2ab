"""Conversations of Roder, reproduced with our host and with our extension, byte for byte."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from becket.adapters.roder import EventFilter, LoadedManifest, RoderManifest
from becket.testing import check_dialect
from becket.testing.transcripts.file_format import load_transcript

TRANSCRIPTS = sorted((Path(__file__).parents[2] / "transcripts" / "roder").glob("*.jsonl"))


def read_manifest(given: Any) -> LoadedManifest:
    text = given["manifest"]
    manifest = msgspec.convert(tomllib.loads(text), RoderManifest)
    kinds = tuple(given.get("kinds", ()))
    return LoadedManifest.from_bytes(manifest, text.encode(), event_filter=EventFilter(kinds), cwd=given.get("cwd"))


@pytest.mark.loops
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
async def test_host_and_extension_reproduce_the_recording(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = load_transcript(path)
    manifest = tmp_path / "roder-extension.toml"
    manifest.write_text(transcript.given["extra"]["manifest"], encoding="utf-8")
    monkeypatch.setenv("RODER_EXTENSION_MANIFEST", str(manifest))

    await check_dialect("roder", [transcript], extra=read_manifest)
