"""Providers of all extensions: model routes, trust, and the loop in which a model uses tools."""

from __future__ import annotations

from collections.abc import Sequence

from becket.contract.audit import ProviderCalled, ProviderOutcome
from becket.contract.names import model_runtime_id, strip_whitespace
from becket.contract.providers import Provider, ProviderRequest, ProviderResult, is_tool_use
from becket.errors import BecketError, NotDeclared, PermissionDenied
from becket.host.serving.audited_gate import classify_error

__all__ = ["build_call_record", "resolve_model"]


def resolve_model(extension: str, providers: Sequence[Provider], provider: str, model: str) -> tuple[str, str, str]:
    """Returns the ids by which a model is asked: of its provider and its own, as declared, and that of both.

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
    """Returns the record of an answer, or of why there is none."""
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
