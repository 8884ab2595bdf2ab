"""Messages are sent at once although no thread waits for the link; shell lines are refused as commands."""

from __future__ import annotations

import socket

import pytest

from becket.blocking import BlockingPeer, CallCancelled, connect_process
from becket.peer.transport.fd import FdTransport


def test_a_cancellation_is_sent_at_once() -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    with theirs, BlockingPeer(FdTransport.from_socket(ours)) as peer:
        pending = peer.begin("ask")
        assert b'"ask"' in theirs.recv(1000)
        pending.cancel()
        assert b"$/cancelRequest" in theirs.recv(1000)
        with pytest.raises(CallCancelled):
            pending.result()


def test_two_notifications_in_a_row_are_both_sent() -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    with theirs, BlockingPeer(FdTransport.from_socket(ours)) as peer:
        for number in range(3):
            peer.notify("tell", [number])
            assert b"[%d]" % number in theirs.recv(1000)


def test_a_shell_command_line_is_refused_as_a_command() -> None:
    with pytest.raises(TypeError):
        connect_process("cat -n")
