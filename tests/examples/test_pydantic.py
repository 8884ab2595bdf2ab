"""The example with pydantic models prints the documented output."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.examples.example_programs import printed_by

pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra `test`")
pytestmark = [pytest.mark.process]


def test_tools_take_and_return_pydantic_models(tmp_path: Path) -> None:
    assert printed_by("pydantic_tools.py", folder=tmp_path) == [
        "lend takes title, days",
        "lend returns title, dueDate",
        '{"title":"Eliza","dueDate":"2026-01-08"}',
        "/colour is unknown",
        "/days expected `integer`, got `string`",
        "/title is missing",
    ]
