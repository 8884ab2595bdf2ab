"""Importing becket loads only what every program needs; event loops and the rest load at first use."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import becket.blocking
import becket.extension

LOOPS = {"anyio", "asyncio", "trio", "uvloop"}
AT_FIRST_USE = {"attr", "attrs", "cattrs", "jsonschema"}
ONLY_BY_SOME_PARTS = {"click", "google.protobuf", "lsprotocol", "pygls", "rich", "watchfiles"}
ONLY_IN_TESTS = {"hypothesis", "pytest"}
UNWANTED = LOOPS | AT_FIRST_USE | ONLY_BY_SOME_PARTS | ONLY_IN_TESTS


def modules_after(statement: str, listed: str = "sys.modules", **variables: str) -> set[str]:
    """Returns the modules that a fresh interpreter holds after this statement."""
    code = f"import sys\n{statement}\nfound = sorted({listed})\nimport json\nprint(json.dumps(found))"
    # -I: neither the environment nor the current folder may add or hide an import.
    # Nor may coverage follow it there: it imports much of what is looked for.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "BECKET_"))}
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=100, env=environment | variables)
    return set(json.loads(done.stdout))


def executed_after(statement: str) -> set[str]:
    """Returns the modules whose code a fresh interpreter has executed after this statement."""
    return modules_after(
        statement, "name for name, module in sys.modules.items() if type(module).__name__ != 'LateModule'"
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "module",
    [
        "becket",
        "becket.blocking",
        "becket.adapters.lsp",
        "becket.conversion.attrs_classes",
        "becket.json_schema.validator",
    ],
)
def test_importing_loads_no_heavy_module(module: str) -> None:
    loaded = modules_after(f"import {module}")

    assert module in loaded
    assert loaded & UNWANTED == set()


@pytest.mark.process
@pytest.mark.slow
def test_lsprotocol_and_pygls_come_with_the_parts_of_lsp_that_need_them() -> None:
    client = modules_after("from becket.adapters import lsp; lsp.LanguageClient")
    server = modules_after("from becket.adapters import lsp; lsp.serve")

    assert client & {"lsprotocol", "pygls"} == {"lsprotocol"}
    assert server & {"lsprotocol", "pygls"} == {"lsprotocol", "pygls"}


@pytest.mark.process
def test_everything_but_lsp_does_without_lsprotocol() -> None:
    loaded = modules_after(
        "import becket.host.host, becket.testing, becket.adapters, becket.cli.main, becket.adapters.lsp.dialect"
    )

    assert loaded & {"lsprotocol", "pygls"} == set()


@pytest.mark.process
def test_an_extension_without_an_event_loop_imports_nothing_that_looks_into_source_code() -> None:
    loaded = modules_after("import becket.blocking")

    assert loaded & {"ast", "dis", "inspect", "typing_extensions"} == set()


@pytest.mark.process
def test_the_classes_of_datetime_can_be_imported_afterwards() -> None:
    made = "msgspec.json.decode(b'\"2026-11-15T12:00:00\"', type=datetime.datetime).year"
    loaded = modules_after(
        f"import becket, msgspec, datetime; assert datetime.__name__ == 'datetime' and {made} == 2026"
    )

    assert "datetime" in loaded


@pytest.mark.process
def test_typing_extensions_can_be_imported_afterwards() -> None:
    assert "typing_extensions" in modules_after("import becket, typing_extensions; typing_extensions.Required")


@pytest.mark.process
def test_a_schema_still_has_the_documentation_of_its_class() -> None:
    # What takes the indentation off is executed when there is some to take off.
    made = "type('Note', (msgspec.Struct,), {'__doc__': '    A note.'})"
    statement = f"import becket, msgspec; said = msgspec.json.schema({made})['$defs']['Note']['description']"

    assert "textwrap" not in executed_after("import becket")
    assert "textwrap" in executed_after(f"{statement}; assert said == 'A note.', said")


@pytest.mark.process
@pytest.mark.parametrize(
    "statement",
    [
        "import msgspec; assert msgspec.inspect.type_info(int) == msgspec.inspect.IntType()",
        "import msgspec.inspect; assert msgspec.inspect.type_info(int) == msgspec.inspect.IntType()",
        "from msgspec.inspect import IntType, type_info; assert type_info(int) == IntType()",
        "from msgspec import msgpack, toml, yaml; assert msgpack.decode(msgpack.encode([1])) == [1]",
        "import msgspec.inspect as kept, msgspec; kept.IntType; import msgspec.inspect as again;"
        " assert kept is again is msgspec.inspect is sys.modules['msgspec.inspect']",
        "import msgspec; assert not hasattr(msgspec.inspect, 'no_such_name')",
    ],
)
def test_postponed_parts_of_msgspec_are_there_when_they_are_used(statement: str) -> None:
    assert "msgspec.inspect" not in executed_after("import becket.blocking")

    modules_after(f"import becket; {statement}")


@pytest.mark.process
def test_postponed_modules_have_their_specs_before_they_are_executed() -> None:
    statement = (
        "import becket, importlib.util; from becket._msgspec_import import LATE_MODULES as late;"
        " assert [importlib.util.find_spec(name).name for name in late] == list(late)"
    )
    assert "textwrap" not in executed_after(statement)


@pytest.mark.process
def test_an_extension_starts_without_regular_expressions() -> None:
    assert "re" not in executed_after("import becket.blocking, becket.extension.server")


@pytest.mark.process
@pytest.mark.parametrize(
    "statement",
    [
        "import re; assert re.compile('A', re.IGNORECASE).match('a')",
        "from re import compile; assert compile('a').match('a')",
        "import re._parser; assert re._parser.parse('a')",
        "import re, pickle; pattern = re.compile('a'); assert pickle.loads(pickle.dumps(pattern)) == pattern",
        "import re, typing; assert typing.Pattern[str].__origin__ is re.Pattern is type(re.compile('a'))",
        "import re, typing; assert typing.Match[str].__origin__ is re.Match is type(re.match('a', 'a'))",
        "import re, typing; assert typing.get_type_hints(type('A', (), {'__annotations__': {'it': 're.Pattern[str]'}}),"
        " {'re': re}) == {'it': re.Pattern[str]}",
        "import re, unittest.mock\nwith unittest.mock.patch('re.compile', len): assert re.compile('abc') == 3",
        "import re; assert re.__name__ == re.__spec__.name == 're' and re.__file__ and re.__path__",
        "import re; assert not hasattr(re, 'no_such_name')",
        "import re; re._MAXCACHE = 1; re.compile('a'); assert re._MAXCACHE == 1",
        "import re; del re.match; assert not hasattr(re, 'match') and re.search('a', 'a')",
        "import re; assert 'compile' in dir(re)",
        "import re; assert re.__doc__ and 'compile' in vars(re)",
        "assert all(vars(module) for module in sys.modules.values())",
        "import re, importlib; importlib.reload(re); assert type(re) is type(sys) and re.match('a', 'a')",
        "assert all(getattr(module, '__file__', '') != '?' for module in sys.modules.values())",
    ],
)
def test_regular_expressions_are_there_when_they_are_used(statement: str) -> None:
    modules_after(f"import becket.blocking\n{statement}")


FAILS_AT_FIRST = """
import becket.blocking, os, re, resource
least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, most))
try:
    re.compile("a")
