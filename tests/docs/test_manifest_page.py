"""The TOML on the page about manifests is valid: a manifest, a part of one, or grants."""

from __future__ import annotations

import pytest
from tests.docs.manifest_tables import TABLES, kind_of, render_table
from tests.docs.pages import ROOT, Block, read_blocks

from becket.conversion.files.toml import parse_toml
from becket.host.starting.becket_toml import parse_manifest
from becket.host.starting.grants_file import rewrite_grants
from becket.host.starting.manifest import Manifest
from becket.json_schema.files import load_schema

BLOCKS = [block for block in read_blocks(ROOT / "docs" / "manifest.md") if block.language == "toml"]
LEAST = {"id": "sample", "version": "1.0.0", "command": ["./sample"]}


def test_there_are_samples() -> None:
    assert BLOCKS


@pytest.mark.parametrize("block", [block for block in BLOCKS if not block.words], ids=str)
def test_a_sample_of_a_manifest_can_be_read(block: Block) -> None:
    table = parse_toml(block.text.encode(), str(block))

    assert parse_manifest(table if "id" in table else LEAST | table, str(block))


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.words], ids=str)
def test_a_sample_of_grants_can_be_read_and_changed(block: Block) -> None:
    assert block.words == ("grants",)
    assert rewrite_grants(block.text, "none", None) == block.text


def test_every_table_of_the_schema_is_on_the_page() -> None:
    tables = {name for name, part in load_schema("manifest")["$defs"].items() if "properties" in part}

    assert tables == set(TABLES)


def test_every_key_has_a_row() -> None:
    rows = render_table("manifest").splitlines()[2:]

    assert len(rows) == len(Manifest.__struct_fields__)
    assert "| **`command`** | list of strings |" in render_table("manifest")
    assert "| `config` | table of tables |" in render_table("manifest")


def test_a_kind_is_described_in_few_words() -> None:
    schema = load_schema("manifest")

    assert kind_of({"type": ["string", "number"]}, schema) == "string or number"
    assert kind_of({"enum": ["a", "b"]}, schema) == "`a` or `b`"
    assert kind_of({"const": 1}, schema) == "`1`"
    assert kind_of({"type": "object", "additionalProperties": {"type": "string"}}, schema) == "table of strings"
    assert kind_of({"type": "object", "additionalProperties": {"type": ["string"]}}, schema) == "table of values"
    assert kind_of({"type": "object"}, schema) == "table"
