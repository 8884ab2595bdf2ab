"""Calls within calls: a call that a handler makes ends no later than its request, and is made on behalf of its callers.

The depth of a nested call is sent with it; `Limits.call_depth` bounds it."""

from __future__ import annotations

from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from becket.jsonrpc.calls import CLOSED, InboundRequest, OutboundCall

if TYPE_CHECKING:
    from becket.peer.link import Link

__all__ = [
    "CURRENT_REQUEST",
    "CurrentRequest",
    "bind_to_request",
    "current_request",
    "latest_deadline",
]


class CurrentRequest(Struct, frozen=True):
    """The request that the running handler serves, and its link."""

    request: InboundRequest
    link: Any


CURRENT_REQUEST: ContextVar[CurrentRequest | None] = ContextVar("becket_serving", default=None)
"""Set in the task or worker of a handler: a call made there belongs to that request, at any depth."""


def current_request() -> CurrentRequest | None:
    """Returns the request that a call made here belongs to. A task may outlive the request whose handler started it."""
    current = CURRENT_REQUEST.get()
    return None if current is None or current.request.state is CLOSED else current


def bind_to_request(call: OutboundCall, current: CurrentRequest, link: Link) -> CurrentRequest | None:
    """Binds a call to the request that it is made within: it has its gates, and ends with it. Returns that request, or
    None if it has ended: a task may outlive the request whose handler started it."""
    request = current.request
    if request.state is CLOSED:
        return None
    if current.link.gate is not None:
        call.chain = (current.link.gate, *request.chain)  # from the nearest to the first
        link.is_for_others = True
    if request.deadline < call.deadline:
        call.deadline = request.deadline
        call.timeout = max(0.0, call.deadline - link.time())
    return current


def latest_deadline() -> float:
    """Returns the latest deadline of a call made here: that of the request that it belongs to."""
    current = current_request()
    return inf if current is None else current.request.deadline
