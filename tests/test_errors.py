"""Errors carry fields, build their text from them, survive copying and pickling, and mean one number each."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

import becket.errors
from becket.errors import (
    ERROR_CODES,
    BadCapabilities,
    BadFile,
    BadFrame,
    BadGrants,
    BadMessage,
    BadReply,
    BadSchema,
    BadValue,
    BecketError,
    Busy,
    CallCancelled,
    CallTimeout,
    CircuitOpen,
    CommandFailed,
    ConnectionLost,
    DisconnectReason,
    ExtensionRefused,
    FrameTooLarge,
    HandshakeFailed,
    InvalidParams,
    InvalidRequest,
    LocalProtocolError,
    ManifestError,
    Meaning,
    MethodNotFound,
    MissingExtra,
    NotDeclared,
    NotPermitted,
    NotRunning,
    NotSent,
    NotSupported,
    PeerCrashed,
    PermissionDenied,
    ProtocolError,
    ProviderDisabled,
    QueryTimeout,
    QuotaExceeded,
    RemoteError,
    RemoteProtocolError,
    RequestCancelled,
    ReservedPermission,
    RevocationNotPersistent,
    RpcError,
    StartFailed,
    StoreError,
    StoreInUse,
    StoreUnavailable,
    StreamOverrun,
    ToolBlocked,
    ToolFailed,
    TooManyTurns,
    Unencodable,
    UnknownPermission,
    VersionMismatch,
)

# One of each class, and words that its text must have because they are its fields.
EXAMPLES: list[tuple[BecketError, list[str]]] = [
    (BecketError("plain"), ["plain"]),
    (NotSupported("ping", "nobody agreed"), ["ping", "nobody agreed"]),
    (BadValue("Note", [("/text", "is missing"), ("", "is old")]), ["Note", "/text: is missing", "/: is old"]),
    (BadSchema([("/type", "is unknown"), ("", "is too deep")]), ["/type: is unknown", "/: is too deep"]),
    (
        BadFile("/a/grants.toml", [("/notes", "is no table"), ("", "is old")]),
        ["/a/grants.toml", "/notes: is no table", "/: is old"],
    ),
    (MissingExtra("pygls", "lsp"), ["pygls", "becket[lsp]"]),
    (ManifestError("/a/becket.toml", [("/id", "is missing")]), ["/a/becket.toml", "/id: is missing"]),
    (
        RevocationNotPersistent("notes", ["memory.write"], "/a/grants.toml", [("", "cannot be written")]),
        ["notes", "memory.write", "/a/grants.toml", "cannot be written"],
    ),
    (LocalProtocolError("an empty batch"), ["an empty batch"]),
    (RemoteProtocolError("nonsense"), ["nonsense"]),
    (BadFrame("no header", found=b"\x1b[2J", hint="print to stderr"), ["no header", "\\x1b[2J", "print to stderr"]),
    (BadFrame("truncated"), ["truncated"]),
    (FrameTooLarge(size=11, limit=10, what="line"), ["line", "11", "10"]),
    (FrameTooLarge(size=None, limit=10), ["frame", "endless", "10"]),
    (BadMessage("no id", pointer="/id"), ["no id", "/id"]),
    (BadMessage("no id"), ["no id"]),
    (RpcError(Meaning.QUOTA), ["quota exceeded"]),
    (RpcError(0, "zero is a number", data={"a": 1}), ["zero is a number"]),
    (RpcError(7), ["application error"]),
    (MethodNotFound("notes/none"), ["notes/none"]),
    (InvalidRequest("no method"), ["no method"]),
    (InvalidParams([("/a", "is missing"), ("", "is no object")]), ["/a: is missing", "/: is no object"]),
    (PermissionDenied("memory.read"), ["memory.read"]),
    (NotPermitted("tools.register"), ["tools.register"]),
    (Busy("requests in flight", 256), ["requests in flight", "256"]),
    (NotRunning("notes", "stopped", "start it first"), ["notes", "stopped", "start it first"]),
    (NotRunning("notes", "stopping"), ["notes", "stopping"]),
    (NotSent("calls in flight", 1024), ["calls in flight", "1024"]),
    (QuotaExceeded("notes", "records", used=10, limit=9), ["notes", "records", "10", "9"]),
    (RequestCancelled(), ["cancelled"]),
    (RemoteError(method="echo", code=0, message="no", data=[1], meaning=None), ["echo", "no", "0"]),
    (ToolFailed("read", "no such file", {"n": 1}), ["read", "no such file"]),
    (RemoteError(method="echo", code=-32603, message="no", data={"incident": "c0ffee"}), ["echo", "c0ffee"]),
    (Unencodable("no JSON for this set"), ["no JSON for this set"]),
    (BadReply(method="echo", problem="no result"), ["echo", "no result"]),
    (CallCancelled("echo"), ["echo"]),
    (CallTimeout("echo", 2.5), ["echo", "2.5"]),
    (ConnectionLost(DisconnectReason.STREAM_ERROR, "EPIPE"), ["reading or writing failed", "EPIPE"]),
    (ConnectionLost(DisconnectReason.LOCAL_CLOSE), ["closed by this peer"]),
    (PeerCrashed(exit_code=3, stderr_tail="one\nlast words\n", detail="in a frame"), ["3", "in a frame", "last words"]),
    (PeerCrashed(exit_code=None, signal="SIGSEGV"), ["SIGSEGV"]),
    (StreamOverrun("ticks", 65_536), ["ticks", "65536"]),
    (StartFailed("notes", "no such file", exit_code=127, stderr_tail="sh: 1"), ["notes", "no such file"]),
    (StoreError(Meaning.DISK_FULL, "0a1b"), ["storage failure", "0a1b"]),
    (QueryTimeout(0.5), ["0.5 s"]),
    (StoreUnavailable("a.sqlite", "is no store", "move it"), ["a.sqlite", "is no store", "move it"]),
    (StoreUnavailable("a.sqlite", "is no store"), ["a.sqlite", "is no store"]),
    (StoreInUse("a.sqlite", 42), ["a.sqlite", "42"]),
    (StoreInUse("a.sqlite", None), ["a.sqlite", "another program"]),
    (ExtensionRefused("notes", "needs `rg`"), ["notes", "needs `rg`"]),
    (HandshakeFailed("notes", "no answer"), ["notes", "no answer"]),
    (VersionMismatch("notes", "speaks 3", given=3, supported=1), ["notes", "speaks 3"]),
    (BadCapabilities("notes", [("/a", "is empty"), ("", "is odd")]), ["notes", "/a: is empty", "/: is odd"]),
    (NotDeclared("notes", "tool", "cuont", ["count", "add"]), ["notes", "tool", "cuont", "count, add"]),
    (NotDeclared("notes", "tool", "count"), ["none"]),
    (CircuitOpen("notes", 70.0, seconds=2.5), ["notes", "2.5 s"]),
    (ProviderDisabled("notes:local", "not mine"), ["notes:local", "not mine"]),
    (TooManyTurns("notes", 8), ["notes", "8"]),
    (CommandFailed("notes:lint", exit_code=3), ["notes:lint", "3"]),
    (ToolBlocked("notes_keep", "not now", "guard"), ["notes_keep", "not now", "guard"]),
    (UnknownPermission("memory.forget"), ["Unknown", "memory.forget"]),
    (ReservedPermission("tools.override"), ["Reserved", "tools.override"]),
    (BadGrants([("/allow/0", "is no text"), ("", "is no table")]), ["/allow/0: is no text", "/: is no table"]),
]
KINDS = [
    kind for _, kind in inspect.getmembers(becket.errors, inspect.isclass) if issubclass(kind, BecketError)
]  # fmt: skip


def fields_of(error: BecketError) -> dict[str, object]:
    return {name: value for name, value in vars(error).items() if not name.startswith("__")}


def test_every_class_has_an_example_here() -> None:
    assert {type(error) for error, _ in EXAMPLES} == set(KINDS) - {ProtocolError}


@pytest.mark.parametrize(("error", "words"), EXAMPLES)
def test_the_text_of_an_error_is_built_from_its_fields(error: BecketError, words: list[str]) -> None:
    assert [word for word in words if word not in str(error)] == []


@pytest.mark.parametrize("error", [error for error, _ in EXAMPLES])
@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda error: error.copy(), lambda error: pickle.loads(pickle.dumps(error))],
)
def test_an_error_can_be_copied_and_pickled(error: BecketError, again: object) -> None:
    twin = again(error)  # type: ignore[operator]
    assert type(twin) is type(error)
    assert twin is not error
    assert str(twin) == str(error)
    assert fields_of(twin) == fields_of(error)


def test_a_copy_has_the_cause_and_not_the_traceback() -> None:
    cause = OSError(32, "broken pipe")
    with pytest.raises(ConnectionLost) as caught:
        raise ConnectionLost(DisconnectReason.STREAM_ERROR) from cause
    twin = copy.copy(caught.value)
    assert caught.value.__traceback__ is not None
    assert twin.__cause__ is cause
    assert twin.__traceback__ is None


def test_a_note_added_to_a_copy_is_not_on_the_original() -> None:
    lost = ConnectionLost(DisconnectReason.LOCAL_CLOSE)
    lost.add_note("first")
    twin = copy.copy(lost)
    twin.add_note("second")
    assert lost.__notes__ == ["first"]


def test_the_protocol_error_itself_is_abstract() -> None:
    with pytest.raises(TypeError, match="LocalProtocolError"):
        ProtocolError("somebody broke a rule")


def test_a_response_and_a_failed_call_have_nothing_in_common() -> None:
    assert not issubclass(RemoteError, RpcError)
    assert not issubclass(RpcError, RemoteError)


def test_timeouts_and_lost_connections_are_also_the_builtin_errors() -> None:
    assert issubclass(CallTimeout, TimeoutError)
    assert issubclass(ConnectionLost, ConnectionError)
    assert issubclass(PeerCrashed, ConnectionLost)


def test_each_meaning_has_one_number_of_its_own() -> None:
    assert set(ERROR_CODES) == set(Meaning)
    assert len(set(ERROR_CODES.values())) == len(ERROR_CODES)


def test_the_numbers_of_json_rpc_and_of_lsp_are_as_specified() -> None:
    assert ERROR_CODES[Meaning.PARSE_ERROR] == -32700
    assert ERROR_CODES[Meaning.INVALID_REQUEST] == -32600
    assert ERROR_CODES[Meaning.UNKNOWN_METHOD] == -32601
    assert ERROR_CODES[Meaning.INVALID_PARAMS] == -32602
    assert ERROR_CODES[Meaning.INTERNAL] == -32603
    assert ERROR_CODES[Meaning.CANCELLED] == -32800


def test_our_own_numbers_stand_outside_the_reserved_range() -> None:
    theirs = {Meaning.PARSE_ERROR, Meaning.INVALID_REQUEST, Meaning.UNKNOWN_METHOD, Meaning.INVALID_PARAMS}
    ours = set(Meaning) - theirs - {Meaning.INTERNAL, Meaning.CANCELLED}
    assert [ERROR_CODES[meaning] for meaning in ours if -32768 <= ERROR_CODES[meaning] <= -32000] == []


def test_the_table_of_numbers_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        ERROR_CODES[Meaning.BUSY] = 5  # type: ignore[index]


def test_an_error_has_a_meaning_or_a_number_and_zero_is_a_number() -> None:
    assert (RpcError(Meaning.BUSY).meaning, RpcError(Meaning.BUSY).code) == (Meaning.BUSY, None)
    assert (RpcError(0).meaning, RpcError(0).code) == (None, 0)


def test_invalid_params_have_their_problems_as_data() -> None:
    error = InvalidParams([("/a/0", "is no int")])
    assert error.problems == (("/a/0", "is no int"),)
    assert error.data == {"problems": [{"pointer": "/a/0", "message": "is no int"}]}


@pytest.mark.parametrize(
    "found", [b"\x1b]0;title\x07", b"\r\nforged: line", "\u202e".encode(), b"\x00\xff", b"\n" * 99]
)
def test_quoted_text_is_one_escaped_line(found: bytes) -> None:
    text = str(BadFrame("no header", found=found))
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize(
    "error",
    [
        RemoteError(method="m", code=5, message="x\x1b[2J", data={"incident": "\x1b]0;y\x07"}),
        BadCapabilities("notes", [("/tools/0/name", "\x1b[2J is no name"), ("/\u202e", "hides")]),
        InvalidParams([("/x", "is no \r number")]),
        HandshakeFailed("notes", "it refused"),
    ],
)
def test_nothing_of_what_others_sent_can_move_a_cursor_or_hide(error: BecketError) -> None:
    assert str(error).isprintable()
    assert "\u202e" not in str(error)


def test_the_message_of_a_remote_error_is_truncated() -> None:
    error = RemoteError(method="m", code=5, message="x" * 4_000_000)
    assert len(str(error)) < 70_000
    assert error.message.endswith("... (4000000 characters)")
    assert RemoteError(method="m", code=5, message="x" * 65_536).message == "x" * 65_536


def test_quoted_bytes_of_an_error_are_truncated() -> None:
    assert len(BadFrame("no header", found=b"\xff" * 10_000).found) < 300
    assert BadFrame("no header", found=b"x" * 65).found.endswith("...")
    assert not BadFrame("no header", found=bytearray(b"x" * 64)).found.endswith("...")


def test_a_crash_shows_the_last_line_of_stderr_and_holds_the_rest() -> None:
    crash = PeerCrashed(exit_code=1, stderr_tail="Traceback\n  ...\nValueError: no\n")
    assert crash.reason is DisconnectReason.PROCESS_EXIT
    assert "ValueError: no" in crash.detail
    assert "Traceback" not in crash.detail
    assert "Traceback" in crash.stderr_tail
