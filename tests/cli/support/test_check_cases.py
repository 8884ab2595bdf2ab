"""The cases of `becket check` are data: complete, unambiguous and readable by a suite in another language."""

from __future__ import annotations

import msgspec
import pytest

from becket.cli.support.check_cases import (
    ADAPTER_CASES,
    NATIVE_CASES,
    PLAIN_CASES,
    Case,
    Observation,
    Observed,
    SendRequest,
    judge,
)
from becket.cli.support.findings import FindingLevel
from becket.errors import Meaning

TABLES = {"native": NATIVE_CASES, "plain": PLAIN_CASES, "adapter": ADAPTER_CASES}
every_table = pytest.mark.parametrize("cases", TABLES.values(), ids=TABLES)


@every_table
def test_each_case_has_an_id_of_its_own_and_a_title_that_is_a_sentence(cases: tuple[Case, ...]) -> None:
    assert len({case.id for case in cases}) == len(cases)
    assert all(case.title[0].isupper() and case.title.endswith(".") for case in cases)


@every_table
def test_a_case_depends_only_on_earlier_ones(cases: tuple[Case, ...]) -> None:
    ids = [case.id for case in cases]

    assert all(not case.needs or case.needs in ids[: ids.index(case.id)] for case in cases)


@every_table
def test_the_cases_can_be_written_as_json(cases: tuple[Case, ...]) -> None:
    written = msgspec.json.decode(msgspec.json.encode(cases))

    assert [case["id"] for case in written] == [case.id for case in cases]
    response = written[1]
    assert response["sends"][0]["send"] == "request"
    assert {"observed", "level", "text"} <= response["verdicts"][0].keys()


@every_table
def test_every_request_has_a_verdict_on_a_result_and_on_a_program_that_ends(cases: tuple[Case, ...]) -> None:
    for case in cases:
        observed = {verdict.observed for verdict in case.verdicts}
        if case.sends and isinstance(case.sends[-1], SendRequest):
            assert {Observed.RESULT, Observed.ERROR, Observed.SILENCE, Observed.CRASH} <= observed


def test_the_first_verdict_that_fits_counts() -> None:
    methods = next(case for case in NATIVE_CASES if case.id == "methods")

    known = judge(methods, Observation(Observed.ERROR, {"code": -32601}, Meaning.UNKNOWN_METHOD))
    other = judge(methods, Observation(Observed.ERROR, {"code": 5}))

    assert (known.level, other.level) == (FindingLevel.OK, FindingLevel.WARNING)
    assert "5" in other.text


def test_facts_with_braces_are_shown_unchanged() -> None:
    messages = next(case for case in NATIVE_CASES if case.id == "messages")

    assert judge(messages, Observation(Observed.BAD_MESSAGE, {"problem": "{x} {}"})).text == "{x} {}"


def test_an_observation_without_a_verdict_is_a_mistake_in_the_table() -> None:
    with pytest.raises(LookupError, match="stdin"):
        judge(Case(id="stdin", title="It ends.", verdicts=()), Observation(Observed.CLEAN))
