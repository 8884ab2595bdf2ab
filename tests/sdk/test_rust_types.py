"""The types that are emitted for the kit for Rust."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tools.sdk.model import Alias, Enumeration, Field, JsonObject, Model, Named, Record, Scalar, TaggedUnion
from tools.sdk.rust import emit

CONTRACT = Path(__file__).parents[2] / "sdk" / "rust" / "src" / "contract.rs"


def emit_types(*types: Record | Enumeration | TaggedUnion | Alias) -> str:
    return emit(Model(types=types, methods=(), protocol_version=1, features=("ping",), errors={"busy": 1002}))


def test_members_have_the_types_and_the_defaults_of_the_contract() -> None:
    text = emit_types(
        Alias(name="Name", doc="A name.", family="tools"),
        Record(
            name="Call",
            doc="A call.",
            family="tools",
            fields=(
                Field(name="name", doc="", type=Named("Name"), required=True, nullable=False),
                Field(name="match", doc="Which.", type=JsonObject(), required=False, nullable=True),
                Field(name="count", doc="", type=Scalar("integer", 0), required=False, nullable=False, default=0),
            ),
        ),
    )

    assert "    /// A name.\n    pub name: String,\n" in text
    assert (
        '#[serde(default, skip_serializing_if = "Option::is_none")]\n    pub r#match: Option<Map<String, Value>>,'
        in text
    )
    assert '#[serde(default, skip_serializing_if = "is_default")]\n    pub count: u64,' in text
    assert "pub fn new(name: impl Into<String>) -> Self {" in text
    assert "pub fn with_match(mut self, r#match: impl Into<Map<String, Value>>) -> Self {" in text


def test_a_tagged_union_is_an_enum_with_a_case_for_later_versions() -> None:
    text = emit_types(
        TaggedUnion(name="Event", doc="An event.", family="x", tag="kind", cases={"text": "Text", "all_done": "Done"}),
        Record(
            name="Text",
            doc="A text.",
            family="x",
            tag=("kind", "text"),
            fields=(Field(name="content", doc="", type=Scalar("string"), required=True, nullable=False),),
        ),
        Record(name="Done", doc="The end.", family="x", fields=(), tag=("kind", "all_done")),
    )

    assert '#[serde(tag = "kind")]\n#[non_exhaustive]\npub enum Event {' in text
    assert '#[serde(rename = "all_done")]\n    AllDone,' in text
    assert "#[serde(other, skip_serializing)]\n    Unknown," in text
    assert "pub struct Text" not in text


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")
def test_the_emitted_file_is_formatted() -> None:
    subprocess.run(["rustfmt", "--check", "--edition", "2024", CONTRACT], check=True, timeout=60)
