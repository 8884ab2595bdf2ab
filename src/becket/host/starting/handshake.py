"""Runs the client handshake with an extension and turns its failures into start errors.

Until the extension has responded, only the first version of the contract is used; its response negotiates the features.
It may call the host from the first moment: its grants exist before.
"""

from __future__ import annotations

import logging
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, cast

import anyio
from msgspec import Raw

from becket._loggers import host_logger
from becket.contract.handshake import INITIALIZE, Capabilities, Initialize, Initialized
from becket.contract.handshake_checks import parse_initialized
from becket.contract.info import INFO_GET, ExtensionInfo
from becket.contract.log import parse_log_line
from becket.dialects.handshake import HandshakeContext, HandshakeResult
from becket.dialects.link_state import WireNotification, WireRequest
from becket.errors import (
    BadReply,
    BecketError,
    Busy,
    CallTimeout,
    ConnectionLost,
    HandshakeFailed,
    PeerCrashed,
    RemoteError,
    StartFailed,
)
from becket.host.serving.client import ContractClient
from becket.host.time_slices import Slices
from becket.peer.peer import Peer
from becket.permissions.gate import Gate

__all__ = ["last_stderr_line", "probe_info", "run_dialect_handshake", "run_native_handshake"]

CALL_ERRORS: Final = (BadReply, Busy, CallTimeout, ConnectionLost, RemoteError)
HINT: Final = "does it read its stdin and respond on its stdout, in the dialect `{dialect}`?"


async def run_native_handshake(
    peer: Peer,
    initialize: Initialize,
    gate: Gate,
    *,
    timeout: float,
    slices: Slices,
    known: AbstractSet[str] | None = None,
) -> Initialized:
    """Sends the host's handshake, and returns the extension's declarations after all checks of the contract.

    Raises:
        StartFailed: its process ended before it was ready.
        VersionMismatch: it has another version of the contract.
        BadCapabilities: its response cannot be decoded, or breaks rules. All problems.
        HandshakeFailed: no response, or a refusal; the base class of the others, except the first.
    """
    peer.limit_features(())
    raw = await send_initialize(peer, initialize, timeout)
    async with slices:
        initialized = parse_initialized(
            initialize.plugin_id, raw, grants=gate.grants, config=initialize.config, known=known
        )
    peer.limit_features(initialized.features)
    return initialized


async def send_initialize(peer: Peer, initialize: Initialize, timeout: float) -> Raw:
    try:
        return await peer.call(INITIALIZE.name, initialize, returns=Raw, timeout=timeout)
    except CALL_ERRORS as error:
        raise build_start_error(peer, initialize.plugin_id, error) from error


def build_start_error(peer: Peer, extension: str, error: BecketError, dialect: str = "native") -> BecketError:
    """Returns the error of a start, one of whose calls has failed with this error."""
    match error:
        case PeerCrashed(exit_code=code, stderr_tail=tail):
            because = f"ended before it was ready: {error.detail}"
            return StartFailed(extension, because, exit_code=code, stderr_tail=tail)
        case RemoteError():
            return HandshakeFailed(extension, f"it refused: {str(error).removeprefix(f'{error.method}: ')}")
        case CallTimeout():
            return HandshakeFailed(extension, f"{error} ({HINT.format(dialect=dialect)}{last_stderr_line(peer)})")
        case _:
            return HandshakeFailed(extension, f"{error}{last_stderr_line(peer)}")


def last_stderr_line(peer: Peer) -> str:
    """Returns the last line of a child's stderr, which often has the reason."""
    line = "" if peer.process is None else peer.process.stderr_tail.strip().rpartition("\n")[2]
    record = parse_log_line(line)
    return f"; last line of stderr: {line if record is None else record.message}" if line else ""


async def probe_info(
    client: ContractClient, extension: str, declared: Capabilities, timeout: float | None
) -> ExtensionInfo | None:
    """Requests an extension's info, after its declarations; errors are only logged.

    Raises:
        StartFailed, HandshakeFailed: the extension has ended over it.
    """
    requests_info = client.mapping is None or client.mapping.requests_info
    if not requests_info or not (declared.tools or declared.providers or declared.capabilities):
        return None
    try:
        return await client.call(INFO_GET, None, timeout=timeout)
    except ConnectionLost as error:
        raise build_start_error(client.peer, extension, error) from error
    except BecketError as error:
        # Many have nothing to report, and respond that the method is unknown.
        level = logging.DEBUG if isinstance(error, RemoteError) else logging.WARNING
        host_logger().log(level, "%s: no response to `%s`: %s", extension, INFO_GET.name, error)
        return None


async def run_dialect_handshake(
    client: ContractClient, context: HandshakeContext, *, timeout: float, slices: Slices
) -> HandshakeResult:
    """Performs the handshake of a foreign dialect, and returns the extension's declarations.

    Raises:
        StartFailed: its process ended before it was ready.
        HandshakeFailed: no response in time, a refusal, or a response that breaks the rules of its dialect.
    """
    assert client.mapping is not None
    steps = client.mapping.client_handshake(context)
    deadline = anyio.current_time() + timeout
    go_on = partial(steps.send, cast("Any", None))  # starts a generator
    while True:
        try:
            async with slices:
                step = go_on()
        except StopIteration as stop:
            result: HandshakeResult = stop.value
            return result
        except CALL_ERRORS as error:
            raise build_start_error(client.peer, context.extension, error, client.mapping.dialect) from error
        try:
            response = await run_step(client.peer, step, deadline)
        except CALL_ERRORS as error:
            go_on = partial(steps.throw, error)
        else:
            go_on = partial(steps.send, cast("Any", response))


async def run_step(peer: Peer, step: WireRequest | WireNotification, deadline: float) -> Raw | None:
    if isinstance(step, WireNotification):
        await peer.notify(step.method, step.params)
        return None
    left = max(0.0, deadline - anyio.current_time())
    return await peer.call(step.method.name, step.params, returns=Raw, timeout=left)
