"""Adapter for SynapsCLI plugins: which behaviour is copied and which is not.

Copied are its framing and ids, that `error: null` is an error and that only the message of an error counts, its three
numbers and its texts, `null` for absent params, one call at a time, its timeouts, its restarts and its environment; and
that JSON which is none ends the link. What hurts is a switch of `HostDefaults`, and off: a tool that answers with an
error is not started anew and not called twice, and a program that ends without an answer to `shutdown` is not started
again. Never copied: after a restart an extension gets its configuration again (not `{}`), the first exchange is
bounded, and a header line is bounded while it is read."""

from __future__ import annotations

from becket.adapters.synaps.dialect import SYNAPS

__all__ = ["SYNAPS"]
