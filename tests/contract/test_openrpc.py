"""The OpenRPC document names every method, matches the code, and has no broken references."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.contract.shapes import NOTIFIED, REQUESTS
from tools.sdk.openrpc import FILE, OWN_ERRORS, build_document

from becket.contract.catalogue import METHODS, NOTIFICATIONS
from becket.contract.hooks import HOOKS
from becket.errors import ERROR_CODES, Meaning
from becket.methods.streams import Stream
from becket.permissions.names import PERMISSIONS

MODULES = Path(__file__).parents[2] / ".node_cache" / "node_modules"
NODE = shutil.which("node")
DOCUMENT = build_document()
DOCUMENTED = DOCUMENT["methods"]
ENTRIES = [*DOCUMENTED, *DOCUMENT["x-notifications"]]
EACH = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])


def test_every_request_and_notification_of_the_contract_is_named() -> None:
    assert [entry["name"] for entry in DOCUMENTED] == [method.name for method in METHODS]
    assert [entry["name"] for entry in DOCUMENT["x-notifications"]] == [received.name for received in NOTIFICATIONS]
    assert set(REQUESTS) == {method.name for method in METHODS}
    assert set(NOTIFIED) == {received.name for received in NOTIFICATIONS}
    assert set(OWN_ERRORS) <= set(REQUESTS)


def test_each_entry_matches_its_descriptor() -> None:
    for entry, descriptor in zip(ENTRIES, [*METHODS, *NOTIFICATIONS], strict=True):
        assert entry["summary"] == descriptor.summary != ""
        assert entry["x-direction"] == descriptor.direction
        if descriptor.requires is not None:
            assert entry["x-permission"] == descriptor.requires
        assert permissions_of(entry) <= PERMISSIONS
        assert bool(entry.get("x-params")) == (descriptor.params is not None)


def permissions_of(entry: Any) -> set[str]:
    needed = entry["x-permission"]
    return set(needed.values()) if isinstance(needed, dict) else {needed} - {None}


def test_the_permission_an_extension_must_hold_for_each_request_is_given() -> None:
    needed = {entry["name"]: entry["x-permission"] for entry in DOCUMENTED if entry["x-direction"] == "to-extension"}

    assert needed["tool.call"] == "tools.register"
    assert needed["provider.complete"] == needed["provider.stream"] == "providers.register"
    assert needed["hook.handle"] == {kind.value: rule.permission for kind, rule in HOOKS.items()}
    assert needed["initialize"] is None


def test_every_request_to_the_extension_but_shutdown_may_fail_as_not_ready() -> None:
    unready = {entry["name"] for entry in DOCUMENTED if {"$ref": "#/components/errors/not-ready"} in entry["errors"]}
    served = {method.name for method in METHODS if method.direction == "to-extension"}

    assert unready == served - {"shutdown"}
    assert DOCUMENT["components"]["errors"]["not-ready"]["code"] == 1005


def test_a_stream_names_its_events_and_how_long_it_waits_for_one() -> None:
    streams = {method.name: method for method in METHODS if isinstance(method, Stream)}
    shown = {entry["name"]: entry for entry in DOCUMENTED if "x-events" in entry}

    assert shown.keys() == streams.keys()
    for name, stream in streams.items():
        assert [event["name"] for event in shown[name]["x-events"]] == list(stream.events)
        assert shown[name]["x-idle-timeout"] == stream.idle_timeout
    assert {entry["name"]: entry["x-timeout"] for entry in DOCUMENTED} == {
        method.name: method.timeout for method in METHODS
    }


# -- it is an OpenRPC document

FIELDS = {
    "document": {"openrpc", "info", "methods", "components"},
    "method": {"name", "summary", "paramStructure", "params", "result", "errors", "examples"},
    "descriptor": {"name", "required", "schema"},
    "example": {"name", "params", "result"},
    "error": {"code", "message"},
}


def find_problems(document: Any) -> Iterator[str]:
    """Yields violations of the part of the OpenRPC specification that is used here."""
    yield from unknown(document, "document")
    if not re.fullmatch(r"1\.[0-9]+\.[0-9]+", document["openrpc"]):
        yield "openrpc: is no version"
    if not (document["info"].get("title") and document["info"].get("version")):
        yield "info: title and version are required"
    for entries in (document["methods"], document["x-notifications"]):
        names = [entry["name"] for entry in entries]
        yield from (f"{name}: comes twice" for name in names if names.count(name) > 1)
        for entry in entries:
            yield from (f"{entry['name']}: {problem}" for problem in find_entry_problems(entry, document))
    yield from (f"{entry['name']}: a request has a result" for entry in document["methods"] if "result" not in entry)
    yield from (f"{received['name']}: has a result" for received in document["x-notifications"] if "result" in received)


def find_entry_problems(entry: Any, document: Any) -> Iterator[str]:
    yield from unknown(entry, "method")
    if entry["paramStructure"] not in ("by-name", "by-position", "either"):
        yield "paramStructure"
    for descriptor in [*entry["params"], *([entry["result"]] if "result" in entry else [])]:
        yield from unknown(descriptor, "descriptor")
        if not isinstance(descriptor["schema"], dict):
            yield f"{descriptor['name']}: has no schema"
    required = [param["required"] for param in entry["params"]]
    if required != sorted(required, reverse=True):
        yield "required params come first"
    for error in entry.get("errors", ()):
        found = document["components"]["errors"].get(error["$ref"].removeprefix("#/components/errors/"))
        if found is None or not isinstance(found["code"], int) or not found["message"]:
            yield f"{error['$ref']}: is no error"
        else:
            yield from unknown(found, "error")
    names = {param["name"] for param in entry["params"]}
    needed = {param["name"] for param in entry["params"] if param["required"]}
    for example in entry["examples"]:
        yield from unknown(example, "example")
        if not needed <= {member["name"] for member in example["params"]} <= names:
            yield f"{example['name']}: other params than the method has"


def unknown(part: Any, kind: str) -> Iterator[str]:
    others = [name for name in part if name not in FIELDS[kind] and not name.startswith("x-")]
    yield from (f"{name}: is unknown in a {kind}" for name in others)


def test_the_file_is_a_valid_openrpc_document() -> None:
    assert list(find_problems(json.loads(FILE.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda document: document.update(extra=1), "extra: is unknown in a document"),
        (lambda document: document.update(openrpc="2"), "openrpc: is no version"),
        (lambda document: document["info"].pop("title"), "info: title and version are required"),
        (lambda document: document["methods"].append(document["methods"][0]), "initialize: comes twice"),
        (lambda document: document["methods"][0].pop("result"), "initialize: a request has a result"),
        (lambda document: document["x-notifications"][0].update(result={"name": "r", "schema": {}}), "has a result"),
        (lambda document: document["methods"][0].update(paramStructure="x"), "initialize: paramStructure"),
        (lambda document: document["methods"][0]["params"].reverse(), "initialize: required params come first"),
        (lambda document: document["methods"][0]["params"][0].update(schema=1), "has no schema"),
        (lambda document: document["components"]["errors"].pop("busy"), "#/components/errors/busy: is no error"),
        (lambda document: document["methods"][2]["examples"][0]["params"].pop(), "other params than the method has"),
    ],
)
def test_the_check_finds_each_kind_of_problem(spoil: Any, problem: str) -> None:
    document = build_document()
    spoil(document)

    assert any(problem in found for found in find_problems(document))


# -- references and examples


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for name, member in part.items():
            if name != "examples":
                yield from references(member)
    elif isinstance(part, list):
        for element in part:
            yield from references(element)


def follow(reference: str) -> Any:
    found: Any = DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


def test_every_reference_leads_somewhere_within_the_document() -> None:
    found = set(references(DOCUMENT))

    assert len(found) > 50
    assert [reference for reference in found if not isinstance(follow(reference), dict)] == []


def fits(reference: str, value: Any) -> bool:
    return bool(Draft202012Validator({"$ref": reference, "components": DOCUMENT["components"]}).is_valid(value))


@EACH
def test_each_example_fits(entry: Any) -> None:
    assert entry["examples"]
    for example in entry["examples"]:
        params = {member["name"]: member["value"] for member in example["params"]}
        assert fits(entry["x-params"]["$ref"], params) if "x-params" in entry else params == {}
        if "$ref" in entry.get("result", {}).get("schema", {}):
            assert fits(entry["result"]["schema"]["$ref"], example["result"]["value"])


@EACH
def test_each_param_is_described_by_the_member_of_the_whole_or_of_a_case(entry: Any) -> None:
    for param in entry["params"]:
        whole = entry["x-params"]["$ref"]
        cases = [case["$ref"] for case in follow(whole).get("oneOf", ())] or [whole]
        assert param["schema"]["$ref"] in [f"{case}/properties/{param['name']}" for case in cases]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="there is no `node`")
@pytest.mark.skipif(
    not (MODULES / "@open-rpc" / "schema-utils-js").is_dir(), reason="the parser is not installed: run `make node`"
)
@pytest.mark.timeout(90)  # Node starts slowly on a busy machine
def test_the_parser_of_openrpc_dereferences_the_document() -> None:
    done = subprocess.run(
        [NODE or "node", Path(__file__).with_name("dereference_openrpc.js"), FILE],
        stdout=subprocess.PIPE,
        env={**os.environ, "NODE_PATH": str(MODULES)},
        check=True,
        timeout=60,
    )

    methods = {method["name"]: method for method in json.loads(done.stdout)["methods"]}
    capabilities = methods["initialize"]["result"]["schema"]["properties"]["capabilities"]
    assert methods.keys() == {method.name for method in METHODS}
    assert capabilities["properties"]["tools"]["items"]["properties"]["input_schema"]["type"] == "object"
    assert [method["name"] for method in methods.values() if list(references(method["result"]))] == []
    assert [method["name"] for method in methods.values() if list(references(method["params"]))] == []


def test_errors_have_the_numbers_of_the_native_dialect() -> None:
    errors = DOCUMENT["components"]["errors"]

    assert errors["permission-denied"] == {"code": 1003, "message": "permission denied"}
    assert {error["code"] for error in errors.values()} <= set(ERROR_CODES.values())
    assert errors["invalid-params"]["code"] == ERROR_CODES[Meaning.INVALID_PARAMS]


def test_pages_and_schemas_name_the_same_error_for_an_unsupported_version() -> None:
    root = Path(__file__).parents[2]
    number = str(ERROR_CODES[Meaning.INCOMPATIBLE])
    schema = json.loads((root / "schemas" / "initialize.schema.json").read_text(encoding="utf-8"))
    version = schema["$defs"]["params"]["properties"]["extension_protocol_version"]["description"]
    page = (root / "docs" / "contract.md").read_text(encoding="utf-8").partition("## Versions")[2]

    result = schema["$defs"]["result"]["properties"]["protocol_version"]["description"]

    for text in (version, page, result):
        assert f"responds with the error {number}" in " ".join(text.split())
    assert "`data.supported`" in version
    assert "`data.supported`" in page
