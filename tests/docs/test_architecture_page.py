"""The maintainers' pages name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.architecture_tables import PACKAGE, summary_of
from tests.docs.pages import FENCE, ROOT, read_page

PAGES = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"]
NAMED = re.compile(r"`([\w.-]+/[\w./-]*|\w+\.py)`")
MADE_BY_MAKE = {"build/dist/"}
IN_EACH_ADAPTER = {"dialect.py", "manifest_reader.py"}
IN_SOME_ADAPTERS = {"messages.py", "mapping.py"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_named_file_exists(page: Path) -> None:
    named = set(NAMED.findall(FENCE.sub("", read_page(page)))) - IN_EACH_ADAPTER - IN_SOME_ADAPTERS - MADE_BY_MAKE

    assert sorted(name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()) == []


@pytest.mark.parametrize("name", sorted(IN_EACH_ADAPTER | IN_SOME_ADAPTERS))
def test_the_modules_that_adapters_share_have_these_names(name: str) -> None:
    adapters = [folder for folder in (PACKAGE / "adapters").iterdir() if (folder / "dialect.py").exists()]
    having = [folder for folder in adapters if (folder / name).exists() or (folder / name[:-3]).is_dir()]

    assert len(having) >= len(adapters) - 2


@pytest.mark.parametrize(
    "words", ["a framing:", "a permission decision", "a restart decision", "the field names of a dialect"], ids=str
)
def test_the_first_table_names_the_file_for_each_topic_of_a_newcomer(words: str) -> None:
    (row,) = [line for line in read_page(PAGES[0]).splitlines() if line.startswith("|") and words in line.split("|")[1]]

    assert NAMED.search(row.split("|")[2])


def test_every_package_has_a_summary() -> None:
    packages = [file.parent.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("__init__.py")]

    assert [name for name in packages if name != "." and not summary_of(name)] == []
