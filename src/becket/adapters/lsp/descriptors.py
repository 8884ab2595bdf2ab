"""Builds Method, Stream and Notification descriptors from lsprotocol's table.

A request with progress is a `Stream`: called, it returns its result; streamed, it also yields progress and partial
results. Names and types for type checkers are in `methods`, which is generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

import attrs
from lsprotocol import types

from becket.adapters.lsp.conversion import build_custom_type, params_type, result_type
from becket.adapters.lsp.progress import progress_reader
from becket.methods.descriptors import Direction, Method, Notification
from becket.methods.streams import Stream

__all__ = ["build_method", "build_notification", "build_stream", "is_stream", "partial_type"]

# Methods whose partial results are not of the type of the result.
PARTIAL_TYPES: dict[str, Any] = {
    types.TEXT_DOCUMENT_DIAGNOSTIC: types.DocumentDiagnosticReportPartialResult,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: types.SemanticTokensPartialResult,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA: types.SemanticTokensPartialResult
    | types.SemanticTokensDeltaPartialResult,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE: types.SemanticTokensPartialResult,
    types.WORKSPACE_DIAGNOSTIC: types.WorkspaceDiagnosticReportPartialResult,
}


def build_method(name: str) -> Method[Any, Any]:
    """Returns the descriptor of a request without tokens."""
    params = params_type(name)
    taken = None if params is None else build_custom_type(params)
    return Method(name, taken, build_custom_type(result_type(name)), direction=method_direction(name))


def build_stream(name: str) -> Stream[Any, Any, Any]:
    """Returns the descriptor of a request with progress."""
    return Stream(
        name,
        build_custom_type(params_type(name)),
        build_custom_type(result_type(name)),
        events={types.PROGRESS: progress_reader(partial_decode_type(name))},
        direction=method_direction(name),
    )


def build_notification(name: str) -> Notification[Any]:
    """Returns the descriptor of a notification."""
    params = params_type(name)
    return Notification(name, None if params is None else build_custom_type(params), direction=method_direction(name))


def method_direction(name: str) -> Direction:
    is_for_client = types.message_direction(name) == "serverToClient"
    return "to-host" if is_for_client else "to-extension"


def is_stream(name: str) -> bool:
    """Returns whether a request supports progress or partial results."""
    return "work_done_token" in params_fields(name) or "partial_result_token" in params_fields(name)


def partial_type(name: str) -> Any:
    """Returns the type of partial results, or None if there are none."""
    if "partial_result_token" not in params_fields(name):
        return None
    if name in PARTIAL_TYPES:
        return PARTIAL_TYPES[name]
    # Partial results are lists, never single values or null.
    result = result_type(name)
    members = get_args(result) if get_origin(result) is Union else (result,)
    return Union[tuple(member for member in members if get_origin(member) is Sequence)]  # noqa: UP007 (of a tuple)


def partial_decode_type(name: str) -> Any:
    """Returns the type that partial results are decoded as: lsprotocol has no hooks for plain lists."""
    is_whole = partial_type(name) is not None and name not in PARTIAL_TYPES
    return result_type(name) if is_whole else partial_type(name)


def params_fields(name: str) -> dict[str, Any]:
    params = params_type(name)
    return attrs.fields_dict(params) if isinstance(params, type) and attrs.has(params) else {}
