"""The generated parts of the documentation are as the code is now."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.generated import PARTS, describe_fields, render_page, walk
from tests.docs.pages import PAGES, ROOT, read_page

from becket import errors
from becket.errors import BecketError, CallTimeout, PeerCrashed, RequestCancelled


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_generated_parts_are_up_to_date(page: Path) -> None:
    assert read_page(page) == render_page(read_page(page)), "run `python -m tests.docs` and look at the difference"


def test_every_part_is_used_on_some_page() -> None:
    text = "".join(map(read_page, PAGES))
    assert [name for name in PARTS if f"<!-- generated: {name} -->" not in text] == []


def test_every_error_is_on_the_page_of_errors() -> None:
    page = read_page(ROOT / "docs" / "errors.md")
    assert [kind.__name__ for kind, _ in walk(BecketError) if f"{kind.__name__}`" not in page] == []
    exported = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert {kind.__name__ for kind, _ in walk(BecketError)} == exported - {"Meaning", "DisconnectReason"}


def test_fields_include_those_of_the_constructor_and_of_the_base_class() -> None:
    assert describe_fields(CallTimeout) == "method, seconds"
    assert describe_fields(PeerCrashed) == "exit_code, signal, stderr_tail; those of `ConnectionLost`"
    assert describe_fields(RequestCancelled) == "those of `RpcError`"
