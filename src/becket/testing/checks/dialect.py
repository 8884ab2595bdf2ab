"""`check_dialect`: replays transcripts against our host and our extension, byte for byte.

Each transcript is replayed twice: our host with the recorded extension, and our `ExtensionServer` with the recorded
host. The dialect's mapping gives the meaning of the recorded frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from becket.dialects import Dialect, find_dialect
from becket.testing.transcripts.conformance import ExtraDecoder, RecordedSession
from becket.testing.transcripts.extension_conformance import ExtensionConformanceRun
from becket.testing.transcripts.file_format import LinkEnd, Transcript, load_transcript
from becket.testing.transcripts.host_conformance import HostConformanceRun

__all__ = ["check_dialect"]


async def check_dialect(
    dialect: Dialect | str,
    transcripts: Iterable[Transcript | Path | str] | Path | str,
    *,
    extra: ExtraDecoder | None = None,
    **options: Any,
) -> None:
    """Replays transcripts with our host and with our extension, and compares what they send with the recording.

    `transcripts` are files, folders of files that end with `.jsonl`, or results of `load_transcript`. `extra` decodes
    `given.extra` of a transcript, which stands for the dialect's own manifest; further options are those of
    `connect_extension`.

    `timeout_ms` of a request may be shorter than the recorded one by the elapsed time, so that a busy machine makes no
    difference.

    Raises:
        AssertionError: what differs, in which transcript and entry, and from which byte on.
        BadFile: a file is not a transcript.
    """
    dialect = find_dialect(dialect)
    problems: list[str] = []
    for name, transcript in find_transcripts(transcripts):
        for end in transcript.ours:
            recorded = RecordedSession(dialect, transcript, extra)
            rehearsal = (
                HostConformanceRun(recorded, options) if end is LinkEnd.HOST else ExtensionConformanceRun(recorded)
            )
            problems += [f"{name}, our {rehearsal.role}, {problem}" for problem in await rehearsal.run()]
    if problems:
        raise AssertionError("\n".join(problems))


def find_transcripts(transcripts: Iterable[Transcript | Path | str] | Path | str) -> Iterator[tuple[str, Transcript]]:
    """Yields all transcripts, each with a name.

    Raises:
        ValueError: there is none.
    """
    several = [transcripts] if isinstance(transcripts, Path | str) else [*transcripts]
    found = False
    for number, one in enumerate(several, 1):
        if isinstance(one, Transcript):
            found = True
            yield f"transcript {number}", one
            continue
        path = Path(one)
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            found = True
            yield str(file), load_transcript(file)
    if not found:
        raise ValueError(f"no transcript in {', '.join(map(str, several))}")
