"""`native`: becket's own dialect. Here stands what it adds to the link: cancellation, progress, deadlines, flow
control, pings and messages for the log. A peer that speaks it uses all of them until `agree` says which the other side
has announced; what belongs to one call travels in `params._meta.becket` and never on the envelope.
"""

from __future__ import annotations

from becket.dialects.dialect import Dialect, ProgressForm
from becket.rpc.records import Cancelling

__all__ = ["FEATURES", "NATIVE"]

FEATURES = frozenset({"cancel", "progress", "deadline", "credit", "ping", "log"})

NATIVE = Dialect(
    name="native",
    cancelling=Cancelling("$/cancelRequest"),
    progress=ProgressForm("$/progress"),
    ping="$/ping",
    credit="$/credit",
    features=FEATURES,
)
