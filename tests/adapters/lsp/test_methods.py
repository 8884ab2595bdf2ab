"""The LSP descriptors match the table of lsprotocol."""

from __future__ import annotations

import attrs
import pytest
from lsprotocol import types
from tests.adapters.lsp.write_methods import build_module, path
from tests.blocking.pairs import blocking_pair

from becket.adapters import lsp
from becket.adapters.lsp import methods
from becket.adapters.lsp.conversion import CONVERTER, params_type, result_type, unstructure
from becket.conversion.custom_type import CustomType, unwrap_type
from becket.extension import ExtensionServer, handles
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import Stream
from becket.testing import connected


def test_the_module_is_up_to_date_with_the_table() -> None:
    assert path().read_text(encoding="utf-8") == build_module()


def test_the_package_lists_its_names() -> None:
    assert {*lsp.__all__, *methods.__all__} == set(dir(lsp))
    assert all(getattr(lsp, name) is not None for name in dir(lsp))
    with pytest.raises(AttributeError, match="no_such"):
        lsp.no_such  # type: ignore[attr-defined]  # noqa: B018


def test_every_method_has_one_under_its_name_in_lsprotocol() -> None:
    described = {name: getattr(lsp, name).name for name in methods.__all__}

    assert set(described.values()) == set(types.METHOD_TO_TYPES)
    assert described == {name: getattr(types, name) for name in described}


PLACE = types.HoverParams(types.TextDocumentIdentifier("file:///a.py"), types.Position(3, 0))


def test_the_methods_work_without_an_event_loop() -> None:
    with blocking_pair(dialect="lsp") as (left, right):

        @right.handle(lsp.TEXT_DOCUMENT_HOVER)
        def hover(params: types.HoverParams) -> types.Hover | None:
            return types.Hover(f"line {params.position.line}")

        assert left.call(lsp.TEXT_DOCUMENT_HOVER, PLACE) == types.Hover("line 3")
        assert left.call("textDocument/hover", unstructure(PLACE)) == {"contents": "line 3"}


class Hovering(ExtensionServer):
    id, version = "hovering", "1"

    @handles(lsp.TEXT_DOCUMENT_HOVER)
    def hover(self, params: types.HoverParams) -> types.Hover | None:
        return types.Hover(f"line {params.position.line}")


@pytest.mark.parametrize("dialect", ["native", "lsp"])
async def test_an_extension_can_serve_the_methods(dialect: str) -> None:
    async with connected(Hovering(), dialect=dialect) as (extension, _):
        assert await extension.peer.call(lsp.TEXT_DOCUMENT_HOVER, PLACE) == types.Hover("line 3")
        assert await extension.peer.call("textDocument/hover", unstructure(PLACE)) == {"contents": "line 3"}


@pytest.mark.parametrize("name", methods.__all__)
def test_the_types_of_a_method_are_those_of_the_table(name: str) -> None:
    descriptor = getattr(lsp, name)
    wire = descriptor.name

    assert unwrap_type(descriptor.params) == params_type(wire)
    if isinstance(descriptor, Method):
        assert unwrap_type(descriptor.result) == result_type(wire)
    else:
        assert isinstance(descriptor, Notification)
        assert types.METHOD_TO_TYPES[wire][1] is None  # type: ignore[index]


def test_a_request_that_supports_progress_is_a_stream() -> None:
    assert isinstance(lsp.TEXT_DOCUMENT_HOVER, Stream)
    assert not isinstance(lsp.CODE_ACTION_RESOLVE, Stream)


def test_a_descriptor_has_its_direction() -> None:
    assert lsp.TEXT_DOCUMENT_HOVER.direction == "to-extension"
    assert lsp.WORKSPACE_APPLY_EDIT.direction == "to-host"


def test_all_types_that_are_sent_can_be_converted() -> None:
    envelopes = {one for row in types.METHOD_TO_TYPES.values() for one in row[:2] if one is not None}
    classes = [kind for kind in types.ALL_TYPES_MAP.values() if isinstance(kind, type) and attrs.has(kind)]
    # Options of dynamic registration are sent as any value; only their sender reads them.
    untyped = {types.DidChangeConfigurationRegistrationOptions}

    for kind in set(classes) - envelopes - untyped:
        CONVERTER.get_structure_hook(kind)


@pytest.mark.parametrize("name", [name for name in methods.__all__ if isinstance(getattr(lsp, name), Method)])
def test_all_results_can_be_converted(name: str) -> None:
    result = getattr(lsp, name).result

    assert isinstance(result, CustomType)
    if repr(result).startswith("Optional") or "None" in repr(result):
        assert result.from_json(None) is None
