"""Defines the limits, timeouts, restart settings and environment that a foreign host uses by default.

Plain data. Some systems do things that hurt (start a program anew because a tool answered with an error); those are
switches here, with a name, and off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from becket.contract.handshake import HostInfo

__all__ = ["STANDARD_HOST_DEFAULTS", "Duplicates", "EnvironmentContext", "HostDefaults", "InheritedEnvironment"]


Duplicates = Literal["later root", "first", "first, others are errors", "last"]
"""Which of several programs with one id a system takes: that of the later root (in one root, of the first path), the
first of all, or the last entry of a list in the later root."""

InheritedEnvironment = Literal["few", "harmless", "all"]
"""Which of a host's variables the hosts of a system let a program see: those that every program needs, all but those
with the name of a secret, or all of them. becket does that only if the operator configures it."""


class EnvironmentContext(Struct, frozen=True):
    """The context in which a host sets variables for a program: `data_dir` is the folder that it may write to."""

    extension: str
    host: HostInfo
    data_dir: str | None
    variables: Mapping[str, str]


class HostDefaults(Struct, frozen=True, kw_only=True):
    """What a system does around the wire. `limits`, `timeouts`, `restart` and `breaker` are members of the classes of
    these names, and take the place of their defaults; `limits` at both ends of a link, `host_limits` at the host's,
    and `restart_limits` there once a program was started before.

    `runs_in_root` says whether a program runs in its own folder; otherwise it runs where its host does. One that
    `writes_in_root` may write there: it gets a writable copy of its files for each start. A program that
    `starts_on_demand` is not started before the first call. Where a system has a list of its own of the host's
    variables that a program gets, these are its `inherited_variables`, and no others; `inherited_environment` says what
    its own hosts pass on, which is restored by the operator's `inherit_environment` alone. `build_variables` are set
    for it; those that `directory_variables` names are folders, made and always set, and temporary where their host
    keeps no data. Without `sets_our_variables` it gets none that begin with `BECKET_`, and none for Python. With
    `has_prefixed_tools` models know its tools as `ext_<id>_<tool>`.

    `config_variable_template` is the form of a variable from which a value of the configuration is taken, with `{id}`
    and `{key}` in it. Without `has_typed_config` what is taken from a variable or from the store is text, and no value
    is held against its type. Where it `keeps_ids_across_restarts` no two copies of a program are called under one id.
    Where it `resends_hooks`, the next copy gets the hook that a program crashed at. `eof_exit_codes` are those with
    which a program may end when its stdin has ended without a shutdown request."""

    limits: Mapping[str, Any] = {}
    host_limits: Mapping[str, Any] = {}
    restart_limits: Mapping[str, Any] = {}
    timeouts: Mapping[str, Any] = {}
    restart: Mapping[str, Any] = {}
    breaker: Mapping[str, Any] = {}
    inherited_environment: InheritedEnvironment = "few"
    inherited_variables: tuple[str, ...] = ()
    build_variables: Callable[[EnvironmentContext], Mapping[str, str]] | None = None
    directory_variables: tuple[str, ...] = ()
    sets_our_variables: bool = True
    has_prefixed_tools: bool = False
    config_variable_template: str = ""
    has_typed_config: bool = True
    runs_in_root: bool = True
    writes_in_root: bool = False
    starts_on_demand: bool = False
    keeps_ids_across_restarts: bool = False
    resends_hooks: bool = False
    duplicates: Duplicates = "later root"
    eof_exit_codes: tuple[int, ...] = (0,)
    # what hurts
    restarts_on_tool_errors: bool = False
    kills_before_shutdown: bool = False


STANDARD_HOST_DEFAULTS = HostDefaults()
