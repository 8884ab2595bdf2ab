"""`check_store` passes correct stores, and fails broken ones with the reason."""

from __future__ import annotations

import pytest
from tests.stores import broken_stores as broken

from becket.stores.in_memory import InMemoryStore
from becket.stores.store import StoreFactory
from becket.testing import check_store


@pytest.mark.parametrize("seed", range(4))
def test_the_store_in_memory_passes_check_store(seed: int) -> None:
    check_store(InMemoryStore, seed=seed)


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (broken.AcknowledgesWithoutAnId, "the result has no id"),
        (broken.CountsForEachTime, "ids do not grow"),
        (broken.UsesItsOwnTime, "the time is not that of the clock"),
        (broken.SortsTags, "the record is not as it was appended"),
        (broken.StoresTuples, "the record is not as it was appended"),
        (broken.LendsItsMeta, "`meta` was changed from outside"),
        (broken.SortsByTime, "the latest append does not come first"),
        (broken.GivesTheOldestFirst, "the latest append does not come first"),
        (broken.MindsCase, "content_contains 'milk'"),
        (broken.FoldsAscii, "content_contains 'STRASSE'"),
        (broken.FoldsTags, "tag_prefix 'foo'"),
        (broken.ExcludesTheUpperBound, "{'until_ms': 20}"),
        (broken.CutsBeforeItLooks, "a limit counts what fits"),
        (broken.HasNoPages, "limit 61, where a page is 60"),
        (broken.TakesAnyNamespace, "query of the namespace '' returned []"),
        (broken.RaisesAnything, "query of the namespace '' raised OSError"),
        (broken.ForgetsRepetitions, "the result of a repeated `idem`"),
        (broken.RepeatsForAll, "conversation"),
        (broken.CountsCharacters, "append with too large content returned"),
        (broken.StoresBeforeItChecks, "a record that was refused is there"),
        (broken.HasNoQuota, "append of one record too many returned"),
        (broken.CountsNoBytes, "append of one byte too many returned"),
        (broken.IsVagueAboutQuotas, "in the quota's error"),
        (broken.RefusesRepetitionsWhenFull, "memory quotas: the store raised QuotaExceeded"),
        (broken.SharesOneConfig, "get_config: another extension's"),
        (broken.CountsRevisionsForEach, "revisions do not grow"),
        (broken.NeverCompares, "if_revision 0 where there is a value"),
        (broken.ComparesWithTheStore, "conversation"),
        (broken.RaisesOnConflict, "comparing: the store raised RpcError"),
        (broken.RetainsRevisionsOfDeletedKeys, "conversation"),
        (broken.RemovesInSilence, "read_changes: a removed value"),
        (broken.TakesAnyKey, "get_config of the key '' returned"),
        (broken.HasNoConfigQuota, "set_config of one key too many returned"),
        (broken.GivesTheRevisionOfTheExtension, "read_config: of all keys"),
        (broken.MergesChanges, "read_changes: "),
        (broken.RepeatsTheLastChange, "read_changes: a removed value"),
        (broken.LeavesGaps, "where three are remembered"),
        (broken.BelievesInTheFuture, "after a revision that was never reached"),
        (broken.WakesTooEarly, "what a watcher finds when it is woken"),
        (broken.DiesWithItsWatchers, "watching: the store raised RuntimeError"),
        (broken.NeverStopsWaking, "woken after it was ended"),
        (broken.LosesUpdates, "updates were lost between threads"),
        (broken.DiesOfThreads, "used by 4 threads at once"),
        (broken.IsNeverClosed, "append of a closed store returned"),
        (broken.ForgetsARecord, "query"),
        (broken.NeverCallsBack, "`done` was not called 5 times"),
        (broken.CallsBackTwice, "how often `done` was called"),
        (broken.RaisesInsteadOfCallingBack, "handing over: the store raised QuotaExceeded"),
        (broken.FailsWithItsSubscriber, "handing over: the store raised RuntimeError"),
        (broken.FindsOnlyPhrases, "search: 'tea milk'"),
        (broken.FindsTheNewest, "search: 'MILK'"),
        (broken.RanksEverything, "only the newest two are ranked"),
        (broken.TakesAnyNumberOfWords, "search of one word too many returned"),
        (broken.OnlyPretendsToForget, "forget: how many there were the second time"),
        (broken.UsesIdsAgain, "an id was used again"),
        (broken.GivesNoShareBack, "forgotten records: the store raised QuotaExceeded"),
        (broken.RemembersForgottenKeys, "some of which were forgotten"),
        (broken.FillsNoPage, "query_page: two of three"),
        (broken.DecodesPages, "`meta` is not JSON text"),
        (broken.HasAllTheTime, "a query without any time"),
        (broken.EchoesForEver, "how far one counts"),
        (broken.CriesWolf, "verify: after records were forgotten"),
        (broken.ClosesTooSoon, "close: what was handed over"),
    ],
)
def test_the_failure_of_a_broken_store_has_the_reason(
    factory: StoreFactory, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("becket.testing.checks.opened_store.TIMEOUT", 0.5)
    with pytest.raises(AssertionError) as caught:
        check_store(factory)
    assert complaint in str(caught.value)
