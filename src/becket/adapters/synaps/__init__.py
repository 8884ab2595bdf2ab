"""Adapter for SynapsCLI plugins: which behaviour is copied and which is not.

Copied: framing and ids; `error: null` is an error, and only the message of an error counts; three error codes and their
texts; `null` for absent params; one call at a time; timeouts, restarts and environment. Invalid JSON ends the link.

Harmful behaviour is a switch of `HostDefaults`, off by default: restarting an extension after an error response of a
tool, and calling the tool again. A program that ends without a response to `shutdown` is not started again.

Not copied: the empty configuration after a restart (an extension gets its own again), a handshake without a timeout,
and a header line without a limit.
"""

from __future__ import annotations

from becket.adapters.synaps.dialect import SYNAPS

__all__ = ["SYNAPS"]
