"""A dialect is a record: its wire settings, and the call meta beside the params."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from msgspec import Raw

from becket import DIALECTS
from becket.contract import handshake
from becket.dialects import NATIVE, PLAIN, CallMeta, Dialect, ProgressFormat, find_dialect
from becket.dialects.dialect import MetaReader
from becket.dialects.native import FEATURES
from becket.errors import ERROR_CODES, Meaning
from becket.framing import ContentLength, JsonLines
from becket.jsonrpc.calls import CancellationFormat, OutboundCall
from becket.jsonrpc.json_values import encode_json
from becket.limits import Limits

BEFORE = FEATURES - {"no_params"}  # as programs announce that do not know it


def read(params: str | bytes | None) -> CallMeta | None:
    if params is None:
        return None
    return NATIVE.split_meta(Raw(params.encode() if isinstance(params, str) else params), FEATURES)[0]


def write(params: str | None, meta: CallMeta, features: frozenset[str] = FEATURES) -> Any:
    written = NATIVE.insert_meta(None if params is None else params.encode(), encode_json(meta), features)
    return None if written is None else json.loads(written)


# -- finding


def test_a_dialect_is_found_by_its_name() -> None:
    assert find_dialect("plain") is PLAIN
    assert find_dialect("native") is NATIVE


def test_a_dialect_record_is_accepted_instead_of_its_name() -> None:
    mine = Dialect(name="mine")
    assert find_dialect(mine) is mine


def test_the_error_for_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="klingon") as caught:
        find_dialect("klingon")
    assert all(name in str(caught.value) for name in DIALECTS)


def test_every_dialect_is_registered_under_its_name() -> None:
    assert {name: dialect.name for name, dialect in DIALECTS.items()} == {name: name for name in DIALECTS}


# -- the records


def test_plain_is_json_rpc_with_the_base_protocol_of_lsp() -> None:
    assert PLAIN.framing is ContentLength
    assert PLAIN.cancellation == CancellationFormat("$/cancelRequest", "id", "sent")
    assert PLAIN.progress == ProgressFormat("$/progress", "token", "value")
    assert (PLAIN.ping, PLAIN.credit, PLAIN.features) == (None, None, frozenset())
    assert not PLAIN.bad_json_is_fatal


def test_native_adds_what_both_peers_must_have_announced() -> None:
    assert NATIVE.framing is ContentLength
    assert NATIVE.cancellation == PLAIN.cancellation
    assert NATIVE.progress == PLAIN.progress
    assert (NATIVE.ping, NATIVE.credit) == ("$/ping", "$/credit")
    assert frozenset(handshake.FEATURES) == FEATURES
    assert NATIVE.features == FEATURES == {"cancel", "progress", "deadline", "credit", "ping", "log", "no_params"}


def test_both_number_errors_as_becket_does() -> None:
    assert PLAIN.error_codes == NATIVE.error_codes == ERROR_CODES


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        PLAIN.ping = "$/ping"  # type: ignore[misc]


# -- a link in a dialect


def test_a_link_takes_its_host_defaults_from_the_dialect_and_its_limits_from_the_caller() -> None:
    limits = Limits(frame=1_000)
    connection = NATIVE.build_connection(limits)
    assert isinstance(connection.framing, ContentLength)
    assert connection.limits is limits
    assert connection.cancellation == NATIVE.cancellation
    connection.receive(b'Content-Length: 42\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"$/ping"}')
    assert connection.data_to_send() == b'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","id":1,"result":null}'


@pytest.mark.parametrize(
    ("name", "frame"),
    [("plain", 4), ("native", 4), ("synaps", 4), ("cigen", 10), ("mcp", 16), ("morphir", 16), ("lsp", 32)],
)
def test_a_dialect_has_the_frame_limit_of_its_system(name: str, frame: int) -> None:
    assert DIALECTS[name].limits.frame == frame * 1024 * 1024


@pytest.mark.parametrize(("name", "grace"), [("lsp", 5.0), ("mcp", 5.0), ("native", 2.0), ("plain", 2.0)])
def test_a_dialect_has_the_exit_grace_of_its_programs(name: str, grace: float) -> None:
    assert DIALECTS[name].limits.stdin_grace == grace


def test_a_caller_may_choose_another_framing() -> None:
    connection = PLAIN.build_connection(Limits(), JsonLines)
    assert isinstance(connection.framing, JsonLines)


def test_a_dialect_may_number_and_end_things_in_its_own_way() -> None:
    strict = Dialect(
        name="strict", framing=JsonLines, error_codes={Meaning.INVALID_REQUEST: -1}, bad_json_is_fatal=True
    )
    connection = strict.build_connection(Limits())
    assert connection.cancellation is None
    connection.receive(b"1\n")
    assert b'"code":-1,' in connection.data_to_send()
    connection.receive(b"{\n")
    assert connection.violation is not None


def test_a_dialect_may_bring_a_codec_of_its_own() -> None:
    made: list[Limits] = []
    limits = Limits()

    def codec(given: Limits) -> Any:
        made.append(given)
        return PLAIN.codec(given)

    connection = Dialect(name="own", codec=codec).build_connection(limits)
    assert made == [limits]

    class Waiter:
        def done(self) -> bool:
            return False

        def set_result(self, result: None, /) -> None: ...

    assert connection.open_call(OutboundCall("m", Waiter()), None).endswith(b'{"jsonrpc":"2.0","id":1,"method":"m"}')


# -- call meta


def test_call_meta_is_read_from_the_params() -> None:
    meta = '{"becket":{"timeout_ms":1500,"parent":7,"depth":2,"credit":64,"idem":"k"}}'
    assert read(f'{{"a":1,"_meta":{meta}}}') == CallMeta(timeout_ms=1500, parent=7, depth=2, credit=64, idem="k")


@pytest.mark.parametrize("parent", ["1", '"a"', "1.5", "null"])
def test_the_parent_is_an_id_of_any_kind(parent: str) -> None:
    meta = read(f'{{"_meta":{{"becket":{{"parent":{parent}}}}}}}')
    assert meta == CallMeta(parent=json.loads(parent))


@pytest.mark.parametrize(
    "params",
    [
        None,
        "{}",
        "[]",
        '{"a":1}',
        '["_meta"]',
        '{"a":{"_meta":{"becket":{"depth":1}}}}',
        '{"a":"_meta"}',
        '{"_meta":{}}',
        '{"_meta":{"progressToken":1}}',
        '{"_meta":{"other":{"depth":1}}}',
    ],
)
def test_params_without_meta_have_none(params: str | None) -> None:
    assert read(params) is None


@pytest.mark.parametrize(
    "params",
    [
        '{"_meta":null}',
        '{"_meta":5}',
        '{"_meta":[]}',
        '{"_meta":{"becket":null}}',
        '{"_meta":{"becket":"x"}}',
        '{"_meta":{"becket":{"timeout_ms":"5"}}}',
        '{"_meta":{"becket":{"timeout_ms":1.5}}}',
        '{"_meta":{"becket":{"timeout_ms":-1}}}',
        '{"_meta":{"becket":{"timeout_ms":1e999}}}',
        '{"_meta":{"becket":{"timeout_ms":' + "9" * 400 + "}}}",
        '{"_meta":{"becket":{"depth":-1}}}',
        '{"_meta":{"becket":{"depth":null}}}',
        '{"_meta":{"becket":{"credit":-5}}}',
        '{"_meta":{"becket":{"credit":true}}}',
        '{"_meta":{"becket":{"parent":[]}}}',
        '{"_meta":{"becket":{"idem":5}}}',
        b'{"_meta":{"becket":{"idem":"\xff"}}}',
    ],
)
def test_malformed_meta_counts_as_absent(params: str | bytes) -> None:
    assert read(params) is None


def test_unknown_members_of_a_later_version_are_ignored() -> None:
    assert read('{"_meta":{"becket":{"depth":3,"colour":"red"},"other":1}}') == CallMeta(depth=3)


def test_only_the_given_meta_members_are_written() -> None:
    assert write(None, CallMeta(depth=1), BEFORE) == {"_meta": {"becket": {"depth": 1}}}
    assert write("{}", CallMeta(timeout_ms=5), BEFORE) == {"_meta": {"becket": {"timeout_ms": 5}}}
    assert write('{"a":null}', CallMeta(idem="k")) == {"_meta": {"becket": {"idem": "k"}}, "a": None}


def test_params_by_position_have_no_room_for_it() -> None:
    assert write("[1]", CallMeta(depth=1)) == [1]
    assert write("[]", CallMeta(depth=1)) == []


@pytest.mark.parametrize(
    ("params", "merged"),
    [
        ('{"_meta":{"progressToken":1}}', {"_meta": {"progressToken": 1, "becket": {"depth": 1}}}),
        ('{"a":null,"_meta":{"x":null}}', {"a": None, "_meta": {"x": None, "becket": {"depth": 1}}}),
        ('{"_meta":{"becket":{"depth":9,"idem":"k"}}}', {"_meta": {"becket": {"depth": 1}}}),
        ('{"_meta":5}', {"_meta": 5}),
        ("{ }", {"_meta": {"becket": {"depth": 1}}}),
        ('{\n"a":1}', {"a": 1, "_meta": {"becket": {"depth": 1}}}),
        ('{"a":"\\"_meta\\""}', {"a": '"_meta"', "_meta": {"becket": {"depth": 1}}}),
        ('{"a":{"_meta":{}},"b":null}', {"a": {"_meta": {}}, "b": None, "_meta": {"becket": {"depth": 1}}}),
    ],
)
def test_meta_is_merged_with_the_members_that_the_params_have(params: str, merged: object) -> None:
    assert write(params, CallMeta(depth=1)) == merged


def test_empty_and_absent_params_are_marked_where_both_peers_support_the_mark() -> None:
    assert write(None, CallMeta(depth=1)) == {"_meta": {"becket": {"depth": 1, "no_params": True}}}
    assert write("{}", CallMeta(depth=1)) == {"_meta": {"becket": {"depth": 1, "no_params": False}}}
    assert write(None, CallMeta()) == {"_meta": {"becket": {"no_params": True}}}
    assert write('{"a":1}', CallMeta(depth=1)) == {"_meta": {"becket": {"depth": 1}}, "a": 1}


@pytest.mark.parametrize("space", ["", " ", "\n  "])
@pytest.mark.parametrize("features", [FEATURES, BEFORE])
def test_the_mark_means_the_same_in_any_white_space(space: str, features: frozenset[str]) -> None:
    def params(mark: str) -> Raw:
        return Raw(f'{{"_meta":{{"becket":{{"depth":1,"no_params":{mark}}}{space}}}{space}}}'.encode())

    assert NATIVE.split_meta(params("true"), features) == (CallMeta(depth=1, no_params=True), None)
    assert NATIVE.split_meta(params("false"), features) == (CallMeta(depth=1, no_params=False), Raw(b"{}"))


def test_params_without_a_mark_are_an_empty_object_where_both_peers_support_it_and_absent_otherwise() -> None:
    alone = Raw(b'{"_meta":{"becket":{"depth":1}}}')
    assert NATIVE.split_meta(alone, FEATURES) == (CallMeta(depth=1), Raw(b"{}"))
    assert NATIVE.split_meta(alone, BEFORE) == (CallMeta(depth=1), None)
    assert NATIVE.split_meta(Raw(b'{"_meta":{"becket":{"depth":1}} }'), BEFORE) == (CallMeta(depth=1), Raw(b"{}"))


def without(params: str | bytes, features: frozenset[str]) -> Any:
    text = params.encode() if isinstance(params, str) else params
    _, left = NATIVE.split_meta(Raw(text), features)
    return None if left is None else bytes(left)


@pytest.mark.parametrize("meta", [CallMeta(), CallMeta(depth=1), CallMeta(timeout_ms=5, parent="a", credit=1)])
@pytest.mark.parametrize("features", [FEATURES, BEFORE])
@pytest.mark.parametrize("params", [None, "{}", '{"a":null}', '{"a":{"_meta":{}}}', '{"a":"_meta","b":[1.0e2]}'])
def test_written_meta_is_removed_again(params: str | None, features: frozenset[str], meta: CallMeta) -> None:
    written = NATIVE.insert_meta(None if params is None else params.encode(), encode_json(meta), features)
    assert without(written, features) == (None if params is None else params.encode())


@pytest.mark.parametrize(
    ("params", "left"),
    [
        ('{ "_meta": {"becket": {"depth": 1}} }', None),
        ('{"a":1,"_meta":{"becket":{"depth":1}}}', b'{"a":1}'),
        ('{"_meta":{"becket":{"depth":1,"later":2}},"a": [1e2]}', b'{"a": [1e2]}'),
        ('{"_meta":{"progressToken":5,"becket":{"depth":1}}}', b'{"_meta":{"progressToken":5}}'),
        ('{"a":1,"_meta":{"becket":{"depth":1},"x":null}}', b'{"a":1,"_meta":{"x":null}}'),
        (b'{"\xff":1,"_meta":{"becket":{"depth":1}}}', b'{"\xff":1,"_meta":{"becket":{"depth":1}}}'),
        (b'{"_meta":{"\xff":1,"becket":{"depth":1}}}', b'{"_meta":{"\xff":1,"becket":{"depth":1}}}'),
    ],
)
def test_meta_is_removed_however_it_was_written(params: str | bytes, left: bytes | None) -> None:
    assert without(params, BEFORE) == left


NAMES = st.text(max_size=5) | st.sampled_from(["_meta", "becket", '"_meta"'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=5,
)
METAS = st.builds(
    CallMeta,
    timeout_ms=st.none() | st.integers(0, 2**53),
    parent=st.none() | st.integers(-(2**53), 2**53) | st.text(max_size=5) | st.just(1.5),
    depth=st.integers(0, 99),
    credit=st.none() | st.integers(0, 2**53),
    idem=st.none() | st.text(max_size=5) | st.just("}}"),
)


@given(params=st.dictionaries(NAMES, VALUES, max_size=3), meta=METAS)
def test_written_meta_is_read_and_the_rest_of_the_params_is_unchanged(params: dict[str, Any], meta: CallMeta) -> None:
    text = json.dumps(params, ensure_ascii=False, separators=(",", ":")).encode()
    written = NATIVE.insert_meta(text, encode_json(meta), BEFORE)
    after = json.loads(written)
    if isinstance(params.get("_meta", {}), dict):
        read, left = NATIVE.split_meta(Raw(written), BEFORE)
        assert read == meta
        if "_meta" not in params:
            assert left is not None
            assert json.loads(bytes(left)) == params
        own = after.pop("_meta")
        del own["becket"]
        assert own == {name: value for name, value in params.pop("_meta", {}).items() if name != "becket"}
    assert after == params


@given(
    params=st.dictionaries(NAMES, VALUES, max_size=3),
    metas=st.lists(METAS | st.just(CallMeta(timeout_ms=5)), max_size=4),
)
def test_a_reader_of_many_messages_splits_each_as_if_it_was_the_first(
    params: dict[str, Any], metas: list[CallMeta]
) -> None:
    text = json.dumps(params, ensure_ascii=False, separators=(",", ":")).encode()
    reader = MetaReader()
    for meta in [*metas, *metas]:
        for written in (Raw(NATIVE.insert_meta(text, encode_json(meta), FEATURES)), Raw(text)):
            assert reader.split(written, FEATURES) == NATIVE.split_meta(written, FEATURES)
