"""Modules that docs named as public in 0.1 forward their names, with a warning."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.test_layers import Sources, sources_of_becket

import becket
from becket.contract.memory import Append, Query
from becket.errors import InvalidParams
from becket.host import Host

MOVED = [
    ("becket.wire", "Skipped", "becket.framing", "SkippedFrame"),
    ("becket.interop.mcp", "LATEST", "becket.adapters.mcp", "LATEST_VERSION"),
    ("becket.interop.lsp", "Document", "becket.adapters.lsp", "TextDocument"),
    ("becket.methods.permissions", "LONGEST_PART", "becket.permissions", "MAX_NAME_LENGTH"),
    ("becket.typed.schema_files", "load_schema", "becket.json_schema.files", "load_schema"),
    ("becket.dialects.synaps", "SYNAPS", "becket.adapters.synaps", "SYNAPS"),
    ("becket.dialects.nexo", "ListedTool", "becket.adapters.nexo", "NexoTool"),
    ("becket.dialects.roder", "MOST_KEPT", "becket.adapters.roder", "MAX_BUFFERED_EVENTS"),
    ("becket.dialects.morphir", "Capability", "becket.adapters.morphir", "MorphirCapability"),
    ("becket.dialects.cigen", "PROTOCOL", "becket.adapters.cigen", "CIGEN_PROTOCOL_VERSION"),
    ("becket.dialects.mcp", "MCP", "becket.adapters.mcp.dialect", "MCP"),
    ("becket.dialects.lsp", "LSP", "becket.adapters.lsp.dialect", "LSP"),
    ("becket.contract.given", "check_text", "becket.contract.argument_checks", "check_str"),
    ("becket.contract.handshake_rules", "Search", "becket.contract.handshake_checks", "CapabilityChecker"),
    ("becket.contract.shapes", "as_object", "becket.contract.json_narrowing", "require_object"),
    ("becket.contract.shapes", "REFUSED", "becket.errors", "JSON_ERRORS"),
]


@pytest.mark.parametrize(("module", "name", "home", "present"), MOVED)
def test_a_moved_module_forwards_its_names_with_a_warning(module: str, name: str, home: str, present: str) -> None:
    forwarded = import_module(module)

    with pytest.warns(DeprecationWarning, match=f"`{module}.{name}` is `{home}.{present}` since becket 0.2"):
        value = getattr(forwarded, name)

    assert value is getattr(import_module(home), present)


PACKAGES = {"becket.typed", "becket.interop"}
"""Packages in which every module forwards."""


def forwarding_modules(sources: Sources) -> set[str]:
    return {module for module, source in sources.items() if source.startswith('"""Deprecated since 0.2: ')}


def due_for_removal(version: str, sources: Sources) -> set[str]:
    """Returns the modules that a release of this version must not have any more."""
    major, minor, *_ = version.split(".")
    return forwarding_modules(sources) if (int(major), int(minor)) >= (0, 3) else set()


def test_every_forwarding_module_is_among_the_moved_ones() -> None:
    assert forwarding_modules(sources_of_becket()) == {module for module, *_ in MOVED} | PACKAGES


def test_forwarding_modules_are_gone_one_release_after_they_moved() -> None:
    assert due_for_removal(becket.__version__, sources_of_becket()) == set()


@pytest.mark.parametrize(("version", "count"), [("0.2.9", 0), ("0.3.0", 1), ("0.10.0", 1), ("1.0.0", 1)])
def test_a_forwarding_module_is_due_for_removal_from_0_3_on(version: str, count: int) -> None:
    sources = {"becket.wire": '"""Deprecated since 0.2: `becket.framing` has these names."""', "becket.framing": ""}

    assert len(due_for_removal(version, sources)) == count


def test_a_name_that_never_was_raises_attribute_error() -> None:
    with pytest.raises(AttributeError):
        import_module("becket.wire").no_such_name  # noqa: B018


def test_the_names_of_a_moved_module_are_listed_as_they_were() -> None:
    assert {"Sniffing", "JsonLines"} <= set(dir(import_module("becket.wire")))
    assert {"REFUSED", "as_object", "cut", "is_object"} <= set(dir(import_module("becket.contract.shapes")))


