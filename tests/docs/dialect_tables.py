"""The tables of the page about dialects, generated from their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from math import isinf
from typing import Any

from becket.dialects import ADAPTERS, DIALECTS, NATIVE, Dialect
from becket.dialects.link_state import LinkState
from becket.framing import ContentLength, JsonLines, LengthPrefixed
from becket.host.restart import RestartPolicy, RestartStrategy
from becket.host.starting.manifest_formats import MANIFEST_READERS
from becket.host.timeouts import DEFAULT_TIMEOUTS
from becket.limits import DEFAULT_LIMITS, MIB
from becket.methods.descriptors import Method, Notification

__all__ = ["PARTS", "render_abilities", "render_files", "render_host_defaults", "render_links", "render_own_methods"]

SHOWN: list[Dialect] = [NATIVE, *(one for name in ADAPTERS if (one := DIALECTS[name]).load_mapping is not None)]
FRAMINGS = {ContentLength: "Content-Length", JsonLines: "JSON Lines", LengthPrefixed: "length prefix"}

TO_EXTENSION = {
    "call a tool": ["tool.call"],
    "call a model": ["provider.complete"],
    "stream its result": ["provider.stream"],
    "run a command": ["command.invoke"],
    "consult a hook": ["hook.handle"],
    "get its description": ["info.get"],
    "open its settings": ["settings.editor.open", "settings.editor.key", "settings.editor.commit"],
    "get the arguments of its sidecar": ["sidecar.spawn_args"],
}
TO_HOST = {
    "append and query memory": ["memory.append", "memory.query"],
    "read and write configuration": ["config.get", "config.set"],
    "write to the log": ["$/log"],
    "show a task": ["task.start", "task.update", "task.log", "task.done"],
    "show a widget": ["widget.upsert", "widget.dismiss"],
}


def table(headers: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}", *lines, ""])


# -- features


def supports(dialect: Dialect, names: Sequence[str]) -> bool:
    if dialect.load_mapping is None:
        return True
    mapping = dialect.load_mapping()
    return all(name in mapping.methods or name in mapping.notifications for name in names)


def can_cancel(dialect: Dialect) -> bool:
    methods = () if dialect.load_mapping is None else dialect.load_mapping().methods.values()
    return dialect.cancellation is not None or any(method.cancel_method is not None for method in methods)


def can_report(dialect: Dialect) -> bool:
    methods = () if dialect.load_mapping is None else dialect.load_mapping().methods.values()
    return dialect.progress is not None or any(method.encode_progress is not None for method in methods)


def render_abilities() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for who, abilities in (("host", TO_EXTENSION), ("extension", TO_HOST)):
            for what, names in abilities.items():
                yield who, what, *(yes(supports(dialect, names)) for dialect in SHOWN)
        yield "both", "cancel a call", *(yes(can_cancel(dialect)) for dialect in SHOWN)
        yield "both", "report progress", *(yes(can_report(dialect)) for dialect in SHOWN)
        yield "both", "deadlines, flow control, pings", *(yes(bool(dialect.features)) for dialect in SHOWN)

    return table(["who", "what", *(f"`{dialect.name}`" for dialect in SHOWN)], rows())


def yes(value: bool) -> str:
    return "yes" if value else ""


def render_own_methods() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for dialect in SHOWN[1:]:
            own = ", ".join(f"`{name}`" for name in find_own(dialect))
            if own:
                yield f"`becket.adapters.{dialect.name}`", own

    return table(["module", "methods and notifications of its own"], rows())


def find_own(dialect: Dialect) -> list[str]:
    """Returns the names of the descriptors that a dialect's module offers."""
    module = import_module(f"becket.adapters.{dialect.name}")
    values = (getattr(module, name) for name in module.__all__ if name.isupper())
    return sorted({value.name for value in values if isinstance(value, Method | Notification)})


# -- links


def render_links() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for dialect in SHOWN:
            mapping = None if dialect.load_mapping is None else dialect.load_mapping()
            state = LinkState("extension")
            bye = "shutdown"
            if mapping is not None:
                bye = "" if mapping.encode_shutdown is None else first_name(mapping.encode_shutdown(state))
            limits = DEFAULT_LIMITS.but(**{**dialect.host_defaults.limits, **dialect.host_defaults.host_limits})
            yield (
                f"`{dialect.name}`",
                framing_of(dialect),
                f"`{'initialize' if mapping is None else mapping.server_handshake.initialize_method.name}`",
                f"`{bye}`" if bye else "the end of its stdin",
                f"{limits.frame // MIB} MiB",
                f"{limits.outbound_calls:,}",
            )

    headers = ["dialect", "framing", "first request", "last request", "largest frame", "calls at once"]
    return table(headers, rows())


def first_name(shutdown: Any) -> str:
    first = shutdown[0] if isinstance(shutdown, tuple) else shutdown
    method = first.method
    return str(method if isinstance(method, str) else method.name)


def framing_of(dialect: Dialect) -> str:
    return FRAMINGS[type(dialect.framing(DEFAULT_LIMITS))]  # type: ignore[index]


# -- host defaults


def render_host_defaults() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for dialect in SHOWN:
            defaults = dialect.host_defaults
            limits = DEFAULT_LIMITS.but(**{**defaults.limits, **defaults.host_limits})
            timeouts = {"tool": DEFAULT_TIMEOUTS.tool, **defaults.timeouts}
            yield (
                f"`{dialect.name}`",
                seconds(limits.handshake),
                seconds(timeouts["tool"]),
                describe_restart(dialect),
                describe_environment(dialect),
                "its own folder" if defaults.runs_in_root else "the host's folder",
                "for each start, writable" if defaults.writes_in_root else "read-only",
            )

    headers = ["dialect", "handshake", "a tool's call", "restarts", "environment", "runs in", "copy of its files"]
    return table(headers, rows())


def seconds(value: float | None) -> str:
    return "no limit" if value is None or isinf(value) else f"{value:g} s"


def describe_restart(dialect: Dialect) -> str:
    given = dict(dialect.host_defaults.restart)
    if "strategy" in given:
        given["strategy"] = RestartStrategy(given["strategy"])
    policy = RestartPolicy(**given)
    if policy.strategy is RestartStrategy.NEVER:
        return "never"
    within = "" if isinf(policy.window) else f" in {seconds(policy.window)}"
    first = "at once, then " if policy.first_is_immediate else ""
    return f"{policy.most}{within}: {first}{seconds(policy.delay)}, doubled up to {seconds(policy.longest_delay)}"


def describe_environment(dialect: Dialect) -> str:
    defaults = dialect.host_defaults
    if defaults.inherited_variables:
        return ", ".join(f"`{name}`" for name in defaults.inherited_variables)
    inherited = {"few": "", "harmless": ", all but secrets where inherited", "all": ", all where inherited"}
    return f"the base list{inherited[defaults.inherited_environment]}"


# -- files


def render_files() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for reader in MANIFEST_READERS:
            yield (
                f"`{reader.dialect}`",
                names(reader.file_names),
                names(reader.list_names),
                names([f"{prefix}*" for prefix in reader.prefixes]),
            )

    return table(["dialect", "a folder with", "a list of several", "programs called"], rows())


def names(given: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in given)


PARTS: dict[str, Callable[[], str]] = {
    "features of dialects": render_abilities,
    "methods of dialects": render_own_methods,
    "links of dialects": render_links,
    "host defaults of dialects": render_host_defaults,
    "files of dialects": render_files,
}
