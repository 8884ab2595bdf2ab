"""The environment of an extension's process: built from nothing, by a list of names.

What all programs need is taken over; what an extension declares is let through knowingly, secrets too; what changes how
programs are loaded never is. Pure functions of the variables that there are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from becket.contract.handshake import HostInfo
from becket.dialects.habits import Habits, Surroundings
from becket.host.manifest import Environment

__all__ = [
    "NATIVE_VARIABLES",
    "ExtensionEnvironment",
    "VariablePolicy",
    "build_environment",
    "build_habitual_environment",
    "build_own_variables",
    "clean_path",
    "find_dangerous_names",
    "find_secret_names",
    "is_dangerous_name",
    "is_secret_name",
    "policy_of",
    "with_own_programs",
]

FALLBACK_PATH: Final = "/usr/local/bin:/usr/bin:/bin"

SECRET_ENDINGS: Final = (
    "_APIKEY",
    "_AUTH",
    "_BEARER",
    "_CREDENTIAL",
    "_CREDENTIALS",
    "_KEY",
    "_PASSWD",
    "_PASSWORD",
    "_PAT",
    "_PWD",
    "_SECRET",
    "_SESSION",
    "_TOKEN",
)
SECRET_PARTS: Final = ("CREDENTIAL", "PASSWORD", "PRIVATE_KEY", "SECRET")

# Each of them makes a loader, a shell, an interpreter or a common tool run or load what its value names.
DANGEROUS_BEGINNINGS: Final = ("BASH_FUNC_", "DYLD_", "GIT_", "LD_", "PERL5", "PYTHON")
HARMLESS_NAMES: Final = frozenset(
    {
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONFAULTHANDLER",
        "PYTHONHASHSEED",
        "PYTHONIOENCODING",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
    }
)
DANGEROUS_NAMES: Final = frozenset(
    {
        "BASHOPTS",
        "BASH_ENV",
        "CDPATH",
        "CLASSPATH",
        "ENV",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "LUA_CPATH",
        "LUA_INIT",
        "LUA_PATH",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PERLLIB",
        "PHPRC",
        "PHP_INI_SCAN_DIR",
        "PROMPT_COMMAND",
        "PS4",
        "RUBYLIB",
        "RUBYOPT",
        "SHELLOPTS",
        "ZDOTDIR",
        "_JAVA_OPTIONS",
    }
)


def is_secret_name(name: str) -> bool:
    """Returns whether a variable of this name holds a secret, by its looks."""
    upper = name.upper()
    return upper.endswith(SECRET_ENDINGS) or any(part in upper for part in SECRET_PARTS)


def is_dangerous_name(name: str) -> bool:
    """Returns whether a variable of this name can make a program run or load something else."""
    upper = name.upper()
    return upper not in HARMLESS_NAMES and (upper.startswith(DANGEROUS_BEGINNINGS) or upper in DANGEROUS_NAMES)


def find_dangerous_names(declared: Environment) -> tuple[str, ...]:
    """Returns the names that nobody may ask for and that are asked for here."""
    return tuple(sorted(name for name in {*declared.passed, *declared.set} if is_dangerous_name(name)))


def find_secret_names(names: Iterable[str]) -> tuple[str, ...]:
    """Returns those of the names that look like secrets: whoever lets an extension have them should know."""
    return tuple(sorted({name for name in names if is_secret_name(name)}))


class VariablePolicy(Struct, frozen=True):
    """Which variables an extension gets without asking: some names and beginnings, or all that look harmless.

    With `all_secrets` those that look like secrets are passed as well, and only those that are dangerous are not."""

    names: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()
    all_harmless: bool = False
    all_secrets: bool = False

    def passes(self, name: str) -> bool:
        """Returns whether this variable is taken over."""
        if is_dangerous_name(name) or (is_secret_name(name) and not self.all_secrets):
            return False
        return self.all_harmless or name in self.names or name.startswith(self.beginnings)


NATIVE_VARIABLES: Final = VariablePolicy(
    frozenset({"HOME", "LANG", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}), ("LC_",)
)


def policy_of(habits: Habits) -> VariablePolicy:
    """Returns what a program of a system gets to see of its host's variables."""
    if habits.variables:
        return VariablePolicy(frozenset(habits.variables))
    if habits.inherited not in ("harmless", "all"):
        return NATIVE_VARIABLES
    return VariablePolicy(all_harmless=True, all_secrets=habits.inherited == "all")


class ExtensionEnvironment(Struct, frozen=True):
    """The variables of a process, and what is to be told of them.

    `secrets` look like secrets and were let through since they were declared; `refused` were asked for in vain."""

    variables: dict[str, str]
    secrets: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def build_environment(
    available: Mapping[str, str],
    *declared: Environment,
    own: Mapping[str, str] | None = None,
    policy: VariablePolicy = NATIVE_VARIABLES,
) -> ExtensionEnvironment:
    """Returns what an extension's process gets to see of the variables that are `available`.

    What is declared later stands above what is declared before it. `own` is the host's, and stands above all."""
    variables = {name: value for name, value in available.items() if policy.passes(name)}
    refused: set[str] = set()
    secrets: set[str] = set()
    for table in declared:
        given = {name: available[name] for name in table.passed if name in available} | table.set
        dangerous = find_dangerous_names(table)
        refused.update(dangerous)
        secrets.update(find_secret_names(given.keys() - set(dangerous)))
        variables |= {name: value for name, value in given.items() if name not in dangerous}
    # A value that begins like this is a function that an old shell would run.
    variables = {name: value for name, value in variables.items() if not value.startswith("()")}
    variables["PATH"] = clean_path(variables.get("PATH", ""))
    return ExtensionEnvironment(variables | dict(own or {}), tuple(sorted(secrets)), tuple(sorted(refused)))


def build_own_variables(extension: str, data: str | None, *, is_copy: bool = False) -> dict[str, str]:
    """Returns what a host tells every extension: who it is, and the folder that it may write to, if it has one.

    What Python compiles is kept out of the extension's own folder. A copy of that has room for it."""
    variables = {"BECKET_EXTENSION_ID": extension}
    if data is None:
        return variables | {"PYTHONDONTWRITEBYTECODE": "1"}
    variables["BECKET_DATA"] = data
    # With a place of its own Python compiles everything anew, the standard library too: only where it has to.
    return variables if is_copy else variables | {"PYTHONPYCACHEPREFIX": os.path.join(data, "pycache")}


def build_habitual_environment(
    extension: str, habits: Habits, host: HostInfo, available: Mapping[str, str], *declared: Environment
) -> dict[str, str]:
    """Returns what a host of the extension's own system would let it see, where nothing is kept for it."""
    own = build_own_variables(extension, None)
    if habits.own_variables is not None:
        own |= habits.own_variables(Surroundings(extension, host, None, available))
    return build_environment(available, *declared, own=own, policy=policy_of(habits)).variables


def with_own_programs(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with a search path on which `python3` is the one that has what this program has."""
    if sys.prefix == sys.base_prefix:
        return dict(variables)
    path = os.pathsep.join([os.path.dirname(sys.executable), variables.get("PATH", "")])
    return {**variables, "PATH": path}


def clean_path(path: str) -> str:
    """Returns a search path of its absolute parts alone, each once; one that every system has where there is none.

    An empty part means the current folder, which is the extension's own: its `tool` would stand for every other."""
    parts = [part for part in path.split(os.pathsep) if os.path.isabs(part)]
    return os.pathsep.join(dict.fromkeys(parts)) or FALLBACK_PATH
