"""Builds the environment variables of an extension process from an allow-list. Pure.

The base list has what all programs need. Added are the variables that an extension declares, once they are approved,
and those of the operator. `list_variables` returns all outside the base list, by origin.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from becket.dialects import DIALECTS
from becket.dialects.host_defaults import STANDARD_HOST_DEFAULTS, HostDefaults
from becket.host.starting.manifest import Environment

__all__ = [
    "NATIVE_VARIABLES",
    "ExtensionVariables",
    "VariablePolicy",
    "build_default_environment",
    "build_extension_environment",
    "build_host_variables",
    "build_variable_policy",
    "clean_path",
    "is_dangerous_name",
    "is_secret_name",
    "list_inheriting_dialects",
    "list_variables",
    "prefer_own_python",
]

NOTHING: Final = Environment()
PATH: Final = "PATH"  # every program gets that of the host; one that a manifest sets leads to other programs
SHELL_FUNCTION: Final = "()"  # begins a value that an old shell would run
FALLBACK_PATH: Final = "/usr/local/bin:/usr/bin:/bin"

# As a whole name, or as its end after an underscore.
SECRET_WORDS: Final = (
    "APIKEY",
    "AUTH",
    "BEARER",
    "CREDENTIAL",
    "CREDENTIALS",
    "DSN",
    "KEY",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "PWD",
    "SECRET",
    "SESSION",
    "TOKEN",
)
NO_SECRETS: Final = frozenset({"PWD", "SESSION"})  # alone they are a folder, and the name of a desktop
SECRET_PARTS: Final = (
    "ACCESS_KEY",
    "AUTH_SOCK",
    "CONNECTION_STRING",
    "CREDENTIAL",
    "DATABASE_UR",  # URL and URI: there is a password in most of them
    "KUBECONFIG",
    "MONGODB_UR",
    "PASSWORD",
    "POSTGRES_UR",
    "PRIVATE_KEY",
    "REDIS_UR",
    "SECRET",
)

# Each of them makes a loader, a shell, an interpreter or a common tool run or load what its value names.
DANGEROUS_PREFIXES: Final = ("BASH_FUNC_", "DYLD_", "GIT_", "LD_", "PERL5", "PYTHON")
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
    """Returns whether a variable of this name holds a secret, by its form."""
    upper = name.upper()
    is_word = upper.rpartition("_")[2] in SECRET_WORDS and upper not in NO_SECRETS
    return is_word or any(part in upper for part in SECRET_PARTS)


def is_dangerous_name(name: str) -> bool:
    """Returns whether a variable of this name can make a program run or load something else."""
    upper = name.upper()
    return upper not in HARMLESS_NAMES and (upper.startswith(DANGEROUS_PREFIXES) or upper in DANGEROUS_NAMES)


class VariablePolicy(Struct, frozen=True):
    """Which of the host's variables an extension inherits: some names and prefixes, or all that look harmless.

    With `all_secrets` those that look like secrets are passed as well, and only dangerous ones are not."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    all_harmless: bool = False
    all_secrets: bool = False

    def allows(self, name: str) -> bool:
        """Returns whether this variable is inherited."""
        if is_dangerous_name(name) or (is_secret_name(name) and not self.all_secrets):
            return False
        return self.all_harmless or name in self.names or name.startswith(self.prefixes)


NATIVE_VARIABLES: Final = VariablePolicy(
    frozenset({"HOME", "LANG", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}), ("LC_",)
)


def list_inheriting_dialects() -> list[str]:
    """Returns the dialects that `inherit_environment` can name: their own hosts pass more than a few variables on."""
    return sorted(name for name in DIALECTS if DIALECTS[name].host_defaults.inherited_environment != "few")


def build_variable_policy(defaults: HostDefaults, *, inherits: bool = False) -> VariablePolicy:
    """Returns the base list of a system; with `inherits` the variables that its own hosts pass on, which may be
    more."""
    if defaults.inherited_variables:
        return VariablePolicy(frozenset(defaults.inherited_variables))
    if not inherits or defaults.inherited_environment == "few":
        return NATIVE_VARIABLES
    return VariablePolicy(all_harmless=True, all_secrets=defaults.inherited_environment == "all")


# -- outside the base list


