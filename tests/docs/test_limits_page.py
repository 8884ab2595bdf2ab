"""The table of limits matches `limits.py`: names, order and defaults."""

from __future__ import annotations

import re

import msgspec
from tests.docs.pages import ROOT, read_page

from becket import Limits

UNITS = {"": 1, "KiB": 1024, "MiB": 1024 * 1024, "s": 1, "ms": 0.001}
ROW = re.compile(r"^\| `(\w+)` \| ([\d.,]+) ?(\w*) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
PAGE = ROOT / "docs" / "limits.md"


def test_every_limit_is_in_the_table_with_its_default() -> None:
    shown = {name: float(number.replace(",", "")) * UNITS[unit] for name, number, unit, *_ in rows()}
    assert shown == msgspec.structs.asdict(Limits())
    assert list(shown) == list(Limits.__struct_fields__)


def test_every_limit_has_a_reason() -> None:
    assert [name for name, _, _, because, _ in rows() if len(because) < 10] == []


def rows() -> list[tuple[str, ...]]:
    return ROW.findall(read_page(PAGE))
