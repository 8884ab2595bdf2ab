"""Sampling: model selection, the request to the model, and the response."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from becket.adapters.mcp import (
    AudioContent,
    CreateMessageParams,
    CreateMessageResult,
    ImageContent,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
)
from becket.adapters.mcp.hosted_servers import HostedMcpServers, McpSettings
from becket.contract.providers import ProviderResult
from becket.errors import InvalidParams, RpcError
from becket.host.starting.candidate import Candidate
from becket.host.starting.launch import LaunchSettings
from becket.host.starting.manifest import Manifest
from becket.host.time_slices import Slices
from becket.permissions.grants import Grants
from becket.stores.in_memory import InMemoryStore

MODELS = ("eliza:eliza:doctor", "local:llama:large", "local:llama:small")
HI = SamplingMessage("user", TextContent("hi"))


class Models:
    """The models of a host, and the requests to them."""

    def __init__(self, models: Sequence[str] = MODELS, stop_reason: str | None = None) -> None:
        self.models = models
        self.stop_reason = stop_reason
        self.requests: list[tuple[str, dict[str, Any]]] = []

    async def complete(self, model: str, **options: Any) -> ProviderResult:
        self.requests.append((model, options))
        return ProviderResult(({"type": "text", "text": "hello"},), self.stop_reason)


async def ask(
    models: Models, requested: CreateMessageParams, settings: McpSettings | None = None
) -> CreateMessageResult:
    def spawn(work: Coroutine[Any, Any, None]) -> None:
        work.close()

    servers = HostedMcpServers(
        settings,
        models=lambda: models.models,
        complete=models.complete,
        current=lambda id: None,
        redeclared=lambda extension: None,
        spawn=spawn,
        slices=Slices(),
    )
    candidate = Candidate(Manifest(id="files", version="0.0.0", command=("a",), dialect="mcp"), "/", "/.mcp.json", 0)
    store = InMemoryStore()
    launch = LaunchSettings(store=store, audit=lambda record: None)
    equipped, with_methods = servers.prepare_launch(candidate, Grants.of(["session.drive"]), launch)
    assert equipped.extra.sampling is not None
    handler = with_methods.methods.get("sampling/createMessage")
    assert handler is not None
    assert handler.requires == "session.drive"
    response: CreateMessageResult = await handler.function(requested)
    store.close()
    return response


def wishing(*names: str | None) -> CreateMessageParams:
    return CreateMessageParams((HI,), 10, model_preferences=ModelPreferences(tuple(map(ModelHint, names))))


@pytest.mark.parametrize(
    ("requested", "model"),
    [
        (CreateMessageParams((HI,), 10), MODELS[0]),
        (wishing("claude", "LLAMA"), MODELS[1]),
        (wishing("small"), MODELS[2]),
        (wishing(None, "unknown"), MODELS[0]),
    ],
)
async def test_the_model_is_the_first_that_matches_the_hints_in_their_order(
    requested: CreateMessageParams, model: str
) -> None:
    models = Models()
    response = await ask(models, requested)

    assert (response.model, response.text, response.stop_reason) == (model, "hello", "endTurn")


async def test_the_host_may_settle_on_one_model() -> None:
    response = await ask(Models(), wishing("small"), McpSettings(model="eliza:eliza:doctor"))

    assert response.model == "eliza:eliza:doctor"


async def test_a_host_without_models_refuses_sampling() -> None:
    with pytest.raises(RpcError, match="no model"):
        await ask(Models(()), CreateMessageParams((HI,), 10))


async def test_texts_and_images_are_converted_for_providers() -> None:
    models = Models(stop_reason="max_tokens")
    message = SamplingMessage("user", (TextContent("look"), ImageContent("aGk=", "image/png")))
    response = await ask(models, CreateMessageParams((message,), 10, "be brief", temperature=0.5))

    assert response.stop_reason == "maxTokens"
    options = models.requests[0][1]
    assert (options["system_prompt"], options["temperature"], options["max_tokens"]) == ("be brief", 0.5, 10)
    assert options["messages"][0].content == (
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    )


async def test_content_that_no_provider_has_is_refused() -> None:
    message = SamplingMessage("user", AudioContent("", "audio/wav"))

    with pytest.raises(InvalidParams):
        await ask(Models(), CreateMessageParams((message,), 10))