class ExtensionVariables(Struct, frozen=True, kw_only=True):
    """The variables of an extension besides those of the base list, which it gets as the host has them.

    `passed` are variables of the host that its manifest requests, as such or as values of its configuration; `set` are
    those to which it gives values of its own, whatever their names; `given` are from the host's configuration, and
    `inherited` from its `inherit_environment`. Of those that the manifest names, the operator has `allowed` some
    beforehand."""

    passed: tuple[str, ...] = ()
    set: dict[str, str] = {}
    given: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, sorted."""
        return tuple(sorted({*self.passed, *self.set, *self.given, *self.inherited}))

    @property
    def requested(self) -> tuple[str, ...]:
        """Those that need consent: variables of the host that its operator neither gives nor allows, and values that
        make programs load something else."""
        requested = {name for name in self.passed if name not in self.inherited} | {*self.dangerous}
        return tuple(sorted(requested.difference(self.given, self.allowed)))

    @property
    def dangerous(self) -> dict[str, str]:
        """Those among `set` that make programs load something else."""
        return {
            name: value
            for name, value in self.set.items()
            if name == PATH or is_dangerous_name(name) or value.startswith(SHELL_FUNCTION)
        }


def list_variables(
    declared: Environment,
    configured: Iterable[str] = (),
    *operators: Environment,
    allowed: tuple[str, ...] = (),
    available: Mapping[str, str] | None = None,
    defaults: HostDefaults = STANDARD_HOST_DEFAULTS,
    inherits: bool = False,
) -> ExtensionVariables:
    """Returns the variables of an extension besides those of the base list, by origin.

    `declared` are those of its manifest, `configured` those that hold values of its configuration, and `operators`
    those of the host's configuration, which has `allowed` some names besides. `available` are all variables."""
    base = build_variable_policy(defaults)
    more = build_variable_policy(defaults, inherits=inherits)

    def outside(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({name for name in names if not base.allows(name)}))

    return ExtensionVariables(
        passed=outside(name for name in (*declared.passed, *configured) if name),
        set={name: declared.set[name] for name in sorted(declared.set)},
        given=tuple(sorted({name for table in operators for name in (*outside(table.passed), *table.set)})),
        inherited=() if more == base else outside(filter(more.allows, available or ())),
        allowed=allowed,
    )


# -- the environment


def build_extension_environment(
    available: Mapping[str, str],
    declared: Environment = NOTHING,
    *operators: Environment,
    own: Mapping[str, str] | None = None,
    policy: VariablePolicy = NATIVE_VARIABLES,
) -> dict[str, str]:
    """Returns the environment of an extension's process from the `available` variables.

    Values of the host that an old shell would run are dropped. `declared` are the approved variables of its manifest;
    `operators` override them, and `own`, the host's variables, override all."""
    available = {name: value for name, value in available.items() if not value.startswith(SHELL_FUNCTION)}
    variables = {name: value for name, value in available.items() if policy.allows(name)}
    passed = tuple(name for name in declared.passed if not is_dangerous_name(name))
    for table in (replace(declared, passed=passed), *operators):
        variables |= {name: available[name] for name in table.passed if name in available} | table.set
    variables[PATH] = clean_path(variables.get(PATH, ""))
    return variables | dict(own or {})


def build_host_variables(
    extension: str, data: str | None, *, is_copy: bool = False, defaults: HostDefaults = STANDARD_HOST_DEFAULTS
) -> dict[str, str]:
    """Returns the host's variables for every extension: its name, and the extension's data folder, if it has one.

    Python's bytecode is kept out of the extension's own folder. A copy of that has room for it."""
    if not defaults.sets_our_variables:
        return {}
    variables = {"BECKET_EXTENSION_ID": extension}
    if data is None:
        return variables | {"PYTHONDONTWRITEBYTECODE": "1"}
    variables["BECKET_DATA"] = data
    # With another cache folder Python compiles everything anew, the standard library too: only if needed.
    return variables if is_copy else variables | {"PYTHONPYCACHEPREFIX": os.path.join(data, "pycache")}


def build_default_environment(
    extension: str,
    defaults: HostDefaults,
    available: Mapping[str, str],
    declared: Environment = NOTHING,
    *,
    defaults_set: Mapping[str, str],
) -> dict[str, str]:
    """Returns the environment of an extension that runs without a host's files and settings; `defaults_set` are the
    variables that a host of its own system sets."""
    own = build_host_variables(extension, None, defaults=defaults) | dict(defaults_set)
    return build_extension_environment(available, declared, own=own, policy=build_variable_policy(defaults))


def prefer_own_python(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with a search path on which `python3` has the packages of this program."""
    if sys.prefix == sys.base_prefix:
        return dict(variables)
    path = os.pathsep.join([os.path.dirname(sys.executable), variables.get("PATH", "")])
    return {**variables, "PATH": path}


@lru_cache(8)  # there is one search path, and every extension needs it
def clean_path(path: str) -> str:
    """Returns a search path of its absolute parts alone, each once; the usual one if there is none.

    An empty part means the current folder, which is the extension's own: its `tool` would replace any other."""
    parts = [part for part in path.split(os.pathsep) if os.path.isabs(part)]
    return os.pathsep.join(dict.fromkeys(parts)) or FALLBACK_PATH
