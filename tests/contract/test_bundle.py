"""The bundle has every type once, in forms that generators accept, and matches the files of the families."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
import re2
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from msgspec import Struct
from tests.contract.agreement import AGREEMENTS, Agreement, Validator, values
from tests.contract.sample_files import load_samples
from tools.sdk.bundle import FILE
from tools.sdk.types import ENTRIES

from becket import contract
from becket.contract.catalogue import METHODS, NOTIFICATIONS

BUNDLE = json.loads(FILE.read_text(encoding="utf-8"))
DEFINITIONS = BUNDLE["$defs"]
DESCRIBED = {(entry.family, entry.definition): entry.name for entry in ENTRIES}
SAMPLES = [sample for sample in load_samples() if (sample.schema, sample.definition) in DESCRIBED]


def parts(node: Any) -> Iterator[dict[str, Any]]:
    """Yields every schema of the bundle: examples and defaults are values, no schemas."""
    if isinstance(node, dict):
        yield node
        for key, value in node.items():
            if key in ("properties", "$defs"):
                for part in value.values():
                    yield from parts(part)
            elif key not in ("examples", "default", "enum", "required"):
                yield from parts(value)
    elif isinstance(node, list):
        for value in node:
            yield from parts(value)


def check_pattern(validator: Any, pattern: str, value: object, schema: Any) -> Iterator[ValidationError]:
    # In RE2, as in most languages, no newline may follow `$`.
    if isinstance(value, str) and re2.search(pattern, value) is None:
        yield ValidationError("does not match")


BundleValidator = extend(Validator, {"pattern": check_pattern})


def is_valid(name: str, value: object) -> bool:
    return bool(BundleValidator({"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS}).is_valid(value))


def test_the_bundle_is_a_schema_of_2020_12_with_a_stable_id() -> None:
    Draft202012Validator.check_schema(BUNDLE)
    assert BUNDLE["$id"] == "https://becket.dev/schemas/becket.schema.json"


def test_every_name_is_upper_camel_case_and_reachable_from_the_root() -> None:
    assert all(re.fullmatch(r"([A-Z][a-z0-9]+)+", name) for name in DEFINITIONS)
    assert list(BUNDLE["properties"]) == list(DEFINITIONS)
    assert len(DEFINITIONS) == len(ENTRIES)


def test_every_type_of_the_catalogue_is_there() -> None:
    types = [each for method in METHODS for each in (method.params, method.result)]
    types += [notification.params for notification in NOTIFICATIONS]
    named = [entry.type for entry in ENTRIES]

    assert [each for each in types if each not in (None, Any) and each not in named] == []


NEVER_SENT = {
    "AuditLink",  # the state of a chain
    "CommandOutputAddress",  # these two decode a part of a message
    "SidecarLineType",
    "CustomSidecarEvent",  # lines of a sidecar's own type
    "HookOutcome",  # these are of the host
    "HookRule",
    "IdProblem",
    "NameMap",
    "HandshakeVersion",  # decodes the version of a handshake
    "PlainText",  # output of a program that the host ran
    "Usage",  # its members are under names of the provider
}


def test_every_class_of_the_contract_is_there_or_is_never_sent() -> None:
    modules = [import_module(f"becket.contract.{found.name}") for found in iter_modules(contract.__path__)]
    classes = {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Struct | Enum) and each.__module__ == module.__name__
    }

    assert {each.__name__ for each in classes - {entry.type for entry in ENTRIES}} == NEVER_SENT


def test_every_reference_stays_within_the_file() -> None:
    references = [part["$ref"] for part in parts(BUNDLE) if "$ref" in part]

    assert len(references) > 100
    assert [each for each in references if each.removeprefix("#/$defs/") not in DEFINITIONS] == []


def test_keywords_that_generators_misread_are_not_used() -> None:
    used = {key for part in parts(DEFINITIONS) for key in part}

    assert not used & {"if", "then", "else", "not", "allOf", "title", "$id", "dependentSchemas", "patternProperties"}
    assert [part for part in parts(DEFINITIONS) if False in part.get("properties", {}).values()] == []


def test_a_type_is_never_a_list_of_more_than_one_type_and_null() -> None:
    lists = [part["type"] for part in parts(BUNDLE) if isinstance(part.get("type"), list)]

    assert lists
    assert [each for each in lists if len(each) != 2 or each[1] != "null"] == []


def test_tagged_unions_have_one_constant_member() -> None:
    for name, definition in DEFINITIONS.items():
        if "oneOf" in definition:
            cases = [DEFINITIONS[case["$ref"].removeprefix("#/$defs/")] for case in definition["oneOf"]]
            tags = [[key for key, member in case["properties"].items() if "const" in member] for case in cases]
            assert len({*map(tuple, tags)}) == 1, name
            values = [case["properties"][tags[0][0]]["const"] for case in cases]
            assert len(values) == len(set(values)), name
            assert all(tags[0][0] in case["required"] for case in cases), name


def test_patterns_are_of_the_re2_subset_and_have_no_unicode_escapes() -> None:
    patterns = {part["pattern"] for part in parts(BUNDLE) if "pattern" in part}

    assert len(patterns) >= 4
    for pattern in patterns:
        re2.compile(pattern)
        assert "\\u" not in pattern


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_example_fits(name: str) -> None:
    assert [example for example in DEFINITIONS[name].get("examples", ()) if not is_valid(name, example)] == []


# -- beside the families' files

TOLERATED = {
    "Capabilities": "an empty array for an empty object, and hooks that are no array",
    "CommandOutputParams": "the members of the event beside the id",
    "Initialized": "the same capabilities, and features that are no array of strings",
    "Model": "capabilities that are no object, or not true or false",
    "ProviderEvent": "`text` for `delta`",
    "ProviderFailed": "a code that is neither a number nor a string",
    "SidecarEvent": "types of the sidecar's own",
    "TaskEnded": "an empty error for none",
    "TaskStarted": "`other` for `generic`, and a kind that is no string",
    "TaskUpdated": "members of a wrong type",
    "TextDelta": "`text` for `delta`",
    "ThinkingDelta": "`text` for `delta`",
}
"""What hosts accept of these types besides the one form that is in the bundle, and null for absent members."""

UNSAID = {
    "HookSubscription": "that only hooks of tools are matched by tool",
    "Initialized": "that the version is 1",
    "Notification": "that it has no id and no error, and that params are an object or an array",
    "Provider": "that names of required settings are strings",
    "Request": "that it has no result, and that params are an object or an array",
    "Success": "that it has no error",
}
"""Rules of these types that the bundle does not have: code that a generator makes could not keep them."""
CONTAIN_UNSAID = {"Capabilities"}  # which have providers


def test_the_bundle_accepts_the_good_samples_that_are_not_tolerated_forms() -> None:
    good = [sample for sample in SAMPLES if sample.is_good]
    refused = [
        sample
        for sample in good
        if not is_valid(name_of(sample), sample.value) and not is_valid(name_of(sample), omit_null(sample.value))
    ]

    assert {name_of(sample) for sample in refused} == set(TOLERATED)


def test_the_bundle_refuses_the_bad_samples_by_the_rules_that_it_has() -> None:
    accepted = [sample for sample in SAMPLES if not sample.is_good and is_valid(name_of(sample), sample.value)]

    assert {name_of(sample) for sample in accepted} == set(UNSAID)


HELD = [held for held in AGREEMENTS if (held.schema, held.definition) in DESCRIBED]


@pytest.mark.slow
@pytest.mark.parametrize("held", HELD, ids=lambda held: DESCRIBED[held.schema, held.definition])
@given(data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_a_value_that_the_bundle_accepts_is_accepted_by_the_type(held: Agreement, data: st.DataObject) -> None:
    name = DESCRIBED[held.schema, held.definition]
    value = data.draw(values(held))
    if name not in UNSAID.keys() | CONTAIN_UNSAID and is_valid(name, value):
        assert held.accepts(value)


def omit_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: omit_null(member) for key, member in value.items() if member is not None}
    return value


def name_of(sample: Any) -> str:
    return DESCRIBED[sample.schema, sample.definition]
