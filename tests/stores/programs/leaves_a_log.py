"""Fills the store at a path, forgets and removes some of it, and is killed while all that is in SQLite's log."""

import os
import signal
import sys

from becket.contract.config import ConfigSet
from becket.contract.memory import Append
from becket.stores.sqlite import SqliteStore

store = SqliteStore(sys.argv[1], ballast=0)
for number in range(60):
    store.append(Append("notes", f"note {number} about milk", ("food",), {"n": number}, str(number)))
    store.append(Append("other", f"other {number} about tea"))
    store.set_config("notes", ConfigSet(f"key{number % 7}", f"value {number}"))
    store.set_config("other", ConfigSet("mode", f"value {number}"))
store.forget("notes", up_to=21)
store.remove_config("notes", "key3")
store.append(Append("notes", "the last note about milk"))
store.forget("other", up_to=30)
os.kill(os.getpid(), signal.SIGKILL)
