"""`check_persistent_store` passes durable stores, and fails others with what they lose."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stores import lasting_stores as lasting

from becket.stores.in_memory import InMemoryStore
from becket.stores.store import StoreOpener
from becket.testing import check_persistent_store

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


def test_a_store_that_lasts_passes(folder: Path) -> None:
    toll = check_persistent_store(lasting.PickleStore, folder, kills=3)

    assert (toll.crashes, toll.lost) == (3, 0)
    assert toll.acknowledged > 0


@pytest.mark.parametrize(
    ("open_store", "complaint"),
    [
        (lasting.AllowsSeveralProcesses, "a second opening of an open store returned"),
        (lasting.CountsAnew, "was forgotten"),
        (lasting.ForgetsKeysWhenItIsClosed, "opened again: the result of a repeated `idem`"),
        (lasting.ForgetsChangesWhenItIsClosed, "opened again: the changes"),
        (lasting.ForgetsSharesWhenItIsClosed, "opened again: an append beyond the quota returned"),
        (lasting.LosesTheOldestWhenItIsClosed, "lasting conversation"),
        (lasting.WritesWhenItIsClosed, "acknowledged"),
        (lasting.StoresTwice, "when it is repeated"),
    ],
)
def test_the_failure_of_a_store_that_loses_data_names_the_loss(
    folder: Path, open_store: StoreOpener, complaint: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        check_persistent_store(open_store, folder, kills=4)
    assert complaint in str(caught.value)


def test_a_store_that_other_programs_cannot_open_cannot_be_checked(folder: Path) -> None:
    class Inside(lasting.PickleStore):
        pass

    with pytest.raises(AssertionError) as caught:
        check_persistent_store(Inside, folder, kills=1)
    assert "of a module" in str(caught.value)


def test_a_store_in_memory_does_not_last(folder: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        check_persistent_store(lambda path, limits, clock: InMemoryStore(limits, clock), folder)
    assert "opened again" in str(caught.value)
