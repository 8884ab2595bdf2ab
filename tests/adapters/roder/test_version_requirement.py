"""Version requirements have the semantics and the error messages of Cargo."""

from __future__ import annotations

import pytest

from becket.adapters.roder.version_requirement import Version, allows, parse_requirement

HOST = (0, 1, 0)


@pytest.mark.parametrize(
    ("requirement", "version"),
    [
        ("*", HOST),
        ("x", HOST),
        (" * ", HOST),
        ("^0.1", HOST),
        ("0.1", HOST),
        ("0.1.0", HOST),
        ("0", HOST),
        ("0.*", HOST),
        ("0.x.X", HOST),
        ("0.1.*", HOST),
        ("~0.1", HOST),
        ("~0.1.0", (0, 1, 7)),
        ("~0", (0, 9, 0)),
        ("=0.1.0", HOST),
        ("= 0.1", HOST),
        (">=0.1, <0.2", HOST),
        (">=0.1,<0.2", HOST),
        (">0.0.9", HOST),
        (">0", (1, 0, 0)),
        ("<1", HOST),
        ("<=0.1", HOST),
        (">=0.1.0-alpha.1", HOST),
        (">0.1.0-alpha", HOST),
        ("^0.1.0-alpha", HOST),
        ("0.1.0+build.5", HOST),
        ("0.1.0-a-b+c", HOST),
        ("^1.2.3", (1, 9, 0)),
        ("^1.2", (1, 2, 0)),
        ("^0.0.3", (0, 0, 3)),
        ("^0.0", (0, 0, 9)),
        ("^0", (0, 9, 9)),
    ],
)
def test_a_requirement_allows_these(requirement: str, version: Version) -> None:
    assert allows(parse_requirement(requirement), version)


@pytest.mark.parametrize(
    ("requirement", "version"),
    [
        ("^9.9", HOST),
        ("^0.2", HOST),
        ("^1", HOST),
        ("~0.2", HOST),
        ("~0.1.1", HOST),
        ("=0.1.1", HOST),
        ("=0.1.0-alpha", HOST),
        (">0.1", HOST),
        (">0.1.0", HOST),
        (">=0.1.1", HOST),
        ("<0.1", HOST),
        ("<0.1.0", HOST),
        ("<0.1.0-beta", HOST),
        ("<=0.0", HOST),
        (">=0.1, <0.1.0", HOST),
        ("^0.0.3", (0, 0, 4)),
        ("^0.1.2", (0, 2, 0)),
        ("^1.2.3", (1, 2, 2)),
        ("^1.2.3", (2, 0, 0)),
        ("1.*", HOST),
    ],
)
def test_a_requirement_does_not_allow_these(requirement: str, version: Version) -> None:
    assert not allows(parse_requirement(requirement), version)


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        ("", "unexpected end of input while parsing major version number"),
        ("^", "unexpected end of input while parsing major version number"),
        ("newest", "unexpected character 'n' while parsing major version number"),
        ("\x07", "unexpected character '\\u{7}' while parsing major version number"),
        ("\n", "unexpected character '\\n' while parsing major version number"),
        ("'", "unexpected character '\\'' while parsing major version number"),
        ('"', "unexpected character '\"' while parsing major version number"),
        ("0.", "unexpected end of input while parsing minor version number"),
        ("0.1.", "unexpected end of input while parsing patch version number"),
        ("0.a", "unexpected character 'a' while parsing minor version number"),
        ("01", "invalid leading zero in major version number"),
        ("0.01", "invalid leading zero in minor version number"),
        ("18446744073709551616", "value of major version number exceeds u64::MAX"),
        ("9" * 5000, "value of major version number exceeds u64::MAX"),
        ("0.1 0.2", "expected comma after minor version number, found '0'"),
        ("0.1.0-a 1", "expected comma after pre-release identifier, found '1'"),
        ("0.1.0+a 1", "expected comma after build metadata, found '1'"),
        ("0.1-a", "expected comma after minor version number, found '-'"),
        ("0.1.0-", "empty identifier segment in pre-release identifier"),
        ("0.1.0-a..b", "empty identifier segment in pre-release identifier"),
        ("0.1.0-01", "invalid leading zero in pre-release identifier"),
        ("0.1.0+", "empty identifier segment in build metadata"),
        ("*, 0.1", "wildcard req (*) must be the only comparator in the version req"),
        ("0.1, *", "wildcard req (*) must be the only comparator in the version req"),
        ("0.1, x, 1", "wildcard req (x) must be the only comparator in the version req"),
        ("*.1", "unexpected character after wildcard in version req"),
        ("0.1, *.1", "unexpected character '*' while parsing major version number"),
        ("0.*.1", "unexpected character after wildcard in version req"),
        (",".join(["0"] * 33), "excessive number of version comparators"),
    ],
)
def test_an_invalid_requirement_is_refused_with_the_message_of_cargo(requirement: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_requirement(requirement)

    assert str(caught.value) == problem


def test_build_numbers_may_begin_with_a_zero_and_32_comparators_are_not_too_many() -> None:
    assert len(parse_requirement(",".join(["0.1.0+01"] * 32))) == 32
