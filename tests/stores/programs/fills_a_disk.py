"""Appends to a store until its disk is full, and then does what is still possible: `python fills_a_disk.py FOLDER`.

Prints as one line of JSON what came of it."""

import json
import logging
import os
import sys
from pathlib import Path

from becket.contract.config import ConfigSet
from becket.contract.memory import Append, Query
from becket.errors import RpcError
from becket.stores.sqlite import SqliteStore

logging.disable()
folder = Path(sys.argv[1])
told: dict[str, object] = {}


def outcome(call: object, *arguments: object) -> object:
    assert callable(call)
    try:
        call(*arguments)
    except RpcError as error:
        return error.meaning and error.meaning.name
    return "ok"


def kept(store: SqliteStore) -> int:
    return len(store.query(Query("notes", limit=1_000)))


(folder / "other").write_bytes(bytes(1 << 20))  # what somebody else has on the same disk
store = SqliteStore(folder / "store", ballast=256 * 1024)
store.set_config("notes", ConfigSet("mode", "dark"))
acknowledged = []
failed = None
while failed is None:
    content = f"{len(acknowledged)} {'x' * 4_000}"
    result = outcome(store.append, Append("notes", content))
    if result == "ok":
        acknowledged.append(content)
    else:
        failed = result
told["acknowledged"] = len(acknowledged)
told["failed"] = failed
told["again"] = outcome(store.append, Append("notes", "one more"))
told["set"] = outcome(store.set_config, "notes", ConfigSet("mode", "light"))
told["readable"] = [record.content for record in store.query(Query("notes", limit=1_000))][::-1] == acknowledged
told["remove"] = outcome(store.remove_config, "notes", "mode")
told["forget"] = store.forget("notes", up_to=10)
told["has ballast"] = os.path.exists(folder / "store.ballast")
os.unlink(folder / "other")
told["with room"] = outcome(store.append, Append("notes", "after"))
told["has ballast again"] = os.path.exists(folder / "store.ballast")
told["kept"] = kept(store)
store.close()
with SqliteStore(folder / "store", ballast=256 * 1024) as store:
    told["set aside"] = store.set_aside is not None
    told["kept when opened again"] = kept(store)
print(json.dumps(told))