except OSError:
    pass
else:
    raise AssertionError("there was a descriptor left")
resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))
assert re.compile("a").match("a") and re.fullmatch("b", "b")
"""

USES_WHAT_IS_NOT_THERE_YET = """
import becket.blocking, re, sys, threading
loader, found = re.__spec__.loader, []
execute_module = loader.exec_module
def use():
    found.append(re.match("a", "a"))
def execute(module):
    execute_module(module)
    compile_later = module.__dict__.pop("_compile")
    thread.start()
    while thread.is_alive() and sys._current_frames()[thread.ident].f_code.co_name != "execute":
        pass  # it has not come to the lock yet
    module.__dict__["_compile"] = compile_later
loader.exec_module = execute
thread = threading.Thread(target=use)
assert re.search("a", "a")
thread.join()
assert found[0], found
"""

IMPORTS_A_PART_MEANWHILE = """
import becket.blocking, importlib, re, threading
loader = re.__spec__.loader
execute_module = loader.exec_module
def execute(module):
    thread = threading.Thread(target=importlib.import_module, args=["re._parser"])
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "waits for the module, which waits for its part"
    execute_module(module)
loader.exec_module = execute
assert re.search("a", "a") and re._parser.parse("a")
"""


@pytest.mark.process
@pytest.mark.parametrize("program", [FAILS_AT_FIRST, USES_WHAT_IS_NOT_THERE_YET, IMPORTS_A_PART_MEANWHILE])
def test_a_postponed_module_is_never_seen_half_executed(program: str) -> None:
    modules_after(program)


@pytest.mark.process
def test_msgspec_compiles_its_patterns_as_usual() -> None:
    modules_after(
        "import becket.blocking, msgspec, re, typing\n"
        "kind = typing.Annotated[str, msgspec.Meta(pattern='^a+$')]\n"
        "assert msgspec.json.decode(b'\"aa\"', type=kind) == 'aa'\n"
        "try: msgspec.json.decode(b'\"b\"', type=kind); assert False\n"
        "except msgspec.ValidationError: pass\n"
        "try: msgspec.Meta(pattern='['); assert False\n"
        "except re.error: pass\n"
    )


REPLACES = """
import becket, msgspec, unittest.mock
with unittest.mock.patch("msgspec.inspect.type_info", len):
    from msgspec.inspect import type_info
    assert type_info is msgspec.inspect.type_info is msgspec._json_schema.mi.type_info is len