RENAMED_MEMBERS = [
    ("becket.peer.context", "Context", "answer", "respond"),
    ("becket.peer.blocking_peer", "BlockingContext", "answer", "respond"),
    ("becket.peer.blocking_peer", "BlockingPeer", "agree", "limit_features"),
    ("becket.peer.peer", "Peer", "agree", "limit_features"),
    ("becket.peer.peer", "Peer", "heard_at", "last_received_at"),
    ("becket.peer.streams", "CallStream", "take_ready", "batch_nowait"),
    ("becket.peer.streams", "CallStream", "extend", "renew_deadline"),
    ("becket.host.serving.streams", "ExtensionStream", "take_ready", "batch_nowait"),
    ("becket.host.extension", "Extension", "particulars", "extra"),
    ("becket.host.host", "Host", "ask_hooks", "run_hooks"),
    ("becket.adapters.mcp", "McpClient", "offers", "server_capabilities"),
    ("becket.adapters.nexo.host_config", "NexoHostConfig", "arguments", "host_arguments"),
    ("becket.adapters.nexo.host_config", "NexoHostConfig", "only", "allowed_ids"),
    ("becket.adapters.nexo.host_config", "NexoHostConfig", "depth", "discovery_depth"),
]


@pytest.mark.parametrize(("module", "owner", "old", "new"), RENAMED_MEMBERS)
def test_a_renamed_member_forwards_to_the_new_one_with_a_warning(module: str, owner: str, old: str, new: str) -> None:
    class_ = getattr(import_module(module), owner)

    with pytest.warns(DeprecationWarning, match=f"`{owner}.{old}` is `{new}` since becket 0.2"):
        value = getattr(class_, old)

    assert value == getattr(class_, new)


def test_a_renamed_attribute_of_an_object_has_the_value_of_the_new_one() -> None:
    host = Host([])

    with pytest.warns(DeprecationWarning, match="`Host.places` is `data_dir` since becket 0.2"):
        assert host.places is host.data_dir


RENAMED_EXPORTS = [
    ("becket.contract.commands", "Output", "CommandOutputEvent"),
    ("becket.contract.memory", "read_query", "decode_query"),
    ("becket.contract.sidecar", "Status", "SidecarStatus"),
    ("becket.dialects", "Dialects", "DialectRegistry"),
    ("becket.errors", "NUMBERS", "ERROR_CODES"),
    ("becket.extension", "HostServices", "HostClient"),
    ("becket.host", "Care", "SupervisionPolicy"),
    ("becket.host.events", "Events", "EventBus"),
    ("becket.host.events", "ExtensionMoved", "ExtensionStateChanged"),
    ("becket.methods.streams", "Gathering", "ResultCollector"),
]


@pytest.mark.parametrize(("module", "old", "new"), RENAMED_EXPORTS)
def test_a_renamed_export_of_a_module_is_the_new_one_with_a_warning(module: str, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"`{module}.{old}` is `{new}` since becket 0.2"):
        value = getattr(import_module(module), old)

    assert value is getattr(import_module(module), new)
    assert not hasattr(import_module(module), "no_such_name")


WITHOUT_SUCCESSOR = [
    ("becket.contract.memory", "check_append"),
    ("becket.contract.memory", "check_query"),
    ("becket.contract.shapes", "cut"),
]


@pytest.mark.parametrize(("module", "name"), WITHOUT_SUCCESSOR)
def test_a_name_without_a_public_successor_works_and_its_warning_names_none(module: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"^`{module}.{name}` is deprecated since becket 0.2, and is removed"):
        value = getattr(import_module(module), name)

    assert callable(value)


def test_a_check_that_was_removed_lists_the_same_problems_until_it_is_gone() -> None:
    memory = import_module("becket.contract.memory")
    with pytest.warns(DeprecationWarning, match="removed in 0.3"):
        check_append, check_query = memory.check_append, memory.check_query
    record = Append("notes", "x", idem="")

    check_append(Append("notes", "x"), "notes")
    check_query(Query("notes"), "notes")
    with pytest.raises(InvalidParams) as own:
        check_append(record, "notes")
    with pytest.raises(InvalidParams) as foreign:
        check_append(record, "todo")
    with pytest.raises(InvalidParams):
        check_query(Query("notes"), "todo")

    assert [pointer for pointer, _ in own.value.problems] == ["/idem"]
    assert [pointer for pointer, _ in foreign.value.problems] == ["/namespace", "/idem"]


def test_a_warning_points_to_the_program_that_uses_the_old_name() -> None:
    shapes, sidecar = import_module("becket.contract.shapes"), import_module("becket.contract.sidecar")

    with pytest.warns(DeprecationWarning, match="since becket 0.2") as caught:
        shapes.cut, sidecar.Hello, shapes.is_object  # noqa: B018

    assert {warning.filename for warning in caught} == {__file__}
