"""The schema files are found, are valid schemas, and match the wire."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from becket.json_schema.files import load_schema, schema_names

CHECKOUT = Path(__file__).parents[2] / "schemas"


def with_examples(schema: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yields each part of a schema that has examples, with its pointer."""
    if isinstance(schema, dict):
        if isinstance(schema.get("examples"), list):
            yield pointer, schema
        for key, value in schema.items():
            if key != "examples":
                yield from with_examples(value, f"{pointer}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from with_examples(value, f"{pointer}/{index}")


@cache
def registry() -> Registry[Any]:
    """Returns all schemas by their ids: they refer to each other."""
    schemas = (load_schema(name) for name in schema_names())
    return Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in schemas)


def is_valid(name: str, value: object, pointer: str = "") -> bool:
    part = {"$ref": f"{load_schema(name)['$id']}#{pointer}"}
    return Draft202012Validator(part, registry=registry()).is_valid(value)


# -- all schemas


def test_the_envelope_is_among_the_names() -> None:
    assert "envelope" in schema_names()


@pytest.mark.skipif(not CHECKOUT.is_dir(), reason="runs outside a checkout")
def test_every_schema_of_the_repository_is_found() -> None:
    assert schema_names() == sorted(file.name.removesuffix(".schema.json") for file in CHECKOUT.glob("*.schema.json"))


def test_the_schemas_of_the_package_come_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "shipped.schema.json").write_bytes(b'{"title": "Shipped"}')
    (tmp_path / "schemas" / "shipped.proto").touch()
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)

    assert schema_names() == ["shipped"]
    assert load_schema("shipped") == {"title": "Shipped"}


@pytest.mark.parametrize("name", schema_names())
def test_each_is_a_schema_of_2020_12_with_a_stable_id(name: str) -> None:
    schema = load_schema(name)

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://becket.dev/schemas/{name}.schema.json"


@pytest.mark.parametrize("name", schema_names())
def test_every_example_fits_the_part_that_it_illustrates(name: str) -> None:
    parts = list(with_examples(load_schema(name)))

    assert parts
    misfits = [(at, one) for at, part in parts for one in part["examples"] if not is_valid(name, one, at)]
    assert misfits == []


def test_a_schema_is_read_afresh_each_time() -> None:
    load_schema("envelope").clear()

    assert load_schema("envelope")["title"]


@pytest.mark.parametrize("name", ["", "no-such", "../pyproject", "envelope.schema.json", "/etc/passwd"])
def test_the_error_for_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(LookupError, match="envelope"):
        load_schema(name)


# -- the envelope


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("request", {"jsonrpc": "2.0", "id": 1, "method": "m"}),
        ("request", {"jsonrpc": "2.0", "id": "", "method": "m", "params": []}),
        ("request", {"jsonrpc": "2.0", "id": None, "method": "m"}),
        ("request", {"jsonrpc": "2.0", "id": 1.5, "method": "m", "extra": True}),
        ("notification", {"jsonrpc": "2.0", "method": "m", "params": {}}),
        ("success", {"jsonrpc": "2.0", "id": 1, "result": None}),
        ("failure", {"jsonrpc": "2.0", "id": None, "error": {"code": 0, "message": "", "data": None}}),
        ("batch", [{"jsonrpc": "2.0", "method": "m"}, {"jsonrpc": "2.0", "id": 1, "result": 1}]),
    ],
)
def test_the_envelope_takes_each_message_as_one_kind(kind: str, message: object) -> None:
    kinds = ["request", "notification", "success", "failure", "batch"]

    assert is_valid("envelope", message)
    assert [each for each in kinds if is_valid("envelope", message, f"/$defs/{each}")] == [kind]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"id": 1, "method": "m"}, id="no-version"),
        pytest.param({"jsonrpc": "1.0", "id": 1, "method": "m"}, id="other-version"),
        pytest.param({"jsonrpc": 2.0, "id": 1, "method": "m"}, id="version-is-a-number"),
        pytest.param({"jsonrpc": "2.0", "id": 1}, id="neither-call-nor-response"),
        pytest.param({"jsonrpc": "2.0", "id": True, "method": "m"}, id="bool-id"),
        pytest.param({"jsonrpc": "2.0", "id": {}, "method": "m"}, id="object-id"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": 1}, id="method-is-a-number"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": "m", "params": None}, id="null-params"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": "m", "params": "text"}, id="text-params"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": "m", "result": 1}, id="call-and-response"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": "m"}}, id="both-ends"),
        pytest.param({"jsonrpc": "2.0", "result": 1}, id="response-without-id"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"message": "m"}}, id="error-without-code"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, id="error-without-message"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": "m"}}, id="fractional-code"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": "text"}, id="text-error"),
        pytest.param([], id="empty-batch"),
        pytest.param([1], id="batch-of-numbers"),
        pytest.param([[{"jsonrpc": "2.0", "method": "m"}]], id="batch-in-a-batch"),
        pytest.param("text", id="text"),
        pytest.param(None, id="null"),
    ],
)
def test_the_envelope_refuses_other_values(message: object) -> None:
    assert not is_valid("envelope", message)
