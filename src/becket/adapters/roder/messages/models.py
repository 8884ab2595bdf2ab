"""Roder model descriptors and the `inference/listModels` method."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from becket.methods.descriptors import Method

__all__ = ["LIST_MODELS", "ListModelsParams", "ListModelsResult", "ModelDescriptor", "ReasoningEffort"]


class ListModelsParams(Struct, frozen=True, rename="camel"):
    """Params of `inference/listModels`."""

    engine_id: str


class ReasoningEffort(Struct, frozen=True):
    """A reasoning level of a model."""

    effort: str
    description: str


class ModelDescriptor(Struct, frozen=True, kw_only=True):
    """A model of an engine."""

    id: str
    name: str
    context_window: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    default_reasoning: str | UnsetType | None = UNSET
    supported_reasoning: tuple[ReasoningEffort, ...] | UnsetType = UNSET


class ListModelsResult(Struct, frozen=True):
    """The models of an engine."""

    models: tuple[ModelDescriptor, ...]


LIST_MODELS: Final = Method(
    "inference/listModels",
    ListModelsParams,
    ListModelsResult,
    timeout=30.0,
    direction="to-extension",
    summary="Returns the models of an engine.",
)
