"""Appends records to the store at a path, so many times, and prints the outcome of each.

What fails is arranged from outside. The last line has the records at the end."""

import json
import logging
import sys

from becket.contract.memory import Append, Query
from becket.errors import StoreError
from becket.stores.sqlite import SqliteStore

logging.disable()
path, count = sys.argv[1:]
store = SqliteStore(path, ballast=0, index=False)
outcomes: list[object] = []
for number in range(int(count)):
    try:
        outcomes.append(store.append(Append("notes", str(number), idem=str(number))).id)
    except StoreError as error:
        outcomes.append(error.meaning and error.meaning.name)
found = [record.content for record in store.query(Query("notes"))][::-1]
print(json.dumps({"outcomes": outcomes, "found": found}), flush=True)
store.close()
