"""The bundle and the emitted types are up to date, and the model that emitters read holds together."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET
from tools.sdk.files import find_drift
from tools.sdk.model import (
    ArrayOf,
    Choice,
    ContractMethod,
    Field,
    MapOf,
    Named,
    Record,
    Scalar,
    TaggedUnion,
    TypeUse,
    load_model,
)

from becket.contract.catalogue import METHODS, NOTIFICATIONS

MODEL = load_model()


def test_the_emitted_files_are_up_to_date() -> None:
    assert find_drift() == [], "run `make sdk` and look at the difference"


def names(use: TypeUse | None) -> Iterator[str]:
    """Yields the names of definitions in a use of types."""
    match use:
        case Named(name):
            yield name
        case ArrayOf(inner) | MapOf(inner):
            yield from names(inner)
        case _:
            pass


def test_every_type_that_is_used_is_defined_once() -> None:
    defined = [definition.name for definition in MODEL.types]
    uses: list[TypeUse | None] = [each for method in MODEL.methods for each in (method.params, method.result)]
    for definition in MODEL.types:
        if isinstance(definition, Record):
            uses += [field.type for field in definition.fields]
        elif isinstance(definition, Choice):
            uses += definition.choices

    assert len(defined) == len(set(defined))
    assert {name for use in uses for name in names(use)} <= set(defined)


def test_a_case_of_a_tagged_union_has_the_tag_and_no_field_of_that_name() -> None:
    unions = [definition for definition in MODEL.types if isinstance(definition, TaggedUnion)]

    assert {union.name for union in unions} == {
        "ProviderEvent",
        "CommandOutputEvent",
        "HookResult",
        "SidecarCommand",
        "SidecarEvent",
        "AuditEvent",
    }
    for union in unions:
        for value, name in union.cases.items():
            case = MODEL.find(name)
            assert isinstance(case, Record)
            assert case.tag == (union.tag, value)
            assert union.tag not in [field.name for field in case.fields]


def test_absence_null_and_defaults_are_distinguished() -> None:
    def find(type: str, name: str) -> Field:
        found = MODEL.find(type)
        assert isinstance(found, Record)
        return next(field for field in found.fields if field.name == name)

    namespace, limit = find("Query", "namespace"), find("Query", "limit")
    folder = find("Initialize", "plugin_root")

    assert (namespace.required, namespace.nullable) == (True, False)
    assert (limit.required, limit.nullable) == (False, False)
    assert (folder.required, folder.nullable) == (True, True)
    assert find("HookEvent", "message").nullable
    assert limit.type == Scalar("integer", 0, 2**53 - 1)
    assert limit.default is UNSET
    assert find("EditorRow", "selectable").default is True


def test_every_method_of_the_catalogue_is_listed_with_its_types() -> None:
    def find(name: str, kind: str) -> ContractMethod:
        (found,) = [method for method in MODEL.methods if (method.name, method.kind) == (name, kind)]
        return found

    assert [method.name for method in MODEL.methods if method.direction != "both"] == [
        each.name for each in (*METHODS, *NOTIFICATIONS)
    ]
    assert find("memory.query", "request").result == Named("Records")
    assert find("settings.editor.commit", "request").params == Named("EditorCommit")
    assert find("settings.editor.commit", "notification").params == Named("EditorCommitted")
    assert find("shutdown", "request").params is None
    assert find("provider.stream", "request").events == ("provider.stream.event",)
