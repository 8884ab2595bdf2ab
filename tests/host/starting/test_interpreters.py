"""Commands that load code from their working directory are distinguished from other commands."""

from __future__ import annotations

import pytest

from becket.host.starting.interpreters import find_code_from_cwd


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/python3 /x/main.py -m -c",
        "python3.11 -u -X dev -W error /x/main.py",
        "python3 -uBs -Xdev /x/main.py",
        "python3 --check-hash-based-pycs never -- /x/main.py",
        "python3 -I -m notes",
        "python3 -Pc print()",
        "pypy3 /x/main.py",
        "node /x/main.js",
        "node --no-warnings --max-old-space-size=64 -r /x/a.js --import=node:module /x/main.js -r ./x",
        "sh -eu /x/run ./x",
        "perl /x/run",
        "/x/notes -m anything -c anything",
        "notes --config a.toml",
        "notes --language python",
        "wrapper --then python3 -u /x/main.py",
        "/usr/bin/env python3 /x/main.py",
        "env PYTHONPATH=/x/lib A= python3 -u /x/main.py B=1",
        "env A=1 /x/notes",
        "node --inspect=127.0.0.1:0 --stack-size=900 --title=notes /x/main.js",
    ],
)
def test_a_command_that_names_its_code_by_absolute_paths_loads_nothing_else(command: str) -> None:
    assert find_code_from_cwd(command.split()) is None


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("python3 -m notes", "-m"),
        ("/opt/python3.13 -Bum notes", "-m"),
        ("python3 -X dev -c pass", "-c"),
        ("python3 main.py", "main.py"),
        ("python3 -I main.py", "main.py"),
        ("python3 -", "-"),
        ("python3", "no script"),
        ("python3 -u", "no script"),
        ("python3 --", "no script"),
        ("node -r ./x /x/main.js", "-r"),
        ("node --require=dotenv/config /x/main.js", "--require"),
        ("node --import ./x /x/main.js", "--import"),
        ("node --env-file=.env /x/main.js", "--env-file"),
        ("node -e code", "-e"),
        ("node --some-new-option /x/main.js", "--some-new-option"),
        ("node main.js", "main.js"),
        ("node --no-warnings", "no script"),
        ("bash -c ./run", "-c"),
        ("bash -exc ./run", "-exc"),
        ("sh run", "run"),
        ("sh", "no script"),
        ("ruby -I lib /x/main.rb", "-I"),
        ("perl", "no script"),
        ("lua5.4 /x/main.lua", "lua"),
        ("/usr/bin/env -i python3 /x/main.py", "env"),
        ("env PATH=. python3 /x/main.py", "env"),
        ("env A=1", "env"),
        ("env A=1 ./notes", "./notes"),
        ("env A=1 python3 -m notes", "-m"),
        ("env A=1 env B=1 npx server", "npx"),
        ("npx server", "npx"),
        ("python3.13t -m notes", "-m"),
        ("python3-dbg -m notes", "-m"),
        ("pythonw -m notes", "-m"),
        ("wrapper --then /usr/bin/python3 -m notes", "-m"),
        ("wrapper node ./main.js", "./main.js"),
        ("taskset -c 0 notes", "taskset"),
        ("node --eval=require('./x') /x/main.js", "--eval"),
        ("node --snapshot-blob=blob /x/main.js", "--snapshot-blob"),
        ("php /x/main.php", "php"),
        ("uvicorn notes:app", "uvicorn"),
        ("uv run /x/main.py", "uv"),
    ],
)
def test_the_argument_that_loads_code_from_the_working_directory_is_reported(command: str, word: str) -> None:
    assert find_code_from_cwd(command.split()) == word
