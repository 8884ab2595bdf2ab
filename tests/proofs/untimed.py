"""A plugin of pytest for runs under mutation: `check_framing` compares no times there, and measures no memory.

Each call of mutated code goes through a function of the tool, which costs more than the code itself."""

from __future__ import annotations

from becket.testing.checks import framing


def pytest_configure() -> None:
    for check in ("_check_work", "_check_memory"):
        if not hasattr(framing, check):
            raise AttributeError(f"check_framing has no part {check}: correct tests/proofs/untimed.py")
        setattr(framing, check, lambda factory: None)
