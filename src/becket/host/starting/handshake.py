"""Runs the client handshake with an extension and turns its failures into start errors.

Until the extension has answered, nothing but the words of the contract is said to it; what it may use beyond them is
agreed on with its answer. What it may call it may call from the first moment: its grants stand before.
"""

from __future__ import annotations

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
from becket.dialects.mapping import WireNotification, WireRequest
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
from becket.host.slices import Slices
from becket.peer.peer import Peer
from becket.permissions.gate import Gate

__all__ = ["last_stderr_line", "probe_info", "run_dialect_handshake", "run_native_handshake"]

CALL_ERRORS: Final = (BadReply, Busy, CallTimeout, ConnectionLost, RemoteError)
HINT: Final = "does it read its stdin and answer on its stdout, in the dialect `{dialect}`?"


async def run_native_handshake(
    peer: Peer,
    words: Initialize,
    gate: Gate,
    *,
    timeout: float,
    slices: Slices,
    known: AbstractSet[str] | None = None,
) -> Initialized:
    """Introduces the host, and returns what the extension declares once it has passed every rule of the contract.

    Raises:
        StartFailed: its process ended before it was ready.
        VersionMismatch: it speaks another version of the contract.
        BadCapabilities: its answer cannot be read, or breaks rules. All problems.
        HandshakeFailed: it did not answer, or refused; the others are of this kind too, but for the first.
    """
    peer.limit_features(())
    raw = await send_initialize(peer, words, timeout)
    async with slices:
        initialized = parse_initialized(words.plugin_id, raw, grants=gate.grants, config=words.config, known=known)
    peer.limit_features(initialized.features)
    return initialized


async def send_initialize(peer: Peer, words: Initialize, timeout: float) -> Raw:
    try:
        return await peer.call(INITIALIZE.name, words, returns=Raw, timeout=timeout)
    except CALL_ERRORS as error:
        raise build_start_error(peer, words.plugin_id, error) from error


def build_start_error(peer: Peer, extension: str, error: BecketError, dialect: str = "native") -> BecketError:
    """Returns what a start has failed with, given how a call of it has failed."""
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
    """Returns the last line of a child's stderr, which often says it all."""
    said = "" if peer.process is None else peer.process.stderr_tail.strip().rpartition("\n")[2]
    record = parse_log_line(said)
    return f"; last line of stderr: {said if record is None else record.message}" if said else ""


async def probe_info(
    voice: ContractClient, extension: str, declared: Capabilities, timeout: float | None
) -> ExtensionInfo | None:
    """Asks an extension that has declared something about its build; what goes wrong with that is only logged.

    Raises:
        StartFailed, HandshakeFailed: the extension has ended over it.
    """
    is_asked = voice.mapping is None or voice.mapping.requests_info
    if not is_asked or not (declared.tools or declared.providers or declared.capabilities):
        return None
    try:
        return await voice.call(INFO_GET, None, timeout=timeout)
    except ConnectionLost as error:
        raise build_start_error(voice.peer, extension, error) from error
    except BecketError as error:
        import logging

        # Many have nothing to tell, and answer that they do not know the method.
        level = logging.DEBUG if isinstance(error, RemoteError) else logging.WARNING
        host_logger().log(level, "%s: no answer to `%s`: %s", extension, INFO_GET.name, error)
        return None


async def run_dialect_handshake(
    voice: ContractClient, introduction: HandshakeContext, *, timeout: float, slices: Slices
) -> HandshakeResult:
    """Shakes hands in a dialect with words of its own, and returns what the extension declares.

    Raises:
        StartFailed: its process ended before it was ready.
        HandshakeFailed: it did not answer in time, refused, or what it answered breaks the rules of its dialect.
    """
    assert voice.mapping is not None
    steps = voice.mapping.client_handshake(introduction)
    deadline = anyio.current_time() + timeout
    go_on = partial(steps.send, cast("Any", None))  # what a generator is begun with
    while True:
        try:
            async with slices:
                step = go_on()
        except StopIteration as stop:
            greeted: HandshakeResult = stop.value
            return greeted
        except CALL_ERRORS as error:
            raise build_start_error(voice.peer, introduction.extension, error, voice.mapping.dialect) from error
        try:
            answer = await run_step(voice.peer, step, deadline)
        except CALL_ERRORS as error:
            go_on = partial(steps.throw, error)
        else:
            go_on = partial(steps.send, cast("Any", answer))


async def run_step(peer: Peer, step: WireRequest | WireNotification, deadline: float) -> Raw | None:
    if isinstance(step, WireNotification):
        await peer.notify(step.method, step.params)
        return None
    left = max(0.0, deadline - anyio.current_time())
    return await peer.call(step.method.name, step.params, returns=Raw, timeout=left)
