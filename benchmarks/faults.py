"""The cost of children that die, hang or misbehave, beside the bounds for it: a section of becket alone."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from math import isinf
from typing import Any

from benchmarks.roster import Entrant, Kind
from benchmarks.run import FOREIGN, WAITED, Calm, HostFailed, run_host, say

__all__ = ["Faults", "measure_faults", "render_faults"]

ENTRANT = Entrant("faults", "becket", Kind.BECKET, "becket/faults_host.py", "becket/faults_child.py")
SCALE = Entrant("scale", "becket", Kind.BECKET, "becket/scale_host.py", "becket/scale_child.py")
SHARE = Entrant("share", "becket", Kind.BECKET, "becket/share_host.py", "becket/share_child.py")
ATTACKER = Entrant(
    "memory attack", "becket", Kind.BECKET, "becket/memory_attack_host.py", "becket/memory_attack_child.py"
)
ENOUGH = 100  # samples from which on the 99th percentile counts, and not the worst
SIZES = {
    "kills": ENOUGH,
    "hangs": 5,
    "stops": 20,
    "frames": 5,
    "messages": 5,
    "pings": 2 * ENOUGH,
    "idle": 50,
    "children": 100,
    "seconds": 3,
    "attack_seconds": 10,
}
DOUBT = {Calm.QUIET: "", Calm.UNDELAYED: "~", Calm.DISTURBED: "?"}

Faults = dict[str, dict[str, Any]]
"""Each experiment: the samples of what it measured (`values`), `foreign` and `waited`; or why it `failed`."""


@dataclass(frozen=True)
class Promise:
    """One row: a quantity of an experiment, and what it may be at most."""

    experiment: str
    quantity: str
    title: str
    bound: float
    unit: str
    entrant: Entrant = ENTRANT


PROMISES = (
    Promise("exit_noticed", "exit_noticed", "SIGKILL of a child to the failure of the call in flight", 5, "ms"),
    Promise(
        "exit_with_grandchild",
        "exit_with_grandchild",
        "exit of a child whose pipes a grandchild holds, to the failure of its call",
        20,
        "ms",
    ),
    Promise("hang", "hang", "SIGSTOP of an extension to the next result of its new copy", 3_500, "ms"),
    Promise("stop_cat", "stop_cat", "stop of `cat`", 50, "ms"),
    Promise("stop_blocking", "stop_blocking", "stop of a blocking becket child", 50, "ms"),
    Promise("stop_stubborn", "stop_stubborn", "stop of a child that ignores SIGTERM", 4_500, "ms"),
    *(
        promise
        for kind, title in {
            "length": "frame of 4 GiB",
            "header": "header without end",
            "header_line": "header line without end",
            "line": "JSON line without end",
        }.items()
        for promise in (
            Promise(kind, f"{kind}_ended", f"{title}: its first byte to the end of the link", 100, "ms"),
            Promise(kind, f"{kind}_growth", f"{title}: growth of the host", 16, "MiB"),
        )
    ),
    *(
        Promise("message_stalls", f"{kind}_stall", f"{title}: processor time of the longest chunk", 50, "ms")
        for kind, title in {
            "objects": "4 MiB of `{},`",
            "strings": '4 MiB of `"a",`',
            "members": '4 MiB of `{"a":{}},`',
            "nested": "2 Mi nested arrays",
            "nodes": "50,000 nodes",
            "string": "a string of 4 MiB",
        }.items()
    ),
    Promise("oversize", "oversize_stall", "responses of 16 MiB: processor time of the longest chunk", 50, "ms"),
    Promise("oversize", "oversize_growth", "the same: growth of the host", 16, "MiB"),
    Promise(
        "loop_stalls",
        "loop_stall",
        "the worst of these from a child: processor time of the longest turn of the loop",
        50,
        "ms",
    ),
    Promise("sibling_ping", "sibling_ping", "call to a child while another floods", 5, "ms"),
    Promise("crowd", "crowd_quiet", "call to one of 100 extensions of a host", 10, "ms"),
    Promise("crowd", "crowd_flooded", "the same while one of them floods", 10, "ms"),
    Promise("crowd", "crowd_storm", "the same while three of them flood and one spins", 10, "ms"),
    Promise("hook_filters", "hooks_loop", "800 hook filters and an input of 1 MB: loop's processor time", 50, "ms"),
    Promise("hook_filters", "hooks_all", "the same with 800 texts: processor time of all threads", 1_000, "ms"),
    Promise("hook_filters", "hooks_alike", "the same with one text for all", 20, "ms"),
    *(
        Promise(
            f"stderr_{kind}{on and f' {on}'}",
            f"stderr_{kind}",
            f"stderr full of {title}, logged: processor time of one iteration{on and f', {on}'}",
            2,
            "ms",
            SHARE,
        )
        for kind, on, title in (
            ("errors", "", "`E` and a line end"),
            ("errors", "uvloop", "`E` and a line end"),
            ("errors", "trio", "`E` and a line end"),
            ("errors", "blocking", "`E` and a line end"),
            ("returns", "", "`E` and a carriage return"),
            ("long", "", "lines of 8,000 bytes"),
            ("unbroken", "", "one line without end"),
        )
    ),
    *(
        promise
        for name, title in {
            "query_batches": "batches of 50 `memory.query`",
            "query_batches uvloop": "the same on uvloop",
            "query_batches trio": "the same on trio",
            "unread_query_batches": "the same, and results are not read",
            "meta_query_batches": "the same for records with much `meta`",
            "slow_requests": "requests of 4 MiB to a slow method",
            "slow_requests uvloop": "the same on uvloop",
            "slow_requests trio": "the same on trio",
            "slow_wide_requests": "the same with a wide character",
            "slow_containers": "the same with 25,000 empty objects",
            "slow_batches": "batches with one slow member",
            "consent": "requests of 4 MiB while consent is pending",
            "consent_containers": "the same with 25,000 empty objects",
            "subscriptions": "`config.subscribe` with ever new keys",
        }.items()
        for kind in (name.partition(" ")[0],)
        for promise in (
            Promise(name, f"{kind}_growth", f"{title}: growth of the host in 10 s", 64, "MiB", ATTACKER),
            Promise(name, f"{kind}_close", f"{title}: closing the host", 5, "s", ATTACKER),
        )
    ),
    *(
        promise
        for on in ("", " uvloop", " trio")
        for kind, title, iteration, ping in (
            ("tiny", "tiny messages", 5, 2),
            ("garbage", "`{}`", 5, 2),
            ("handlers", "handlers of 1 ms", 5, 2),
            ("largest", "messages at all limits", 50, 60),
        )
        for promise in (
            Promise(
                f"share_{kind}{on}",
                f"share_{kind}_iteration",
                f"three children flood with {title}: processor time of one iteration{on and f',{on}'}",
                iteration,
                "ms",
                SHARE,
            ),
            Promise(
                f"share_{kind}{on}",
                f"share_{kind}_ping",
                f"the same: p99 of calls to 16 others, above that while the three only compute{on and f',{on}'}",
                ping,
                "ms",
                SHARE,
            ),
        )
    ),
    Promise("handshake", "handshake", "handshake with 8,000 tools: processor time of one iteration", 50, "ms", SCALE),
    Promise(
        "storm",
        "storm",
        "an MCP server with 4,000 tools that change without end: processor time of one iteration",
        50,
        "ms",
        SCALE,
    ),
    *(
        promise
        for on in ("", " trio")
        for promise in (
            Promise(
                f"many{on}",
                "many_start",
                f"N6: start of 200 extensions: processor time of one iteration{on and f',{on}'}",
                50,
                "ms",
                SCALE,
            ),
            Promise(
                f"many{on}",
                "many_idle",
                f"200 idle extensions that are pinged: processor time{on and f',{on}'}",
                2,
                "%",
                SCALE,
            ),
        )
    ),
    Promise(
        "working_copy",
        "working_copy",
        "a writable copy of 100 files for a start, after the one before it: processor time",
        10,
        "ms",
        SCALE,
    ),
    Promise("turn", "turn", "a model that calls 6,000 tools in one turn: growth of the host", 64, "MiB", SCALE),
    Promise("idle_memory", "idle_memory", "memory of the host for an idle child, of 50", 256, "KiB"),
    Promise("many_threads", "more_threads", "threads of the host more with 100 children than with one", 0, ""),
)


def measure_faults() -> Faults:
    """Returns what each experiment measured, each in a host of its own."""
    faults: Faults = {}
    for experiment, entrant in {promise.experiment: promise.entrant for promise in PROMISES}.items():
        try:
            # Not pinned: a host and all of its children would share one core.
            faults[experiment] = run_host(entrant, {"experiment": experiment, **SIZES}, is_pinned=False)
        except HostFailed as error:
            faults[experiment] = {"failed": str(error)}
        say(f"faults  {experiment}")
    return faults


def calm_of(figures: dict[str, Any]) -> Calm:
    if figures["foreign"] <= FOREIGN:
        return Calm.QUIET
    return Calm.UNDELAYED if figures["waited"] <= WAITED else Calm.DISTURBED


def render_faults(faults: Faults) -> str:
    """Returns the section as Markdown."""
    lines = [
        "## Faults",
        "",
        "Faults of children that a host must survive, becket on asyncio with the default limits. Bounds apply to the",
        f"99th percentile where there are {ENOUGH} samples, else against the worst. `~` marks figures beside which",
        "programs used the machine, `?` figures from disturbed runs. Chunks are of 64 KiB.",
        "",
        "| what | samples | measured p50 | p99/worst | bound | met |",
        "|---|---:|---:|---:|---:|---|",
    ]
    lines += [row(promise, faults[promise.experiment]) for promise in PROMISES if promise.experiment in faults]
    return "\n".join([*lines, ""])


def row(promise: Promise, figures: dict[str, Any]) -> str:
    unit = promise.unit and f" {promise.unit}"
    bound = f"<= {promise.bound:,.0f}{unit}"
    if "failed" in figures:
        return f"| {promise.title} | | | | {bound} | not measured: {figures['failed']} |"
    values = sorted(figures["values"][promise.quantity])
    high = values[len(values) * 99 // 100] if len(values) >= ENOUGH else values[-1]
    mark = DOUBT[calm_of(figures)] if promise.unit == "ms" else ""  # other programs do not change it
    middle, worst = (shown(value, unit, mark) for value in (statistics.median(values), high))
    met = "yes" if high <= promise.bound else "**no**"
    return f"| {promise.title} | {len(values)} | {middle} | {worst} | {bound} | {met} |"


def shown(value: float, unit: str, mark: str) -> str:
    if isinf(value):
        return "not ended"
    digits = 0 if value >= 100 or not unit else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{mark}{unit}"
