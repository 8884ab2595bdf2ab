"""Opens the store at a path, appends a record, prints, and stays until stdin ends; `dies` kills it instead."""

import os
import signal
import sys

from becket.contract.memory import Append
from becket.stores.sqlite import SqliteStore

path, how = sys.argv[1:]
store = SqliteStore(path, ballast=0)
store.append(Append("notes", "of another program", idem="k"))
if how == "dies":
    os.kill(os.getpid(), signal.SIGKILL)  # the record is stored, and not acknowledged
print("kept", flush=True)
sys.stdin.read()
store.close()
