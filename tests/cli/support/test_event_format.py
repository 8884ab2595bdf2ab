"""Every event of a host is formatted as one line with the extension, the event and the reason."""

from __future__ import annotations

import inspect
import json

import msgspec
import pytest

from becket.cli.support.event_format import build_event_object, format_event
from becket.cli.support.status_table import HEADERS, build_status_rows, is_up
from becket.contract.names import snake_case
from becket.host import events
from becket.host.diagnostics import Diagnostic
from becket.host.events import (
    ExtensionChanged,
    ExtensionDegraded,
    ExtensionDisabled,
    ExtensionDiscovered,
    ExtensionEnabled,
    ExtensionExited,
    ExtensionFailed,
    ExtensionLogged,
    ExtensionRecovered,
    ExtensionReloaded,
    ExtensionRestarted,
    ExtensionRestarting,
    ExtensionStarted,
    ExtensionStarting,
    ExtensionStartRefused,
    ExtensionStateChanged,
    ExtensionStopped,
    ExtensionToolsChanged,
    HostEvent,
    HostStalled,
    PermissionGranted,
    PermissionRevoked,
    ProblemFound,
)
from becket.host.host import ExtensionStatus
from becket.host.lifecycle import ExtensionState, Health
from becket.host.metrics import ExtensionMetrics

FORMATTED = [
    (ProblemFound(Diagnostic(problem="is bad", path="/x", hint="mend it")), "error: /x: is bad (mend it)"),
    (HostStalled(2.5), "the host's event loop was blocked for 2.5 s"),
    (ExtensionDiscovered("n", "/x", "1.0.0"), "n: found 1.0.0 in /x"),
    (ExtensionDiscovered("n", "/x"), "n: found without a version in /x"),
    (ExtensionDiscovered("n", "/x", "1.0.0", "roder"), "n: found 1.0.0 in /x, dialect roder"),
    (ExtensionStartRefused("n", "no", "ask"), "n: refused: no (ask)"),
    (ExtensionStarted("n", 7, 0.25), "n: started in 0.25 s, process 7"),
    (ExtensionStarted("n", None, 0.25), "n: started in 0.25 s"),
    (ExtensionFailed("n", "n: it died", "look"), "n: failed: it died (look)"),
    (ExtensionExited("n", 3, stderr_tail="a\nboom\n"), "n: exited with code 3, last line of stderr: boom"),
    (ExtensionExited("n", None, "SIGKILL"), "n: killed by SIGKILL"),
    (ExtensionExited("n", 0, expected=True), None),
    (ExtensionRestarting("n", 2, 0.5, "it died"), "n: restarting in 0.50 s, attempt 2: it died"),
    (ExtensionRestarted("n", 8, 2, 0.75), "n: restarted after 0.75 s, process 8, restarts: 2"),
    (ExtensionDegraded("n", "slow"), "n: degraded: slow"),
    (ExtensionRecovered("n"), "n: recovered"),
    (ExtensionStopped("n"), "n: stopped"),
    (ExtensionStopped("n", abandoned=True), "n: stopped, but its process cannot be killed"),
    (ExtensionDisabled("n"), "n: disabled"),
    (ExtensionDisabled("n", "by hand"), "n: disabled: by hand"),
    (ExtensionEnabled("n"), "n: enabled"),
    (ExtensionChanged("n", ("a.py", "b.py")), "n: changed on disk: a.py, b.py"),
    (ExtensionToolsChanged("n", 3), "n: tools changed, number of tools: 3"),
    (ExtensionReloaded("n", 0.5), "n: reloaded in 0.50 s"),
    (ExtensionReloaded("n", 0.5, 2), "n: reloaded in 0.50 s, interrupted calls: 2"),
    (PermissionGranted("n", "memory.read", "host"), "n: memory.read granted by host"),
    (PermissionRevoked("n", "memory.read", "host"), "n: memory.read revoked by host"),
    (ExtensionStateChanged("n", ExtensionState.READY, ExtensionState.STOPPING), None),
    (ExtensionStarting("n", ("x",)), None),
    (ExtensionLogged("n", "info", "x"), "n: info: x"),
    (HostEvent(), None),
]


@pytest.mark.parametrize(("event", "line"), FORMATTED, ids=lambda part: type(part).__name__)
def test_an_event_is_formatted(event: HostEvent, line: str | None) -> None:
    assert format_event(event) == line


def test_no_event_is_left_out() -> None:
    kinds = {kind for _, kind in inspect.getmembers(events, inspect.isclass) if issubclass(kind, HostEvent)}

    assert kinds - {type(event) for event, _ in FORMATTED} == {events.ExtensionEvent}


@pytest.mark.parametrize("event", [event for event, _ in FORMATTED], ids=lambda event: type(event).__name__)
def test_an_event_is_a_json_object_with_its_name_and_its_time(event: HostEvent) -> None:
    received = json.loads(msgspec.json.encode(build_event_object(event, 5)))

    assert (received["event"], received["time_ms"]) == (snake_case(type(event).__name__), 5)
    assert set(event.__struct_fields__) <= set(received)


# -- rows of the table


def test_a_row_shows_the_state_and_the_figures_of_an_extension() -> None:
    figures = ExtensionMetrics(12, 1, 3.25, 0.0042, 1.5, 40, 6.04)
    status = ExtensionStatus("n", ExtensionState.READY, Health.RUNNING, "1.0.0", 7, 2, 0, 3, "n: why\nmore", figures)

    (row,) = build_status_rows([status])

    shown = dict(zip(HEADERS, row, strict=True))
    assert shown == {
        "extension": "n",
        "version": "1.0.0",
        "dialect": "native",
        "state": "ready",
        "pid": "7",
        "tools": "3",
        "calls": "12",
        "calls/s": "3.2",
        "latency": "4.2 ms",
        "95 %": "1.5 s",
        "inbound": "40",
        "inbound/s": "6.0",
        "restarts": "2",
        "note": "why",
    }


def test_an_extension_that_does_not_run_has_no_figures() -> None:
    status = ExtensionStatus("n", ExtensionState.FAILED, Health.FAILED_VALIDATION)

    (row,) = build_status_rows([status])

    assert [cell for header, cell in zip(HEADERS, row, strict=True) if header in ("pid", "latency", "version")] == [
        ""
    ] * 3
    assert not is_up(status)
