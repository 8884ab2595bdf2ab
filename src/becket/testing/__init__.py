"""Test kit: in-memory peers, faults, clocks, leak checks, transcripts and `check_*` contracts.

Two peers in memory (`memory_pair`), an extension and its host (`connected`), links that go wrong (`CutReads`,
`SplitReads`, ...), children that misbehave (`child`), time that a test lets pass (`VirtualClock`, `VirtualTimeLoop`),
what a test left behind (`check_leaks`), and contracts as programs (`check_dialect`,
`check_framing`, `check_store`, `check_persistent_store`, `check_power_cuts`,
`check_flipped_bits`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.testing.checks.damage import check_flipped_bits
    from becket.testing.checks.dialect import check_dialect
    from becket.testing.checks.framing import check_framing
    from becket.testing.checks.persistence import check_persistent_store, check_power_cuts
    from becket.testing.checks.store import check_store
    from becket.testing.clocks import VirtualClock, VirtualTimeLoop, run_in_virtual_time
    from becket.testing.faults import CutReads, CutWrites, DelayReads, Fault, SplitReads, TornWrites
    from becket.testing.joining import connected
    from becket.testing.leaks import Inventory, adopt_orphans, check_leaks, check_task_leaks, take_inventory
    from becket.testing.pairs import MemoryTransport, memory_pair, memory_transports
    from becket.testing.processes import CHILDREN, ProcessWatch, child

__all__ = [
    "CHILDREN",
    "CutReads",
    "CutWrites",
    "DelayReads",
    "Fault",
    "Inventory",
    "MemoryTransport",
    "ProcessWatch",
    "SplitReads",
    "TornWrites",
    "VirtualClock",
    "VirtualTimeLoop",
    "adopt_orphans",
    "check_dialect",
    "check_flipped_bits",
    "check_framing",
    "check_leaks",
    "check_persistent_store",
    "check_power_cuts",
    "check_store",
    "check_task_leaks",
    "child",
    "connected",
    "memory_pair",
    "memory_transports",
    "run_in_virtual_time",
    "take_inventory",
]

HOMES = {
    "CHILDREN": "becket.testing.processes",
    "CutReads": "becket.testing.faults",
    "CutWrites": "becket.testing.faults",
    "DelayReads": "becket.testing.faults",
    "Fault": "becket.testing.faults",
    "Inventory": "becket.testing.leaks",
    "MemoryTransport": "becket.testing.pairs",
    "ProcessWatch": "becket.testing.processes",
    "SplitReads": "becket.testing.faults",
    "TornWrites": "becket.testing.faults",
    "VirtualClock": "becket.testing.clocks",
    "VirtualTimeLoop": "becket.testing.clocks",
    "adopt_orphans": "becket.testing.leaks",
    "check_dialect": "becket.testing.checks.dialect",
    "check_framing": "becket.testing.checks.framing",
    "check_leaks": "becket.testing.leaks",
    "check_flipped_bits": "becket.testing.checks.damage",
    "check_persistent_store": "becket.testing.checks.persistence",
    "check_power_cuts": "becket.testing.checks.persistence",
    "check_store": "becket.testing.checks.store",
    "check_task_leaks": "becket.testing.leaks",
    "child": "becket.testing.processes",
    "connected": "becket.testing.joining",
    "memory_pair": "becket.testing.pairs",
    "memory_transports": "becket.testing.pairs",
    "run_in_virtual_time": "becket.testing.clocks",
    "take_inventory": "becket.testing.leaks",
}

__getattr__, __dir__ = lazy_exports(__name__, globals(), HOMES)
