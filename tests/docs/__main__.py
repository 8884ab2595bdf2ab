"""Writes the generated parts of the documentation."""

from __future__ import annotations

from tests.docs.generated import write_pages
from tests.docs.pages import PAGES, ROOT

for page in write_pages(PAGES):
    print(f"written: {page.relative_to(ROOT)}")
