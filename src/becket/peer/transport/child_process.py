"""Starts, signals and reaps a child process in its own session with a minimal environment.

It inherits nothing but its three pipes. Its exit comes from the system (`exit_watch`), never from a pipe, which a
grandchild may hold open. It is reaped last: until then no other process can get its pid or its group.
"""

from __future__ import annotations

import atexit
import errno
import os
import select
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import TYPE_CHECKING

from becket._loggers import peer_logger
from becket._text import quote
from becket.errors import PeerCrashed, StartFailed
from becket.limits import DEFAULT_LIMITS, Limits
from becket.peer.transport.exit_watch import ExitWatch, check_exit_watch, watch_exit
from becket.peer.transport.guardian_process import kill_session
from becket.peer.transport.stderr_log import StderrLog

if TYPE_CHECKING:
    from becket.peer.transport.guardian import Guardian

__all__ = [
    "ChildPipes",
    "ChildProcess",
    "build_environment",
    "find_executable",
    "log_stderr",
    "normalize_command",
    "open_child",
]

INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL", "TERM")
INHERITED_PREFIX = "LC_"
KILL_WAIT_SECONDS = 1.0  # a killed process is gone in milliseconds, unless the kernel holds it
FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
MAX_SHEBANG_BYTES = 256  # bytes that Linux reads of the first line of a script

live_children: set[ChildProcess] = set()  # so that none outlives a host that ends without closing its peers
abandoned_processes: list[subprocess.Popen[bytes]] = []  # killed, but not ended yet when their peers had to go on


def build_environment(own: Mapping[str, str] | None, *, inherit: bool | None) -> dict[str, str]:
    """Returns a child's environment: a short list of names that every program needs, and the caller's variables.

    With `inherit` all variables of this program come before these; with None, not even the short list."""
    if inherit is None:
        environment: dict[str, str] = {}
    elif inherit:
        environment = dict(os.environ)
    else:
        environment = {
            name: value
            for name, value in os.environ.items()
            # A value that begins like this is a function that an old shell would run.
            if (name in INHERITED_VARIABLES or name.startswith(INHERITED_PREFIX)) and not value.startswith("()")
        }
    environment.update(own or {})
    return environment


def find_executable(command: str, environment: Mapping[str, str], cwd: str | os.PathLike[str] | None) -> str:
    """Returns the absolute path of a program, looked up where the child itself would look, except in the current
    folder.

    Raises:
        StartFailed: it is missing, a folder, or not executable.
    """
    if os.sep in command:
        path = Path(command) if Path(command).is_absolute() else Path(cwd or ".") / command
        found: str | None = str(path.absolute())
    else:
        folders = environment.get("PATH", FALLBACK_PATH).split(os.pathsep)
        absolute = os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())
        found = shutil.which(command, path=absolute)
    if found is None:
        here = Path(cwd or ".") / command
        hint = f"; name the one in {here.parent.absolute()} with its whole path" if here.is_file() else ""
        raise StartFailed(command, f"the program was not found on PATH{hint}")
    target = Path(found)
    if not target.exists():
        raise StartFailed(command, f"no such program: {found}")
    if target.is_dir():
        raise StartFailed(command, f"a folder, not a program: {found}")
    if not os.access(found, os.X_OK):
        raise StartFailed(command, f"not executable: {found} (chmod +x it, or name its interpreter)")
    return found


class ChildPipes:
    """This process's ends of a child's three pipes, as descriptors."""

    __slots__ = ("stderr", "stdin", "stdout")

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr


class ChildProcess:
    """One started process. It never waits: the watcher of `exit_fd` calls `poll_exit`, then `reap`."""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        exit: ExitWatch,
        command: Sequence[str],
        log: StderrLog,
        guardian: Guardian | None = None,
    ) -> None:
        self.pid = popen.pid
        self.command = tuple(command)
        self.stderr_log = log
        self.exit_code: int | None = None
        self.has_exited = False
        self.is_abandoned = False
        self.exit_fd = exit.fd
        self._exit_watch = exit
        self._popen = popen
        self.owner_pid = os.getpid()
        self._is_reaped = False
        self._guardian = guardian
        live_children.add(self)

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it, None if none did."""
        if self.exit_code is None or self.exit_code >= 0:
            return None
        try:
            return Signals(-self.exit_code).name
        except ValueError:
            return f"signal {-self.exit_code}"

    @property
    def stderr_tail(self) -> str:
        """The last lines of its stderr, escaped."""
        return self.stderr_log.tail()

    def poll_exit(self) -> bool:
        """Returns whether it has ended, and records how; it stays unreaped, so that its session can still be named."""
        if not self.has_exited:
            try:
                self.exit_code = self._exit_watch.poll()
                self.has_exited = self.exit_code is not None
            except ChildProcessError:
                self.has_exited = True  # something else in this program reaped it: its exit code is unknown
        return self.has_exited

    def terminate(self) -> None:
        """Sends SIGTERM to it and its group."""
        self._signal_group(SIGTERM)

    def kill(self) -> None:
        """Kills it and all processes of its session, at once."""
        self._signal_group(SIGKILL)
        kill_session(self.pid, self._is_unreaped)

    def kill_and_wait(self) -> None:
        """Kills it and waits a moment, blocking: for the end of a loop that cannot wait any more."""
        self.kill()
        if not self.poll_exit():
            ended = select.poll()
            ended.register(self.exit_fd, select.POLLIN)
            ended.poll(KILL_WAIT_SECONDS * 1000)
            self.poll_exit()

    def reap(self) -> None:
        """Kills what it left behind and reaps it. May be called twice."""
        if self._is_reaped:
            return
        self.kill()
        self._is_reaped = True
        live_children.discard(self)
        if self.has_exited:
            if self._guardian is not None:
                self._guardian.forget(self.pid)
            self._popen.wait()
        else:
            self.is_abandoned = True
            abandoned_processes.append(self._popen)  # reaped when the next child is started, if it has ended by then
        self._exit_watch.close()

    def build_crash_error(self, detail: str = "") -> PeerCrashed:
        """Returns the error that its pending calls raise."""
        return PeerCrashed(exit_code=self.exit_code, signal=self.signal, stderr_tail=self.stderr_tail, detail=detail)

    def _signal_group(self, number: Signals) -> None:
        if self._is_reaped:
            return  # its pid may be another process's by now
        self._exit_watch.signal_group(number)

    def _is_unreaped(self) -> bool:
        """Returns whether its pid is still its own: false too when something else in this program has reaped it."""
        return not self._is_reaped and self._exit_watch.is_unreaped()


def normalize_command(command: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns a program and its arguments as text.

    Raises:
        TypeError: it is one string, as for a shell, which is never used.
    """
    if isinstance(command, str | bytes) or not command:
        raise TypeError("`command` must be a list of a program and its arguments, not a shell command line")
    return [os.fspath(word) for word in command]


