"""Every limit has a default, cannot be changed in place, and can be changed in a copy."""

from __future__ import annotations

import msgspec
import pytest

from becket.limits import DEFAULT_LIMITS, Limits

MIB = 1024 * 1024


def test_the_defaults_match_the_documentation() -> None:
    limits = Limits()
    assert (limits.frame, limits.header, limits.header_lines) == (4 * MIB, 4096, 16)
    assert (limits.nodes, limits.depth, limits.digits, limits.batch) == (50_000, 64, 128, 50)
    assert (limits.inbound_requests, limits.outbound_calls, limits.call_depth) == (256, 1024, 32)
    assert (limits.inbound_bytes, limits.host_inbound_bytes, limits.config_subscriptions) == (16 * MIB, 256 * MIB, 1000)
    assert (limits.send_queue, limits.stream_events, limits.stream_bytes) == (8 * MIB, 65_536, 8 * MIB)
    assert (limits.partial_frame, limits.handshake, limits.call_timeout) == (10.0, 10.0, 60.0)
    assert (limits.stderr_tail, limits.stderr_line, limits.id_bytes) == (64 * 1024, 8 * 1024, 256)
    assert (limits.remembered_ids, limits.stray_replies) == (4096, 100)


def test_every_limit_is_on_but_the_rate_of_messages_and_silence() -> None:
    off = [name for name, value in msgspec.structs.asdict(DEFAULT_LIMITS).items() if not value > 0]
    assert off == ["message_rate", "silence"]


def test_a_limit_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        DEFAULT_LIMITS.frame = 1  # type: ignore[misc]


def test_a_copy_with_changes_leaves_the_other_values_and_the_original_unchanged() -> None:
    changed = DEFAULT_LIMITS.but(frame=10, call_timeout=0.5)
    assert (changed.frame, changed.call_timeout) == (10, 0.5)
    assert changed.nodes == DEFAULT_LIMITS.nodes
    assert DEFAULT_LIMITS.frame == 4 * MIB


def test_a_limit_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError):
        DEFAULT_LIMITS.but(no_such_limit=1)


def test_limits_are_equal_by_value_and_can_be_keys() -> None:
    assert Limits(frame=10) == Limits(frame=10)
    assert len({Limits(frame=10), Limits(frame=10), Limits()}) == 2
