"""How a host treats the programs of a dialect unless it is told otherwise: its times, its restarts, its environment.

Plain data. Some systems do things that hurt (start a program anew because a tool answered with an error); those are
switches here, with a name, and off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from becket.contract.handshake import HostInfo

__all__ = ["DEFAULT_HABITS", "Duplicates", "Habits", "Inherited", "Surroundings"]


Duplicates = Literal["later root", "first", "first, others are errors", "last"]
"""Which of several programs with one id a system takes: that of the later root (in one root, of the first path), the
first of all, or the last entry of a list in the later root."""

Inherited = Literal["few", "harmless", "all"]
"""Which of a host's variables the hosts of a system let a program see: those that every program needs, all but those
with the name of a secret, or all of them. Here that is done only where the operator asks for it.
(No enum: to make one takes a starting extension a fifth of a millisecond.)"""


class Surroundings(Struct, frozen=True):
    """What a host knows when it sets variables for a program: `data` is the folder that it may write to."""

    extension: str
    host: HostInfo
    data: str | None
    variables: Mapping[str, str]


class Habits(Struct, frozen=True, kw_only=True):
    """What a system does around the wire. `limits`, `timeouts`, `restart` and `breaker` are members of the classes of
    these names, and take the place of their defaults; `limits` on both sides of a link, `host_limits` on the host's,
    and `restart_limits` there once a program was started before.

    `works_in_root` says whether a program runs in its own folder; otherwise it runs where its host does. One that
    `writes_in_root` may write there: it gets a writable copy of its files for each start. A program that
    `starts_when_needed` is not started before the first call. Where a system has a list of its own of the host's
    variables that a program gets, these are its `variables`, and no others; `inherited` says what its own hosts pass
    on, which is restored by the operator's `inherit_environment` alone. `own_variables` are set for it; those that
    `folder_variables` names are folders, made and always set, and temporary where their host keeps no data. Without
    `sets_our_variables` it gets none that begin with `BECKET_`, and none for Python. With `prefixes_tools` models know
    its tools as `ext_<id>_<tool>`.

    `config_variable` is the form of a variable from which a value of the configuration is taken, with `{id}` and
    `{key}` in it. Without `has_typed_config` what is taken from a variable or from the store is text, and no value is
    held against its type. Where it `keeps_ids` no two copies of a program are called under one id. Where it
    `resends_hooks`, the next copy gets the hook that a program crashed at. `eof_exit_codes` are those with which a
    program may end when its stdin has ended without a goodbye."""

    limits: Mapping[str, Any] = {}
    host_limits: Mapping[str, Any] = {}
    restart_limits: Mapping[str, Any] = {}
    timeouts: Mapping[str, Any] = {}
    restart: Mapping[str, Any] = {}
    breaker: Mapping[str, Any] = {}
    inherited: Inherited = "few"
    variables: tuple[str, ...] = ()
    own_variables: Callable[[Surroundings], Mapping[str, str]] | None = None
    folder_variables: tuple[str, ...] = ()
    sets_our_variables: bool = True
    prefixes_tools: bool = False
    config_variable: str = ""
    has_typed_config: bool = True
    works_in_root: bool = True
    writes_in_root: bool = False
    starts_when_needed: bool = False
    keeps_ids: bool = False
    resends_hooks: bool = False
    duplicates: Duplicates = "later root"
    eof_exit_codes: tuple[int, ...] = (0,)
    # what hurts
    restarts_on_errors: bool = False
    kills_before_goodbye: bool = False


DEFAULT_HABITS = Habits()
