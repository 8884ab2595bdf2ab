"""Test kit: in-memory peers, faults, clocks, leak checks, transcripts and `check_*` contracts.

Two peers in memory (`memory_pair`), an extension and its host (`connected`), faulty transports (`CutReads`,
`SplitReads`, ...), child programs that misbehave (`child`), virtual time (`VirtualClock`, `VirtualTimeLoop`), leak
checks (`check_leaks`), and executable contracts (`check_dialect`, `check_framing`, `check_store`,
`check_persistent_store`, `check_power_cuts`, `check_flipped_bits`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from becket._lazy import lazy_exports

if TYPE_CHECKING:
    from becket.testing.checks.damage import check_flipped_bits as check_flipped_bits
    from becket.testing.checks.dialect import check_dialect as check_dialect
    from becket.testing.checks.framing import check_framing as check_framing
    from becket.testing.checks.persistence import (
        check_persistent_store as check_persistent_store,
        check_power_cuts as check_power_cuts,
    )
    from becket.testing.checks.store import check_store as check_store
    from becket.testing.clocks import *
    from becket.testing.faults import *
    from becket.testing.leaks import *
    from becket.testing.pairs import *
    from becket.testing.processes import CHILDREN as CHILDREN, ProcessWatch as ProcessWatch, child as child

EXPORTS = {
    "becket.testing.checks.damage": "check_flipped_bits",
    "becket.testing.checks.dialect": "check_dialect",
    "becket.testing.checks.framing": "check_framing",
    "becket.testing.checks.persistence": "check_persistent_store check_power_cuts",
    "becket.testing.checks.store": "check_store",
    "becket.testing.clocks": "run_in_virtual_time VirtualClock VirtualTimeLoop",
    "becket.testing.faults": "CutReads CutWrites DelayReads Fault SplitReads TornWrites",
    "becket.testing.leaks": "adopt_orphans check_leaks check_task_leaks Inventory take_inventory",
    "becket.testing.pairs": "connected memory_pair memory_transports MemoryTransport",
    "becket.testing.processes": "child CHILDREN ProcessWatch",
}

__getattr__, __dir__ = lazy_exports(globals(), EXPORTS)
