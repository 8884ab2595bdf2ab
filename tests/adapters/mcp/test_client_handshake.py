"""The client handshake: versions, pages, and tools adapted to the contract."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from becket.adapters.mcp.client_handshake import MAX_PAGES, McpServerInfo, client_handshake
from becket.adapters.mcp.messages.lifecycle import LATEST_VERSION, ClientCapabilities, SamplingCapability
from becket.contract.handshake import HostInfo, Initialized
from becket.contract.handshake_checks import find_handshake_problems
from becket.contract.info import CapabilityInfo
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import WireNotification, WireRequest
from becket.errors import BadCapabilities, HandshakeFailed, RemoteError, VersionMismatch
from becket.permissions.grants import Grants

HOST = HostInfo("host", "1.2")


class Script:
    """A server with responses by method: a value, several values in turn, or an error."""

    def __init__(self, **responses: Any) -> None:
        self.requests: list[tuple[str, Any]] = []
        self._answers = {name.replace("_", "/"): response for name, response in responses.items()}

    def run(self, extra: Any = None) -> HandshakeResult:
        steps = client_handshake(HandshakeContext(extension="files", host=HOST, extra=extra))
        step = next(steps)
        try:
            while True:
                self.requests.append((name_of(step), msgspec.to_builtins(step.params)))
                if isinstance(step, WireNotification):
                    step = steps.send(None)  # type: ignore[arg-type]
                    continue
                response = self._answers[step.method.name]
                if isinstance(response, list) and response:
                    response = response.pop(0)
                if isinstance(response, Exception):
                    step = steps.throw(response)
                else:
                    step = steps.send(Raw(response if isinstance(response, bytes) else msgspec.json.encode(response)))
        except StopIteration as stop:
            outcome: HandshakeResult = stop.value
            return outcome


def name_of(step: WireRequest | WireNotification) -> str:
    return step.method if isinstance(step, WireNotification) else step.method.name


def offering(*names: str, version: str = LATEST_VERSION) -> dict[str, Any]:
    return {
        "protocolVersion": version,
        "capabilities": {name: {} for name in names},
        "serverInfo": {"name": "files", "version": "3"},
        "instructions": "be kind",
    }


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object"}, **members}


# -- initialize


def test_the_host_sends_its_newest_version_its_identity_and_capabilities_and_then_initialized() -> None:
    script = Script(initialize=offering())
    script.run(ClientCapabilities(sampling=SamplingCapability()))

    assert script.requests == [
        (
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"sampling": {}},
                "clientInfo": {"name": "host", "version": "1.2"},
            },
        ),
        ("notifications/initialized", None),
    ]


def test_a_host_offers_nothing_by_default() -> None:
    script = Script(initialize=offering())
    script.run(extra="of another kind")

    assert script.requests[0][1]["capabilities"] == {}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_server_may_respond_with_any_known_version(version: str) -> None:
    outcome = Script(initialize=offering(version=version)).run()

    assert outcome.extra.version == version


def test_a_server_of_another_version_is_refused_whatever_else_it_sends() -> None:
    with pytest.raises(VersionMismatch) as caught:
        Script(initialize={"protocolVersion": "2031-01-01", "capabilities": 7}).run()

    assert (caught.value.given, caught.value.supported) == ("2031-01-01", LATEST_VERSION)


def refusing(data: Any) -> RemoteError:
    return RemoteError(method="initialize", code=-32602, message="Unsupported protocol version", data=data)


def test_a_server_that_names_its_versions_in_an_error_gets_a_second_request_with_the_newest_of_them() -> None:
    script = Script(initialize=[refusing({"supported": ["2024-11-05", "2025-03-26"]}), offering(version="2025-03-26")])
    script.run()

    assert [params["protocolVersion"] for name, params in script.requests if params] == ["2025-11-25", "2025-03-26"]


@pytest.mark.parametrize("data", [None, {"supported": ["1999-01-01"]}, {"supported": "2024-11-05"}])
def test_a_server_that_refuses_without_a_known_version_gets_no_second_request(data: Any) -> None:
    with pytest.raises(RemoteError):
        Script(initialize=refusing(data)).run()


@pytest.mark.parametrize(
    ("response", "pointer"), [({"protocolVersion": 5}, "/protocolVersion"), ([], ""), (b'{"a":"\xff"}', "")]
)
def test_a_response_that_cannot_be_decoded_is_refused_with_its_problems(response: Any, pointer: str) -> None:
    with pytest.raises(BadCapabilities) as caught:
        Script(initialize=response).run()

    assert [at for at, _ in caught.value.problems] == [pointer]


def test_the_identity_of_the_server_is_stored() -> None:
    outcome = Script(initialize=offering("logging", "tools"), tools_list={"tools": []}).run()
    server: McpServerInfo = outcome.extra

    assert (server.info.name, server.instructions) == ("files", "be kind")
    assert outcome.info is not None
    assert outcome.info.build is not None
    assert outcome.info.build.version == "3"
    assert outcome.info.capabilities == (CapabilityInfo("mcp", "tools"), CapabilityInfo("mcp", "logging"))


# -- lists


def test_tools_are_listed_page_by_page() -> None:
    pages = [{"tools": [tool("a")], "nextCursor": "2"}, {"tools": [tool("b")], "nextCursor": ""}]
    script = Script(initialize=offering("tools"), tools_list=pages)

    assert [one.name for one in script.run().capabilities.tools] == ["a", "b"]
    assert script.requests[2:] == [("tools/list", None), ("tools/list", {"cursor": "2"})]


def test_a_list_that_stays_at_the_same_page_has_ended() -> None:
    script = Script(initialize=offering("tools"), tools_list={"tools": [tool("a")], "nextCursor": "same"})

    assert len(script.run().capabilities.tools) == 1


def test_a_list_without_an_end_is_refused() -> None:
    pages: list[Any] = [{"tools": [], "nextCursor": str(number)} for number in range(MAX_PAGES + 1)]
    script = Script(initialize=offering("tools"), tools_list=pages)

    with pytest.raises(HandshakeFailed, match="pages"):
        script.run()


def test_a_page_that_cannot_be_decoded_is_refused_with_its_problems() -> None:
    script = Script(initialize=offering("tools"), tools_list={"tools": [{"name": 1}]})

    with pytest.raises(BadCapabilities) as caught:
        script.run()
    assert caught.value.problems[0][0] == "/tools/0/name"


def test_prompts_are_known_by_name() -> None:
    script = Script(initialize=offering("prompts"), prompts_list={"prompts": [{"name": "review"}]})

    assert [*script.run().extra.prompts] == ["review"]


def test_a_server_without_a_prompt_list_is_still_usable() -> None:
    lost = RemoteError(method="prompts/list", code=-32601, message="no")

    assert Script(initialize=offering("prompts"), prompts_list=lost).run().extra.prompts == {}
    assert Script(initialize=offering("prompts"), prompts_list={"prompts": 1}).run().extra.prompts == {}


# -- tools adapted to the contract


def declared_of(*tools: dict[str, Any]) -> tuple[HandshakeResult, list[str]]:
    outcome = Script(initialize=offering("tools"), tools_list={"tools": list(tools)}).run()
    return outcome, [one.name for one in outcome.capabilities.tools]


def test_a_tool_is_declared_as_listed() -> None:
    outcome, _ = declared_of(tool("read_file", title="Read"))
    (declared,) = outcome.capabilities.tools

    assert (declared.name, declared.description) == ("read_file", "Does it.")
    assert declared.input_schema == {"type": "object"}
    assert outcome.extra.names == {}


def test_a_name_that_the_contract_does_not_allow_is_replaced_and_mapped_back() -> None:
    odd = ["files:read", "with space", "x" * 65, "größe: 1", ""]
    outcome, names = declared_of(*map(tool, odd))

    assert len(set(names)) == 5
    assert [outcome.extra.names[name] for name in names] == odd
    assert all(len(name) <= 64 for name in names)


def test_two_names_that_differ_only_in_replaced_characters_stay_distinct() -> None:
    _, names = declared_of(tool("a:b"), tool("a b"))

    assert len(set(names)) == 2


@pytest.mark.parametrize("is_first", [True, False])
def test_a_tool_retains_its_name_although_another_is_derived_to_the_same(is_first: bool) -> None:
    (derived,) = declared_of(tool("a b"))[1]
    (other,) = declared_of(tool("a b"), tool(derived))[0].extra.names
    listed = [derived, "a b"] if is_first else ["a b", derived]

    outcome, names = declared_of(*map(tool, listed))

    assert names == ([derived, other] if is_first else [other, derived])
    assert outcome.extra.names == {other: "a b"}


def test_a_tool_that_is_listed_twice_is_declared_once() -> None:
    assert declared_of(tool("a"), tool("b"), tool("a"))[1] == ["a", "b"]


@pytest.mark.parametrize(
    ("members", "description"),
    [
        ({"description": None, "title": "Title"}, "Title"),
        ({"description": " ", "annotations": {"title": "Annotated"}}, "Annotated"),
        ({"description": "", "annotations": {}}, "The tool a."),
        ({"description": None}, "The tool a."),
    ],
)
def test_a_tool_without_a_description_gets_the_next_best(members: dict[str, Any], description: str) -> None:
    outcome, _ = declared_of(tool("a", **members))

    assert outcome.capabilities.tools[0].description == description


@pytest.mark.parametrize("schema", [None, True, []])
def test_a_schema_that_is_not_an_object_means_any_object(schema: Any) -> None:
    outcome, _ = declared_of(tool("a", inputSchema=schema))

    assert outcome.capabilities.tools[0].input_schema == {"type": "object"}


def test_the_declarations_pass_the_rules_of_the_contract() -> None:
    outcome, _ = declared_of(tool("a:b"), tool("", description=None), tool("c", inputSchema=None))
    initialized = Initialized(1, outcome.capabilities)

    assert find_handshake_problems("files", initialized, grants=Grants.of(["tools.register"]), config={}) == []


@pytest.mark.parametrize(("annotations", "is_read_only"), [({"readOnlyHint": True}, True), ({}, False), (None, False)])
def test_tools_annotated_as_read_only_are_declared_so(annotations: dict[str, Any] | None, is_read_only: bool) -> None:
    listed = {"tools": [tool("look", annotations=annotations)]}

    outcome = Script(initialize=offering("tools"), tools_list=listed).run()

    assert [each.read_only for each in outcome.capabilities.tools] == [is_read_only]
