"""Appends to a store until its disk is full, and then does what is still possible: `python fills_a_disk.py FOLDER`.

Prints the outcome as one line of JSON."""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.errors import RpcError
from becket.stores.sqlite import SqliteStore

logging.disable()
folder = Path(sys.argv[1])
report: dict[str, Any] = {}


def outcome(call: object, *arguments: object) -> object:
    assert callable(call)
    try:
        call(*arguments)
    except RpcError as error:
        report.setdefault("texts", []).append(str(error))
        return error.meaning and error.meaning.name
    return "ok"


def kept(store: SqliteStore) -> int:
    return len(store.query(Query("notes", limit=1_000)))


(folder / "other").write_bytes(bytes(12 << 20))  # data of another program on the same disk
store = SqliteStore(folder / "store", ballast=6 << 20)
store.set_config("notes", ConfigSet("mode", "dark"))
acknowledged = []
failed = None
while failed is None:
    content = f"{len(acknowledged)} {'x' * 12_000}"
    result = outcome(store.append, Append("notes", content))
    if result == "ok":
        acknowledged.append(content)
    else:
        failed = result
report["acknowledged"] = len(acknowledged)
report["failed"] = failed
report["again"] = outcome(store.append, Append("notes", "one more"))
report["set"] = outcome(store.set_config, "notes", ConfigSet("mode", "light"))
report["readable"] = [record.content for record in store.query(Query("notes", limit=1_000))][::-1] == acknowledged
report["remove"] = outcome(store.remove_config, "notes", "mode")
report["forget"] = store.forget("notes", up_to=10)
report["has ballast"] = os.path.exists(folder / "store.ballast")
report["forget more"] = store.forget("notes", up_to=110)
rest = os.open(folder / "rest", os.O_WRONLY | os.O_CREAT)
try:
    while True:
        os.write(rest, bytes(4096))  # another program uses all that is left
except OSError:
    os.close(rest)
report["after forget"] = [
    outcome(store.append, Append("notes", f"again {number} {'x' * 12_000}")) for number in range(20)
]
more = ["ok"]
while more[-1] == "ok":
    more.append(outcome(store.append, Append("notes", f"more {'x' * 12_000}")))
report["until full again"] = [len(more) - 2, more[-1]]
os.unlink(folder / "rest")
os.unlink(folder / "other")
report["texts"] = sorted(set(report["texts"]))
report["with room"] = outcome(store.append, Append("notes", "after"))
report["has ballast again"] = os.path.exists(folder / "store.ballast")
report["kept"] = kept(store)
store.close()
with SqliteStore(folder / "store", ballast=6 << 20) as store:
    report["set aside"] = store.quarantined is not None
    report["kept when opened again"] = kept(store)
print(json.dumps(report))
