"""A reference codec, written to be obviously correct: parses everything with the standard library."""

from __future__ import annotations

import json
import re
from typing import Any

from becket.limits import Limits

__all__ = ["NOT_JSON", "classify", "parse"]

NOT_JSON = object()
SURROGATE = re.compile("[\ud800-\udfff]")


class Pairs(dict[str, Any]):
    """An object that remembers whether one of its names stood twice, and how deep all its members were."""

    has_twins = False
    depth = 0


def parse(data: bytes) -> Any:
    """Returns the value of a JSON text, or NOT_JSON; numbers stay as they were written."""
    try:
        value = json.loads(
            data.decode(), parse_constant=refuse, parse_int=Number, parse_float=Number, object_pairs_hook=pairs
        )
    except (ValueError, RecursionError):
        return NOT_JSON
    return NOT_JSON if has_surrogate(value) else value


class Number(str):
    """A number as it was written."""

    __slots__ = ()


def refuse(constant: str) -> None:
    raise ValueError(constant)


def pairs(items: list[tuple[str, Any]]) -> Pairs:
    if any(has_surrogate(name) or has_surrogate(value) for name, value in items):
        raise ValueError("a surrogate alone, in what may be replaced by a later twin")
    found = Pairs(items)
    found.has_twins = len(found) < len(items)
    found.depth = 1 + max((depth_of(value) for _, value in items), default=0)
    return found


def has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(has_surrogate(name) or has_surrogate(member) for name, member in value.items())
    return isinstance(value, list) and any(map(has_surrogate, value))


def depth_of(value: Any) -> int:
    if isinstance(value, Pairs):
        return value.depth
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def classify(value: Any, limits: Limits) -> Any:
    """Returns the kind of message that a parsed frame is; a list of kinds for a batch."""
    if value is NOT_JSON:
        return "parse error"
    if depth_of(value) > limits.depth:
        return "too large"
    if isinstance(value, list):
        if len(value) > limits.batch:
            return "too large"
        return [classify(member, limits) if isinstance(member, dict) else "invalid" for member in value] or "invalid"
    if not isinstance(value, Pairs) or value.has_twins:
        return "invalid"
    has_id = "id" in value
    id_is_good = not has_id or is_id(value["id"])
    has_version = value.get("jsonrpc") == "2.0" and not isinstance(value["jsonrpc"], Number)
    if "method" in value:
        method = value["method"]
        is_name = isinstance(method, str) and not isinstance(method, Number) and bool(method)
        if not id_is_good or not has_version or "result" in value or "error" in value or not is_name:
            return "invalid"
        return "request" if has_id else "notification"
    return classify_response(value, has_id and id_is_good, has_version)


def classify_response(value: Pairs, has_good_id: bool, has_version: bool) -> str:
    has_result, has_error = "result" in value, value.get("error") is not None
    is_response = has_result or "error" in value
    if not has_good_id:
        if not is_response:
            return "invalid"
        if "id" in value or has_result or not has_error:
            return "malformed"
    if not has_version or has_result == has_error:
        return "malformed"
    if has_result:
        return "success"
    error = value["error"]
    code = error.get("code") if isinstance(error, Pairs) else None
    return "failure" if isinstance(code, Number) and re.fullmatch("-?[0-9]+", code) else "malformed"


def is_id(id: Any) -> bool:
    if isinstance(id, Number):
        return abs(float(id)) < float("inf")
    return id is None or isinstance(id, str)