assert msgspec.inspect.type_info is not len
"""

USES_AT_ONCE = """
import becket, msgspec, threading
together, found = threading.Barrier(8), []
def use():
    together.wait()
    found.append(msgspec.inspect.IntType)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [msgspec.inspect.IntType] * 8, found
"""

IMPORTS_THE_REST = """
import becket, datetime, msgspec, platform, re, textwrap, typing_extensions, uuid
assert getattr(uuid, "platform", platform) is platform and platform.python_version()
assert msgspec.inspect.datetime is datetime and msgspec.json.schema(int)
assert msgspec.msgpack.encode and msgspec.toml.encode and msgspec.yaml.encode
assert re.compile("a").match("a") and textwrap.dedent and typing_extensions.Required
left = [name for name, module in sys.modules.items() if type(module).__module__.startswith("becket")]
assert left == [], left
"""


@pytest.mark.process
@pytest.mark.parametrize("program", [REPLACES, USES_AT_ONCE, IMPORTS_THE_REST])
def test_no_replaced_modules_of_msgspec_are_left_in_a_program(program: str) -> None:
    modules_after(program)


@pytest.mark.process
def test_an_environment_variable_selects_the_usual_import_of_msgspec() -> None:
    loaded = modules_after("import becket, msgspec; assert vars(msgspec.toml)['decode']", BECKET_PLAIN_IMPORTS="1")
    assert {"re._compiler", "textwrap", "typing_extensions"} <= loaded


@pytest.mark.process
def test_importing_leaves_the_garbage_collector_alone() -> None:
    modules_after("import gc; gc.disable(); import becket; becket.Peer; assert not gc.isenabled()")
    frozen = "gc.get_freeze_count()"
    modules_after(f"import gc; n = {frozen}; import becket; becket.Peer; assert gc.isenabled() and {frozen} == n")


@pytest.mark.process
def test_modules_that_others_have_imported_stay() -> None:
    assert "typing_extensions" in modules_after("import typing_extensions, becket.blocking")


@pytest.mark.process
def test_the_names_of_the_package_are_listed_without_loading_them() -> None:
    assert modules_after("import becket; dir(becket)") & UNWANTED == set()


def test_names_that_are_not_loaded_yet_are_listed_beside_the_others() -> None:
    assert set(becket.blocking.__all__) <= set(dir(becket.blocking))
    assert set(becket.extension.__all__) <= set(dir(becket.extension))


@pytest.mark.process
def test_the_probe_sees_a_heavy_import() -> None:
    assert {"asyncio", "anyio"} <= modules_after("import becket, anyio, asyncio")