def open_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool | None = False,
    cwd: str | os.PathLike[str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    guard: bool = False,
) -> tuple[ChildProcess, ChildPipes]:
    """Starts a program and returns it with this process's ends of its pipes; closes them if it cannot be started.

    With `guard` its session is killed when this program is gone, however that ends.

    Raises:
        StartFailed: the program is missing or cannot be executed, or this process has no descriptors left.
        NotSupported: this platform cannot watch processes.
    """
    check_exit_watch()
    guardian = find_guardian() if guard else None
    environment = build_environment(env, inherit=inherit_env)
    executable = find_executable(command[0], environment, cwd)
    abandoned_processes[:] = [popen for popen in abandoned_processes if popen.poll() is None]
    opened: list[int] = []
    popen: subprocess.Popen[bytes] | None = None
    try:
        for _ in range(3):
            opened.extend(os.pipe())
        child_in, stdin, stdout, child_out, stderr, child_err = opened
        for fd in (stdin, stdout, stderr):
            os.set_blocking(fd, False)
        popen = subprocess.Popen(
            [str(part) for part in command],
            executable=executable,
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            close_fds=True,
        )
        if guardian is not None:
            guardian.watch(popen.pid)
        child = ChildProcess(popen, watch_exit(popen.pid), command, StderrLog(on_stderr, limits), guardian)
    except BaseException as error:
        for fd in opened:
            os.close(fd)
        if popen is not None:  # no descriptor left to watch it, or no room for its guardian
            popen.kill()
            if guardian is not None:
                guardian.forget(popen.pid)
            popen.wait()
        match error:
            case OSError():
                raise StartFailed(str(command[0]), explain_start_error(error, executable, cwd)) from error
            case ValueError():  # a zero byte, a lone surrogate, a name with `=`
                because = f"its arguments or environment cannot be passed: {error}"
                raise StartFailed(str(command[0]), because) from error
            case _:
                raise
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    return child, ChildPipes(stdin, stdout, stderr)


def find_guardian() -> Guardian:
    from becket.peer.transport.guardian import GUARDIAN, check_guarding

    check_guarding()
    return GUARDIAN


def explain_start_error(error: OSError, executable: str, cwd: str | os.PathLike[str] | None) -> str:
    if cwd is not None and error.filename == cwd:
        return f"cannot start in {os.fspath(cwd)}: {error.strerror}"
    match error.errno:
        case errno.ENOEXEC:
            return f"not a program of this system: {executable} (wrong architecture, or a script without `#!`)"
        case errno.ENOENT:
            return f"{executable} names an interpreter that does not exist{read_interpreter(executable)}"
        case errno.EACCES:
            return f"may not be executed: {executable}"
        case errno.EMFILE | errno.ENFILE:
            return "no file descriptors left in this process (raise its limit, or close something)"
        case errno.EAGAIN | errno.ENOMEM:
            return f"the system has no room for another process: {error.strerror}"
        case _:
            return f"could not be started: {error.strerror or error} ({executable})"


def read_interpreter(executable: str) -> str:
    """Returns the interpreter that a script names; a binary may lack its loader, which is elsewhere."""
    try:
        with open(executable, "rb") as file:
            line = file.readline(MAX_SHEBANG_BYTES)
    except OSError:
        return ""
    return f": {quote(line[2:].strip())} (look at its `#!` line)" if line.startswith(b"#!") else ""


def log_stderr(name: str) -> Callable[[str], None]:
    """Returns a function that writes a child's stderr to the log."""

    def write(line: str) -> None:
        peer_logger().info("%s: %s", name, line)

    return write


@atexit.register
def kill_live_children() -> None:
    for child in list(live_children):
        if child.owner_pid == os.getpid():  # a fork of this program has the list, not the children
            child.kill()
