"""Configuration: the wire form, and valid keys and values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from becket.contract.config import (
    CONFIG_CHANGED,
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_SUBSCRIBE,
    ConfigChanged,
    ConfigSaved,
    ConfigSet,
    ConfigSubscribe,
    ConfigSubscribed,
    ConfigValue,
    check_config_set,
    find_key_problem,
    parse_config_key,
)
from becket.errors import InvalidParams
from becket.limits import Limits


def wire(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


# -- the wire form


@pytest.mark.parametrize(
    ("message", "travels"),
    [
        (ConfigValue(None), {"value": None}),
        (ConfigValue("dark", 7), {"value": "dark", "revision": 7}),
        (ConfigSet("mode", "dark"), {"key": "mode", "value": "dark"}),
        (ConfigSet("mode", "dark", 0), {"key": "mode", "value": "dark", "if_revision": 0}),
        (ConfigSaved(True), {"ok": True}),
        (ConfigSaved(False, 8), {"ok": False, "revision": 8}),
        (ConfigSubscribe(), {}),
        (ConfigSubscribe(("mode",), 0), {"keys": ["mode"], "since": 0}),
        (ConfigSubscribed(True), {"ok": True}),
        (ConfigSubscribed(True, 8, {}), {"ok": True, "revision": 8, "snapshot": {}}),
        (ConfigChanged("mode", None, 9), {"key": "mode", "value": None, "revision": 9}),
    ],
)
def test_messages_have_this_wire_form(message: object, travels: dict[str, Any]) -> None:
    assert wire(message) == travels


def test_reading_needs_no_permission_and_the_rest_has_its_own() -> None:
    assert CONFIG_GET.requires is None
    assert CONFIG_SET.requires == "config.write"
    assert CONFIG_SUBSCRIBE.requires == "config.subscribe"
    assert CONFIG_CHANGED.requires == "config.subscribe"


def test_an_extension_reads_the_config_and_the_host_notifies_of_changes() -> None:
    assert {method.direction for method in (CONFIG_GET, CONFIG_SET, CONFIG_SUBSCRIBE)} == {"to-host"}
    assert CONFIG_CHANGED.direction == "to-extension"


# -- keys and values


@pytest.mark.parametrize("key", ["mode", "a_b-c", "é", " mode ", "\tmode\n", "a\u00a0b", "é" * 128])
def test_these_keys_are_valid_and_white_space_around_them_is_removed(key: str) -> None:
    assert parse_config_key(key) == key.strip()


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", "config key must be non-empty"),
        (" \t", "config key must be non-empty"),
        ("a.b", "config key must not contain dots, slashes, or spaces"),
        ("a/b", "config key must not contain dots, slashes, or spaces"),
        ("a b", "config key must not contain dots, slashes, or spaces"),
        ("a\x00b", "config key must not contain control characters"),
        ("a\nb", "config key must not contain control characters"),
        ("a\x9bb", "config key must not contain control characters"),
        ("é" * 128 + "x", "config key too large: 257 bytes (max 256)"),
    ],
)
def test_these_keys_are_refused(key: str, problem: str) -> None:
    assert find_key_problem(key) == problem
    with pytest.raises(InvalidParams) as caught:
        parse_config_key(key)
    assert caught.value.problems == (("/key", problem),)


def test_a_value_of_the_largest_size_may_be_stored() -> None:
    check_config_set(ConfigSet("mode", "é" * 8192))


def test_all_problems_of_a_change_are_reported_together() -> None:
    with pytest.raises(InvalidParams) as caught:
        check_config_set(ConfigSet("a.b", "é" * 3), Limits(config_value=5))

    assert caught.value.problems == (
        ("/key", "config key must not contain dots, slashes, or spaces"),
        ("/value", "config value too large: 6 bytes (max 5)"),
    )
