"""Links lead somewhere, targets of make exist, tables are whole, and blocks are of the kinds that are tested."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.pages import FENCE, PAGES, ROOT, read_blocks, read_links, read_page, slug_of
from tools.site_pages import ROOT_PAGES

from becket.host.starting.becket_toml import parse_manifest

WRITTEN_BY_THE_BENCHMARKS = {ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmark.svg"}
TESTED = {"python", "js", "toml", "console", "wire", "talk"}
SHOWN_ONLY = {"text", "sh", "json", "mermaid", "rust"}  # those of a kit are tested with it, in its README

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@pages
def test_every_link_leads_to_a_file_or_a_heading(page: Path) -> None:
    missing: list[str] = []
    for link in read_links(page):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target in WRITTEN_BY_THE_BENCHMARKS:
            continue
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            missing.append(link)
    assert missing == []


def test_the_index_lists_every_page_once() -> None:
    index = ROOT / "docs" / "index.md"
    table = [line.split("|")[1] for line in read_page(index).splitlines() if line.startswith("| [")]
    listed = [re.findall(r"\((.+?)\)", cell)[0] for cell in table]

    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md") if page != index)


def test_the_site_lists_every_page_once() -> None:
    listed = re.findall(
        r"- (?:[\w ]+: )?([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE
    )

    assert sorted(set(listed) - set(ROOT_PAGES.values())) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))
    assert len(listed) == len(set(listed))


def anchors_of(page: Path) -> set[str]:
    return {slug_of(heading) for heading in re.findall(r"^#+ (.+)$", read_page(page), flags=re.MULTILINE)}


@pages
def test_every_block_is_of_a_known_kind(page: Path) -> None:
    assert {block.language for block in read_blocks(page)} <= TESTED | SHOWN_ONLY


@pages
def test_every_row_of_a_table_has_as_many_cells_as_its_head(page: Path) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", FENCE.sub("", read_page(page)), flags=re.MULTILINE)
    rows = [table.splitlines() for table in tables]

    assert [row for first, *others in rows for row in others if bars_in(row) != bars_in(first)] == []


def bars_in(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row))


@pages
def test_every_json_text_is_json(page: Path) -> None:
    for block in read_blocks(page):
        if block.language == "json":
            json.loads(block.text)


@pages
def test_every_target_of_make_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", read_page(page), flags=re.MULTILINE))
    assert named <= targets


@pages
def test_every_file_that_is_named_with_its_folder_exists(page: Path) -> None:
    named = re.findall(r"`((?:src|tests|docs|examples|schemas|benchmarks)/[\w./-]+)`", read_page(page))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pages
def test_every_manifest_can_be_used(page: Path) -> None:
    for block in read_blocks(page):
        if block.language == "toml" and block.text.startswith("# becket.toml\n"):
            parse_manifest(tomllib.loads(block.text), str(block))
        elif block.language == "toml":
            tomllib.loads(block.text)


FILES = {"becket.schema.json", "becket.toml", "morphir.toml", "roder.toml"}
LOGGERS_AND_FILES = FILES | {"becket.ext", "becket.lsp", "becket.check"}
HISTORY = {"CHANGELOG.md", "upgrading.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in HISTORY], ids=lambda page: page.name)
def test_every_dotted_name_of_becket_exists(page: Path) -> None:
    text = FENCE.sub("", read_page(page))
    named = set(re.findall(r"`(becket(?:\.\w+)+)", text)) - LOGGERS_AND_FILES
    adapted = set(re.findall(r"`((?:cigen|lsp|morphir|nexo|roder)\.\w+)", text)) - LOGGERS_AND_FILES

    assert [name for name in sorted(named | {f"becket.adapters.{name}" for name in adapted}) if not is_name(name)] == []


def is_name(dotted: str) -> bool:
    """Returns whether a dotted name leads to a module or an attribute."""
    try:
        find(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def find(dotted: str) -> object:
    try:
        return import_module(dotted)
    except ModuleNotFoundError:
        above, _, name = dotted.rpartition(".")
        return getattr(find(above), name)
