"""Which commands load code from their working directory.

Knows the interpreters and launchers that are used for extensions, and their relevant options. A command is judged by
its arguments alone, after those that name files were made absolute: unless an interpreter is seen to load from an
absolute path, it counts as loading from the working directory. Any other program loads what it was built to, or runs an
interpreter among its arguments. Of an `env` that only sets variables the command is judged; the variables are shown in
the consent prompt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from becket.host.starting.env_program import split_env_command

__all__ = ["find_code_from_cwd"]

NO_SCRIPT: Final = "no script"


def find_code_from_cwd(command: Sequence[str]) -> str | None:
    """Returns the argument by which a command loads code from its working directory; None if none does."""
    program, *arguments = command
    behind = split_env_command(command)
    if behind is not None and behind.command and not behind.has_options and "PATH" not in behind.variables:
        other = behind.command[0]
        return find_code_from_cwd(behind.command) if os.path.isabs(other) or os.sep not in other else other
    for path in (program, os.path.realpath(program)):
        name = plain_name(path)
        if name in LAUNCHERS:
            return name
        if name in INTERPRETERS:
            return INTERPRETERS[name](arguments)
    return find_behind_wrapper(arguments)


def find_behind_wrapper(arguments: Sequence[str]) -> str | None:
    """Judges what an unknown program may run: an interpreter among its arguments, with those after it."""
    for place, word in enumerate(arguments, 1):
        name = plain_name(word)
        if name in INTERPRETERS and place < len(arguments):  # as the last argument it is the name of a language
            return INTERPRETERS[name](arguments[place:])
    return None


def plain_name(path: str) -> str:
    """Returns the name of a program without its version, and without the kind of its build."""
    name = os.path.basename(path).lower()
    if BUILD_OF_PYTHON.fullmatch(name):
        return "python"
    return name.rstrip("0123456789.") or name


BUILD_OF_PYTHON: Final = re.compile(r"python[0-9.]*(?:[dmtuw]+|-dbg|-intel64)?")


def find_in_python(arguments: Sequence[str]) -> str | None:
    """`-m`, `-c` and stdin put the working directory first on the module path, unless -I or -P is given."""
    is_safe = False
    words = iter(arguments)
    for word in words:
        if word == "--":
            return script_of(next(words, ""))
        if word == "-":
            return None if is_safe else word
        if not word.startswith("-"):
            return script_of(word)
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(words, None)
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter in "IP":
                is_safe = True
            elif letter in "cm":
                return None if is_safe else f"-{letter}"
            elif letter in "WX":
                if place == len(word):
                    next(words, None)
                break
    return None if is_safe else NO_SCRIPT


NODE_LOADS: Final = (
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--env-file",
    "--env-file-if-exists",
)
NODE_FLAGS: Final = (
    "--enable-",
    "--experimental-strip-types",
    "--experimental-vm-modules",
    "--expose-gc",
    "--harmony",
    "--no-",
    "--preserve-symlinks",
    "--trace-",
    "--use-",
)
NODE_VALUES: Final = (
    "--conditions",
    "--disable-warning",
    "--dns-result-order",
    "--inspect",
    "--max-",
    "--stack-",
    "--title",
    "--tls-",
    "--unhandled-rejections",
)


def find_in_node(arguments: Sequence[str]) -> str | None:
    """Modules that options name, and code in an option, are resolved from the working directory."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "-":
            return script_of(word)
        name, has_value, value = word.partition("=")
        if name in NODE_LOADS:
            module = value if has_value else next(words, "")
            if not (os.path.isabs(module) or module.startswith("node:")):
                return name
        elif not name.startswith(NODE_FLAGS) and not (has_value and name.startswith(NODE_VALUES)):
            return name
    return NO_SCRIPT


def find_in_shell(arguments: Sequence[str]) -> str | None:
    """The code of `-c` is not analysed; a script is a path."""
    for word in arguments:
        if not word.startswith(("-", "+")):
            return script_of(word)
        if word.startswith("--") or not set(word[1:]) <= set("aefhnuvxEP"):
            return word
    return NO_SCRIPT


def find_in_other(arguments: Sequence[str]) -> str | None:
    """Of other interpreters one form is known to be safe: the script comes first, with an absolute path."""
    return script_of(arguments[0]) if arguments else NO_SCRIPT


def script_of(word: str) -> str | None:
    return None if os.path.isabs(word) else word or NO_SCRIPT


INTERPRETERS: Final[Mapping[str, Callable[[Sequence[str]], str | None]]] = {
    **dict.fromkeys(("python", "pypy"), find_in_python),
    **dict.fromkeys(("node", "nodejs"), find_in_node),
    **dict.fromkeys(("ash", "bash", "dash", "ksh", "sh", "zsh"), find_in_shell),
    **dict.fromkeys(("awk", "elixir", "fish", "guile", "perl", "pwsh", "racket", "ruby", "tclsh"), find_in_other),
}
# fmt: off
LAUNCHERS: Final = frozenset((
    # They run a project, or another command.
    "bundle", "bunx", "busybox", "bwrap", "cargo", "chroot", "chrt", "cmake", "conda", "dbus-run-session", "direnv",
    "doas", "docker-compose", "dotnet", "dumb-init", "env", "fakeroot", "faketime", "firejail", "flock", "gdb", "go",
    "gradle", "hatch", "invoke", "ionice", "just", "ltrace", "make", "mise", "mix", "mvn", "nice", "nix", "nohup",
    "nox", "npm", "npx", "nsenter", "numactl", "parallel", "pdm", "pipenv", "pipx", "pnpm", "podman-compose", "poetry",
    "prlimit", "proxychains", "rake", "runuser", "rye", "script", "setarch", "setpriv", "setsid", "stdbuf", "strace",
    "su", "sudo", "systemd-run", "taskset", "time", "timeout", "tini", "tox", "unshare", "uv", "uvx", "valgrind",
    "watch", "xargs", "xvfb-run", "yarn",
    # They search the working directory for modules, classes or settings that run code, wherever the script is.
    "bpython", "bun", "celery", "deno", "fastmcp", "flask", "graalpy", "groovy", "gunicorn", "hypercorn", "ipython",
    "java", "julia", "jython", "kotlin", "lua", "luajit", "mcp", "micropython", "ocaml", "php", "pytest", "rscript",
    "scala", "ts-node", "tsx", "uvicorn",
))
# fmt: on
