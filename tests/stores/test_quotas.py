"""The quota of an extension: the size of records and values, and its exhaustion."""

from __future__ import annotations

import pytest

from becket.contract.memory import Append
from becket.errors import InvalidParams, QuotaExceeded
from becket.limits import Limits
from becket.stores.quotas import NewRecord, check_config_quota, check_memory_quota, config_value_size, parse_append

LIMITS = Limits(memory_content=8, memory_records=3, memory_bytes=20, config_keys=2, config_bytes=10)


def test_a_record_takes_the_bytes_of_all_its_parts() -> None:
    entry = parse_append(Append("notes", "é", ("é", "ab"), {"a": 1}, "k"), LIMITS)

    assert entry == NewRecord("notes", "é", ("é", "ab"), b'{"a":1}', "k", size=2 + 4 + 7)


def test_a_record_without_meta_uses_no_bytes_for_it() -> None:
    assert parse_append(Append("notes", "ab"), LIMITS) == NewRecord("notes", "ab", (), None, None, size=2)


def test_a_record_that_breaks_the_rules_is_refused() -> None:
    with pytest.raises(InvalidParams) as caught:
        parse_append(Append("notes", "123456789"), LIMITS)
    assert [pointer for pointer, _ in caught.value.problems] == ["/content"]


@pytest.mark.parametrize(
    ("records", "used", "more", "full"),
    [(0, 0, 20, None), (2, 10, 10, None), (3, 0, 0, "records"), (0, 0, 21, "bytes"), (2, 20, 1, "bytes")],
)
def test_records_beyond_the_quota_are_refused(records: int, used: int, more: int, full: str | None) -> None:
    if full is None:
        check_memory_quota("notes", LIMITS, records=records, used=used, more=more)
        return
    with pytest.raises(QuotaExceeded) as caught:
        check_memory_quota("notes", LIMITS, records=records, used=used, more=more)
    assert caught.value.what == full


def test_a_value_takes_the_bytes_of_its_key_too() -> None:
    assert config_value_size("é", "abc") == 5
    assert config_value_size("é", None) == 0


@pytest.mark.parametrize(
    ("keys", "used", "more_keys", "more", "full"),
    [(0, 0, 1, 10, None), (2, 5, 0, 5, None), (2, 0, 1, 1, "keys"), (1, 5, 0, 6, "bytes"), (2, 10, 0, -1, None)],
)
def test_values_beyond_the_quota_are_refused(keys: int, used: int, more_keys: int, more: int, full: str | None) -> None:
    if full is None:
        check_config_quota("notes", LIMITS, keys=keys, used=used, more_keys=more_keys, more=more)
        return
    with pytest.raises(QuotaExceeded) as caught:
        check_config_quota("notes", LIMITS, keys=keys, used=used, more_keys=more_keys, more=more)
    assert caught.value.what == full
