"""The samples that all readers of the schemas are checked with: JSON files of good and bad ones for each definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FOLDER = Path(__file__).parent / "samples"


class Sample(NamedTuple):
    """A value, and whether it is of this definition."""

    schema: str
    definition: str
    value: Any
    is_good: bool


class GoodAndBad(msgspec.Struct, forbid_unknown_fields=True):
    good: list[Any]
    bad: list[Any]


def load_samples() -> list[Sample]:
    samples: list[Sample] = []
    for file in sorted(FOLDER.glob("*.json")):
        for definition, kinds in msgspec.json.decode(file.read_bytes(), type=dict[str, GoodAndBad]).items():
            samples += [Sample(file.stem, definition, value, True) for value in kinds.good]
            samples += [Sample(file.stem, definition, value, False) for value in kinds.bad]
    return samples
