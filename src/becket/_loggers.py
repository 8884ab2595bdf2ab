"""Loggers by component. `logging` is imported with the first message: many extensions never log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["adapter_logger", "extension_logger", "host_logger", "log_incident", "peer_logger"]


def peer_logger() -> Logger:
    return get_logger("becket.peer")


def host_logger() -> Logger:
    return get_logger("becket.host")


def adapter_logger(system: str) -> Logger:
    """Returns the logger of the adapter for one foreign system."""
    return get_logger(f"becket.{system}")


def extension_logger(id: str) -> Logger:
    """Returns the logger for messages of one extension, and about it."""
    return get_logger(f"becket.ext.{id}")


def get_logger(name: str) -> Logger:
    import logging

    return logging.getLogger(name)


def log_incident(logger: Logger, what: str, error: BaseException | None) -> str:
    """Logs what happened under a new incident id, and returns the id: nothing else reaches the wire."""
    incident = os.urandom(6).hex()
    logger.error("incident %s: %s", incident, what, exc_info=error)
    return incident
