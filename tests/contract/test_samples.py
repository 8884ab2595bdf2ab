"""Good samples are accepted and bad ones refused, by the schemas and by the classes alike."""

from __future__ import annotations

import pytest
from tests.contract.agreement import AGREEMENTS, Agreement, definition_of, validator
from tests.contract.sample_files import Sample, load_samples

SAMPLES = load_samples()
EACH = pytest.mark.parametrize("held", AGREEMENTS, ids=lambda held: f"{held.schema}-{held.definition}")


def samples_of(held: Agreement) -> list[Sample]:
    return [sample for sample in SAMPLES if (sample.schema, sample.definition) == (held.schema, held.definition)]


@EACH
def test_the_classes_accept_the_good_and_refuse_the_bad(held: Agreement) -> None:
    misjudged = [sample.value for sample in samples_of(held) if held.accepts(sample.value) != sample.is_good]

    assert misjudged == []


def test_the_schemas_accept_the_good_and_refuse_the_bad() -> None:
    misjudged = [
        sample
        for sample in SAMPLES
        if validator(sample.schema, sample.definition).is_valid(sample.value) != sample.is_good
    ]

    assert misjudged == []


@EACH
def test_there_are_good_and_bad_samples_of_each_definition(held: Agreement) -> None:
    kinds = {sample.is_good for sample in samples_of(held)}
    says_something = definition_of(held).keys() - {"title", "description", "examples"}

    assert kinds == ({True, False} if says_something else {True})
