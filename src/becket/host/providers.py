"""Providers of all extensions: model routes, trust, and the loop in which a model uses tools.

Routes and trust are pure; the host reads and writes the file of trust. The loop calls models and tools through
callables, without processes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

import msgspec
from anyio import move_on_after
from msgspec import Struct
from msgspec.structs import replace

from becket._loggers import host_logger
from becket._text import truncate_bytes
from becket.contract.audit import ProviderCalled, ProviderOutcome
from becket.contract.names import model_runtime_id, parse_model_id, provider_runtime_id, strip_whitespace
from becket.contract.providers import (
    MAX_TOOL_OUTPUT,
    MAX_TOOL_TURNS,
    PROVIDER_COMPLETE,
    Message,
    Model,
    Provider,
    ProviderRequest,
    ProviderResult,
    ToolUse,
    find_tool_uses,
    is_tool_use,
    tool_result,
)
from becket.errors import (
    JSON_ERRORS,
    BadReply,
    BecketError,
    CallTimeout,
    NotDeclared,
    PermissionDenied,
    ProviderDisabled,
    ToolBlocked,
    TooManyTurns,
)
from becket.host.diagnostics import Diagnostic, ProblemCode, Severity
from becket.host.hooks import RunHooks
from becket.host.serving.audited_gate import classify_error
from becket.host.tool_calls import CallTool, run_tool
from becket.host.tools import RegisteredTool, ToolRegistry
from becket.limits import DEFAULT_LIMITS, Limits

__all__ = [
    "Complete",
    "ModelRoute",
    "ProviderRegistry",
    "ProviderTrust",
    "ToolRunner",
    "UseTool",
    "build_blocked_record",
    "build_call_record",
    "complete_with_tools",
    "parse_trust",
    "resolve_model",
]

Complete: TypeAlias = Callable[[ProviderRequest], Awaitable[ProviderResult]]
"""Calls a model for a whole completion."""

UseTool: TypeAlias = Callable[[ToolUse, int], Awaitable[dict[str, Any]]]
"""Runs a tool that a model calls, and returns its result as a content block with at most so many bytes of output. Never
fails."""


# -- routes


class ModelRoute(Struct, frozen=True):
    """The model, provider and extension of an id."""

    extension: str
    provider: Provider
    model: Model

    @property
    def provider_id(self) -> str:
        """The id of the provider among those of all extensions, for trust."""
        return provider_runtime_id(self.extension, strip_whitespace(self.provider.id))

    @property
    def model_id(self) -> str:
        """The id of the model among those of all extensions."""
        return model_runtime_id(self.extension, strip_whitespace(self.provider.id), strip_whitespace(self.model.id))


class ProviderRegistry:
    """The providers of all extensions."""

    def __init__(self) -> None:
        self._routes: dict[str, dict[str, ModelRoute]] = {}

    def add(self, extension: str, providers: Iterable[Provider]) -> list[Diagnostic]:
        """Registers the providers of an extension in place of its previous ones. Returns why some were left out."""
        routes: dict[str, ModelRoute] = {}
        diagnostics: list[Diagnostic] = []
        seen: set[str] = set()
        for provider in providers:
            id = strip_whitespace(provider.id)
            if id in seen:
                problem = f"declares the provider `{id}` twice"
                diagnostics.append(
                    Diagnostic(
                        code=ProblemCode.PROVIDER_LEFT_OUT,
                        extension=extension,
                        problem=problem,
                        hint="give one of the two another id: the first one is used",
                        severity=Severity.WARNING,
                    )
                )
                continue
            seen.add(id)
            found = [ModelRoute(extension, provider, model) for model in provider.models]
            routes |= {route.model_id: route for route in found}
        self._routes[extension] = routes
        return diagnostics

    def remove(self, extension: str) -> None:
        """Removes the providers of an extension."""
        self._routes.pop(extension, None)

    def route(self, model: str) -> ModelRoute:
        """Returns the route of `plugin:provider:model`.

        Raises:
            ValueError: it does not have exactly three parts.
            NotDeclared: no running extension has such a model.
        """
        extension, _, _ = parse_model_id(model)
        routes = self._routes.get(extension, {})
        if model not in routes:
            raise NotDeclared(extension, "model", model, [*routes])
        return routes[model]

    def models(self) -> tuple[str, ...]:
        """Returns the ids of all models, sorted."""
        return tuple(sorted(id for routes in self._routes.values() for id in routes))


# -- trust


class TrustEntry(Struct, frozen=True, omit_defaults=True):
    disabled: bool
    reason: str | None = None


class TrustFile(Struct, frozen=True):
    disabled: dict[str, TrustEntry] = {}


class ProviderTrust(Struct, frozen=True):
    """The providers that an operator does not trust, by `plugin:provider`. All others are trusted.

    If the trust is unknown, `error` has the reason, and no provider is trusted."""

    disabled: Mapping[str, str] = {}
    error: str | None = None

    def check(self, provider: str) -> None:
        """Raises ProviderDisabled for a provider that must not be called."""
        if self.error is not None:
            raise ProviderDisabled(provider, self.error)
        if provider in self.disabled:
            raise ProviderDisabled(provider, self.disabled[provider] or "the operator has disabled it")

    def disable(self, provider: str, reason: str = "") -> ProviderTrust:
        """Returns trust in all but this one."""
        return replace(self, disabled={**self.disabled, provider: reason})

    def enable(self, provider: str) -> ProviderTrust:
        """Returns trust that includes this one."""
        return replace(self, disabled={other: why for other, why in self.disabled.items() if other != provider})

    def encode(self) -> bytes:
        """Returns the content of the file."""
        entries = {provider: TrustEntry(True, reason or None) for provider, reason in sorted(self.disabled.items())}
        return msgspec.json.format(msgspec.json.encode(TrustFile(entries)), indent=2) + b"\n"


def parse_trust(data: bytes | None) -> ProviderTrust:
    """Returns the trust in a file; without a file all are trusted. One that cannot be read trusts none."""
    if data is None:
        return ProviderTrust()
    try:
        file = msgspec.json.decode(data, type=TrustFile)
    except JSON_ERRORS as error:
        return ProviderTrust(error=f"the file of trusted providers cannot be read: {error}")
    return ProviderTrust({provider: entry.reason or "" for provider, entry in file.disabled.items() if entry.disabled})


def build_blocked_record(route: ModelRoute, *, tools_exposed: bool, streamed: bool = False) -> ProviderCalled:
    """Returns the record of a call that was not made because the provider is not trusted."""
    return ProviderCalled(
        route.extension,
        strip_whitespace(route.provider.id),
        strip_whitespace(route.model.id),
        tools_exposed,
        ProviderOutcome.BLOCKED,
        streamed=streamed,
        error_class="disabled",
    )


# -- a model that uses tools


async def complete_with_tools(
    extension: str,
    request: ProviderRequest,
    complete: Complete,
    use_tool: UseTool,
    *,
    most_turns: int = MAX_TOOL_TURNS,
    limits: Limits = DEFAULT_LIMITS,
) -> ProviderResult:
    """Calls a model, runs the tools that it calls, returns their results to it, and so on until it has finished.

    `limits` bound the tool calls and the bytes of their outputs in each turn, and the seconds of all turns together.

    Raises:
        TooManyTurns: it still calls tools in the last turn.
        BadReply: one of its tool calls cannot be decoded.
        CallTimeout: `limits.model_seconds` have passed.
        RemoteError, CallTimeout, ConnectionLost, PermissionDenied, ...: as `complete` does.
    """
    with move_on_after(limits.model_seconds or None):
        return await take_turns(extension, request, complete, use_tool, most_turns, limits)
    raise CallTimeout(f"{PROVIDER_COMPLETE.name} with tools", limits.model_seconds)


async def take_turns(
    extension: str,
    request: ProviderRequest,
    complete: Complete,
    use_tool: UseTool,
    most_turns: int,
    limits: Limits,
) -> ProviderResult:
    for turn in range(1, most_turns + 1):
        result = await complete(request)
        try:
            uses = find_tool_uses(result)
        except msgspec.ValidationError as error:
            raise BadReply(method=PROVIDER_COMPLETE.name, problem=str(error)) from error
        if not uses:
            return result
        if turn < most_turns:  # else the results of the tools would be lost
            remaining = without_excess(result.content, limits.model_tool_calls)
            results = await run_tools(uses, use_tool, limits)
            turns = (Message("assistant", remaining), Message("user", results))
            request = replace(request, messages=(*request.messages, *turns))
    raise TooManyTurns(extension, most_turns)


async def run_tools(uses: Sequence[ToolUse], use_tool: UseTool, limits: Limits) -> tuple[dict[str, Any], ...]:
    """Runs the tool calls of one turn, within its limits, and returns their results for the model."""
    blocks: list[dict[str, Any]] = []
    left = limits.model_tool_bytes
    for use in uses[: limits.model_tool_calls]:
        if left > 0:
            block = await use_tool(use, left)
            left -= len(str(block.get("content", "")).encode())
        else:  # a tool with side effects must not run if the model would not see its result
            spent = f"the outputs of this turn have reached {limits.model_tool_bytes} bytes"
            block = tool_result(use.id, f"Tool call not run: {spent}", is_error=True)
        blocks.append(block)
    excess = len(uses) - limits.model_tool_calls
    if excess > 0:
        text = f"{excess} more tool calls were not run: the limit is {limits.model_tool_calls} in one turn"
        blocks.append({"type": "text", "text": text})
    return tuple(blocks)


def without_excess(content: tuple[Any, ...], most_calls: int) -> tuple[Any, ...]:
    """Returns content without the tool calls that were not run: each call that a model sees again needs a result."""
    calls = count(1)
    return tuple(block for block in content if not is_tool_use(block) or next(calls) <= most_calls)


class ToolRunner:
    """Runs the tools that models call, between the hooks before and after, and returns blocks for the model.

    A model cannot confirm: pass hooks without a prompt."""

    def __init__(
        self,
        tools: ToolRegistry,
        call: CallTool,
        run_hooks: RunHooks | None = None,
        *,
        most_output: int = MAX_TOOL_OUTPUT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._tools = tools
        self._call = call
        self._run_hooks = run_hooks
        self._max_output = most_output
        self._limits = limits

    async def run(self, use: ToolUse) -> dict[str, Any]:
        """Runs a tool and returns the block with its result or its error for the model."""
        tool = self._tools.find(use.name)
        if tool is None:
            return tool_result(use.id, f"Unknown tool: {use.name}", is_error=True)
        try:
            outcome = await run_tool(
                tool, tool.decode_input(use.input), self._call, self._run_hooks, limits=self._limits
            )
        except ToolBlocked as error:
            text = f"Tool call blocked by extension: {error.reason}"
            return tool_result(use.id, truncate_tool_output(text, self._max_output), is_error=True)
        if outcome.error is not None and not isinstance(outcome.error, BecketError):
            log_failure(tool, outcome.error)
        return tool_result(
            use.id, truncate_tool_output(outcome.text, self._max_output), is_error=outcome.error is not None
        )


def truncate_tool_output(text: str, size: int) -> str:
    """Returns a text of at most so many bytes, never with half a character. A truncated one ends with a note."""
    length = len(text.encode())
    if length <= size:
        return text
    note = f"\n[truncated: the output has {length} bytes]"
    return truncate_bytes(text, max(0, size - len(note))) + note[:size]


def log_failure(tool: RegisteredTool, error: Exception) -> None:
    host_logger().error("the tool %s failed", tool.runtime_name, exc_info=error)


# -- calls of one extension


def resolve_model(extension: str, providers: Sequence[Provider], provider: str, model: str) -> tuple[str, str, str]:
    """Returns the ids of a model: of its provider and its own, as declared, and that of both.

    Raises:
        NotDeclared: there is no such provider, or it has no such model.
    """
    offered = {strip_whitespace(one.id): one for one in providers}
    if provider not in offered:
        raise NotDeclared(extension, "provider", provider, [*offered])
    models = {strip_whitespace(one.id): one for one in offered[provider].models}
    if model not in models:
        raise NotDeclared(extension, f"model of {provider}", model, [*models])
    return offered[provider].id, models[model].id, model_runtime_id(extension, provider, model)


def build_call_record(
    extension: str,
    request: ProviderRequest,
    result: ProviderResult | None,
    error: BecketError | None,
    *,
    streamed: bool,
) -> ProviderCalled:
    """Returns the record of a completion, or of its failure."""
    return ProviderCalled(
        extension,
        request.provider_id,
        request.model_id,
        bool(request.tools),
        classify_outcome(error),
        sum(map(is_tool_use, () if result is None else result.content)),
        streamed,
        None if error is None else classify_error(error),
    )


def classify_outcome(error: BecketError | None) -> ProviderOutcome:
    if error is None:
        return ProviderOutcome.OK
    return ProviderOutcome.BLOCKED if isinstance(error, PermissionDenied) else ProviderOutcome.ERROR
