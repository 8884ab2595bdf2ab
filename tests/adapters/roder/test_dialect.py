"""The wire of Roder: reading, skipping, writing, and the detection of its hosts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from becket.adapters.roder import RODER
from becket.dialects import find_dialect
from becket.dialects.dialect import Dialect
from becket.framing.content_length import ContentLength
from becket.framing.json_lines import JsonLines
from becket.host.restart import RestartPolicy, RestartStrategy
from becket.host.timeouts import DEFAULT_TIMEOUTS
from becket.limits import DEFAULT_LIMITS

OPENING = b'{"jsonrpc":"2.0","id":1,"method":"extension/initialize","params":{}}'


def test_the_dialect_is_found_by_its_name() -> None:
    assert find_dialect("roder") is RODER


def test_the_mapping_is_loaded_on_first_use() -> None:
    assert RODER.load_mapping is not None
    assert RODER.load_mapping().dialect == "roder"


@pytest.mark.parametrize(
    ("frame", "framing", "is_roder"),
    [
        (OPENING, JsonLines, True),
        (OPENING, ContentLength, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', JsonLines, False),
        (b'{"jsonrpc":"2.0","id":1}', JsonLines, False),
        (b"extension/initialize", JsonLines, False),
        (b"\xff", JsonLines, False),
    ],
)
def test_a_host_is_detected_by_its_first_message(frame: bytes, framing: type, is_roder: bool) -> None:
    assert RODER.matches_first_frame is not None
    assert RODER.matches_first_frame(frame, framing) is is_roder


def test_a_request_is_written_with_its_id_before_its_method() -> None:
    codec = RODER.build_connection(DEFAULT_LIMITS).codec

    assert codec.encode_request(b"1", "extension/shutdown", b"{}") == (
        b'{"jsonrpc":"2.0","id":1,"method":"extension/shutdown","params":{}}'
    )


@pytest.mark.parametrize("dialect", [RODER, RODER.for_extension()], ids=["host", "extension"])
def test_a_response_and_a_notification_are_written_as_json_rpc_has_them(dialect: Dialect) -> None:
    codec = dialect.build_connection(DEFAULT_LIMITS).codec

    assert codec.encode_success(b"7", b"{}") == b'{"jsonrpc":"2.0","id":7,"result":{}}'
    assert codec.encode_notification("a/b", b"{}") == b'{"jsonrpc":"2.0","method":"a/b","params":{}}'


def test_the_host_defaults_of_roder_apply_to_limits_timeouts_and_restarts() -> None:
    defaults = RODER.host_defaults

    assert replace(DEFAULT_LIMITS, **defaults.limits, **defaults.host_limits).handshake == 10.0
    assert replace(DEFAULT_TIMEOUTS, **defaults.timeouts).shutdown == 1.8
    restart = {**defaults.restart, "strategy": RestartStrategy(defaults.restart["strategy"])}
    assert replace(RestartPolicy(), **restart).strategy is RestartStrategy.NEVER
    assert defaults.inherited_variables == ("PATH",)
    assert defaults.starts_on_demand
    assert not defaults.runs_in_root
