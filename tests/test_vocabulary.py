"""Names, docstrings, comments, messages and test names use the words of the field, and none that these replaced.

The lists have whole words, one row for each idea; a name is split at underscores and capital letters.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import becket

REPLACED = {
    "host, extension": "household guest",
    "peer, end": "side sides",
    "handler": "listener listeners",
    "message": "piece tale telling tells told",
    "send, call, notify, respond, reject": "say says said saying tell ask asks asked asking answer answers answered",
    "receive, handle": "hear hears heard hearing taker takers",
    "subscription, event handler": "claim claims claimed listening",
    "parser, fast path": "careful",
    "wire format": "spelling spelled",
    "mapping, adapter": "speech phrase phrases scene words voice spoken translation translations",
    "handshake": "greet greeting greets welcome introduction goodbye farewell",
    "host defaults": "habits habit surroundings",
    "consent, prompt, approval": "doorkeeper admitting admission agreed agree yes",
    "supervision policy, intent, exit cause": "care wish wishes wished ending",
    "data directory, persistence": "kept keeping places",
    "blocking runtime, async runtime": "face faces",
    "extra": "particulars",
    "truncate": "shorten",
    "the noun": "whoever nobody somebody anybody given",
    "protocols": "roles",
}
WORDS = {word: idea for idea, words in REPLACED.items() for word in words.split()}

EXCEPTIONS = {
    "read_answer": "what a person types at a prompt",
    "answer_for": "what a person answers to a prompt",
    "is_yes": "what a person answers to a prompt",
    "ask": "the callback of `Host(ask=...)`",
    "AskCallback": "the callback of `Host(ask=...)`",
    "AskConsent": "the callback of `Host(ask=...)`",
    "ReadAnswer": "what a person types at a prompt",
    "agree": "what a person answers to a prompt",
    "split_words": "the words of a command line",
    "match_short_words": "the words of a text",
    "never_answers": "a program of the test kit, which users start by its name",
    "asks_without_reading": "a program of the test kit, which users start by its name",
    "answers_twice": "a program of the test kit, which users start by its name",
    "ticks_after_the_answer": "a program of the test kit, which users start by its name",
}
PERSONIFIED = {
    "the noun": "whoever nobody somebody anybody",
    "sends, reports, returns": "told tell tells telling said saying",
    "receives": "hear hears heard",
    "requests, calls, prompts": "asking",
    "host, extension": "household guest guests",
    "handshake, shutdown": "greet greets goodbye farewell doorkeeper introduction",
    "wire format, dialect": "spoken spelled",
    "host defaults": "habit habits",
    "handler": "taker takers listener listeners",
    "mapping": "translation translations",
    "intent": "wish wishes",
    "fix": "mend",
}
VARIABLES = {
    "message, notification": "told tell tells tale said saying piece pieces",
    "request, response": "asked heard answer answers",
    "managed extension": "guest guests household",
    "peer, end": "side sides",
    "mapping, link state": "speech scene phrase phrases voice spoken translation translations",
    "host defaults, context": "habits surroundings introduction",
    "data directory": "places",
    "decision": "admission admissions",
    "handshake result": "greeted greeting",
    "supervision, intent": "care wish wishes",
    "approved": "agreed",
    "handler, subscription": "taker takers claim claims listener listeners",
    "before_reload, random": "renew chance",
}
VARIABLE_WORDS = {word: idea for idea, words in VARIABLES.items() for word in words.split()}
OTHER_VARIABLES = {
    "agreed": "a member of an audit record",
    "pieces": "a member of the result of an MCP tool",
    "care": "the name of a keyword in 0.1",
    "read_answer": "what a person types at a prompt",
    "ReadAnswer": "what a person types at a prompt",
    "ANSWER": "what a person types at a prompt",
    "ANSWERS": "what a person types at a prompt",
    "MAX_ANSWER_LENGTH": "what a person types at a prompt",
    "YES_ANSWERS": "what a person types at a prompt",
}
CONSTANTS = {"MOST": "MAX", "LONGEST": "MAX", "LEAST": "MIN"}
"""Words of constants; in lower case they are adjectives."""
PROSE = {word: idea for idea, words in PERSONIFIED.items() for word in words.split()}
TEST_NAMES = {
    "the noun": "whoever nobody somebody anybody",
    "sends, reports, returns": "say says said saying tell tells told telling",
    "receives": "hear hears heard",
    "requests, calls, prompts": "ask asks asked asking",
    "shutdown, handshake": "goodbye farewell greet greets welcome",
    "is sent, is encoded": "travel travels",
    "has, includes": "bear bears",
    "supports, declares": "want wants wish wishes",
    "extension": "guest guests household",
    "settings": "particulars",
}
PRONOUNS = {"it", "its", "they", "them", "such", "so"}
COMMENT_OR_DOCSTRING = re.compile(r'(?:^ *|  )# (.*)$|^ *"""([A-Z][^"\n]*)"""$', re.MULTILINE)
OTHER_TEXT = {
    "cli/support/templates.py": "programs that greet people",
}
SHARED_NAMES = {
    "Message": "a JSON-RPC message, and the name in the contract for a turn of a conversation with a model",
    "Progress": "the name in LSP and in MCP",
    "Role": "the name in MCP, and the peer that a conformance case tests",
}
"""Names of a class and a type alias, or of two type aliases."""
FORWARDING_MODULE = '"""Deprecated since 0.2: '  # it has its name of 0.1
FOLDER = Path(becket.__file__).parent
TESTS = Path(__file__).parent


def split_name(name: str) -> list[str]:
    """Returns the words of a name: `to_HTTPRequest` has three."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)]


def public_names(source: str) -> Iterator[tuple[str, int]]:
    """Yields classes, and functions and methods without an underscore, each with its line."""
    for node in definitions(source):
        if not node.name.startswith("_"):
            yield node.name, node.lineno


def all_names(source: str) -> Iterator[tuple[str, int]]:
    """Yields public names and type aliases, each with its line."""
    yield from public_names(source)
    yield from type_aliases(source)


@cache
def parse(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def definitions(source: str) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(parse(source))
    return [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]


def type_aliases(source: str) -> Iterator[tuple[str, int]]:
    """Yields each type alias of a module with its line, but no type variables.

    `Annotated` types of fields are left out too: each schema has its own bounds for a `Count` or an `Id`."""
    for node in statements(parse(source).body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(value, ast.Subscript) and ast.unparse(value.value) == "Annotated":
            continue
        is_type = isinstance(value, ast.Subscript | ast.BinOp | ast.Name | ast.Attribute)
        if isinstance(target, ast.Name) and re.match(r"[A-Z].*[a-z]", target.id) and is_type:
            yield target.id, node.lineno


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a module, also those within an `if`."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from statements([*node.body, *node.orelse])


def problems_of(name: str) -> list[str]:
    """Returns a line for each replaced word in a name that is no exception."""
    if name in EXCEPTIONS:
        return []
    return [f"{name}: `{word}` is now: {WORDS[word]}" for word in split_name(name) if word in WORDS]


def problems_of_test(name: str) -> list[str]:
    """Returns a line for each personified word in the name of a test, and one if it begins with a pronoun."""
    words = split_name(name.removeprefix("test_"))
    replaced = {word: idea for idea, words in TEST_NAMES.items() for word in words.split()}
    found = [f"{name}: `{word}` is now: {replaced[word]}" for word in words if word in replaced]
    if words[0] in PRONOUNS:
        found.append(f"{name}: begins with `{words[0]}` instead of a noun")
    return found


def names_of_tests(file: Path) -> list[str]:
    """Returns the names of the tests at the top level of a module; to parse them all would take seconds."""
    return re.findall(r"^(?:async )?def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)


def files() -> list[Path]:
    return sorted(FOLDER.rglob("*.py"))


def prose(source: str) -> Iterator[tuple[str, int]]:
    """Yields each line of a comment, a docstring or another text, with its number."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            for number, line in enumerate(token.string.splitlines(), token.start[0]):
                yield line, number


def comments_and_docstrings(source: str) -> list[str]:
    """Returns comments and docstrings of one line, found by a pattern: strings may be data of tests."""
    return [comment or docstring for comment, docstring in COMMENT_OR_DOCSTRING.findall(source)]


def prose_problems(line: str) -> list[str]:
    """Returns a line for each personified or replaced word in a text; names in backticks are no words."""
    words = re.findall(r"[a-z]+", re.sub(r"`[^`]*`", "", line.lower()))
    return [f"`{word}` is now: {PROSE[word]}" for word in words if word in PROSE]


def test_modules_are_named_with_the_words_of_the_field() -> None:
    present = [file for file in files() if not file.read_text(encoding="utf-8").startswith(FORWARDING_MODULE)]
    names = {part for file in present for part in file.relative_to(FOLDER).with_suffix("").parts}

    assert [problem for name in sorted(names) for problem in problems_of(name)] == []


def test_classes_functions_and_type_aliases_are_named_with_the_words_of_the_field() -> None:
    problems = [
        f"{file.relative_to(FOLDER)}:{line}: {problem}"
        for file in files()
        for name, line in all_names(file.read_text(encoding="utf-8"))
        for problem in problems_of(name)
    ]

    assert problems == []


@cache
def variables(source: str) -> list[tuple[str, int]]:
    """Returns each variable, attribute and parameter where it is defined, with its line, but no members of 0.1."""
    return list(iter_variables(source))


def iter_variables(source: str) -> Iterator[tuple[str, int]]:
    renamed: set[ast.AST] = set()
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if isinstance(node.value.func, ast.Name) and node.value.func.id == "RenamedMember":
                renamed.update(node.targets)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store) and node not in renamed:
            yield (node.id if isinstance(node, ast.Name) else node.attr), node.lineno


def test_variables_and_parameters_are_named_with_the_words_of_the_field() -> None:
    problems = [
        f"{file.relative_to(FOLDER)}:{line}: {name}: `{word}` is now: {VARIABLE_WORDS[word]}"
        for file in files()
        for name, line in variables(file.read_text(encoding="utf-8"))
        if name not in OTHER_VARIABLES
        for word in split_name(name)
        if word in VARIABLE_WORDS
    ]

    assert problems == []


def test_constants_for_bounds_are_named_max_and_min() -> None:
    problems = [
        f"{file.relative_to(FOLDER)}:{line}: {name}: `{word}` is now: {CONSTANTS[word]}"
        for file in files()
        for name, line in variables(file.read_text(encoding="utf-8"))
        if name not in OTHER_VARIABLES
        for word in name.split("_")
        if word in CONSTANTS
    ]

    assert problems == []


def test_docstrings_comments_and_messages_use_the_words_of_the_field() -> None:
    problems = [
        f"{file.relative_to(FOLDER)}:{number}: {problem}"
        for file in files()
        if file.relative_to(FOLDER).as_posix() not in OTHER_TEXT
        for line, number in prose(file.read_text(encoding="utf-8"))
        for problem in prose_problems(line)
    ]

    assert problems == []


def test_tests_are_named_with_plain_sentences() -> None:
    problems = [
        f"{file.relative_to(TESTS)}: {problem}"
        for file in sorted(TESTS.rglob("*.py"))
        for name in names_of_tests(file)
        for problem in problems_of_test(name)
    ]

    assert problems == []


@pytest.mark.parametrize("folder", ["tests", "examples", "benchmarks", "tools"])
def test_comments_and_docstrings_outside_the_package_use_the_words_of_the_field(folder: str) -> None:
    problems = [
        f"{file.relative_to(TESTS.parent)}: {line}: {problem}"
        for file in sorted((TESTS.parent / folder).rglob("*.py"))
        if "results" not in file.parts  # of benchmarks, with a copy of the sources
        for line in comments_and_docstrings(file.read_text(encoding="utf-8"))
        for problem in prose_problems(line)
    ]

    assert problems == []


def test_the_far_end_of_a_link_is_called_the_other_peer() -> None:
    pages = [TESTS.parent / "README.md", *sorted((TESTS.parent / "docs").glob("*.md")), *files()]
    pattern = re.compile(r"\b(?:remote peer|other side)\b")

    assert [page.name for page in pages if pattern.search(page.read_text(encoding="utf-8"))] == []


def test_no_test_name_occurs_twice_in_a_module() -> None:
    counts = {file.relative_to(TESTS): Counter(names_of_tests(file)) for file in sorted(TESTS.rglob("*.py"))}

    assert [(file, name) for file, names in counts.items() for name, count in names.items() if count > 1] == []


def test_every_exception_for_a_name_is_needed() -> None:
    names = {name for file in files() for name, _ in all_names(file.read_text(encoding="utf-8"))}

    assert [name for name in EXCEPTIONS if name not in names or WORDS.keys().isdisjoint(split_name(name))] == []


def test_every_exception_for_a_variable_is_needed() -> None:
    names = {name for file in files() for name, _ in variables(file.read_text(encoding="utf-8"))}
    replaced = VARIABLE_WORDS.keys() | {word.lower() for word in CONSTANTS}

    assert [name for name in OTHER_VARIABLES if name not in names or replaced.isdisjoint(split_name(name))] == []


@pytest.mark.parametrize("name", OTHER_TEXT)
def test_every_exception_for_a_text_is_needed(name: str) -> None:
    lines = prose((FOLDER / name).read_text(encoding="utf-8"))

    assert [problem for line, _ in lines for problem in prose_problems(line)]


def test_no_class_name_or_type_alias_occurs_twice() -> None:
    assert [name for name, count in count_types().items() if count > 1 and name not in SHARED_NAMES] == []


def test_every_exception_for_a_shared_name_is_needed() -> None:
    counts = count_types()

    assert [name for name in SHARED_NAMES if counts[name] < 2] == []


def count_types() -> Counter[str]:
    """Counts the classes of a name and the other modules that have a type alias of that name."""
    counts: Counter[str] = Counter()
    for file in files():
        source = file.read_text(encoding="utf-8")
        classes = [node.name for node in definitions(source) if isinstance(node, ast.ClassDef)]
        counts.update(classes)
        counts.update({name for name, _ in type_aliases(source)} - set(classes))  # an alias may replace a class there
    return counts


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("to_HTTPRequest", ["to", "http", "request"]),
        ("McpClientInfo", ["mcp", "client", "info"]),
        ("_asyncio_fast", ["asyncio", "fast"]),
    ],
)
def test_a_name_is_split_into_its_words(name: str, words: list[str]) -> None:
    assert split_name(name) == words


@pytest.mark.parametrize("name", ["HouseholdSet", "say_hello", "told", "SCENE"])
def test_the_check_finds_replaced_words(name: str) -> None:
    assert problems_of(name)


@pytest.mark.parametrize("name", ["test_a_host_says_why", "test_it_ends", "test_so_is_a_peer", "test_nobody_waits"])
def test_the_check_finds_test_names_that_are_no_plain_sentences(name: str) -> None:
    assert problems_of_test(name)


@pytest.mark.parametrize("line", ["# nobody waits", '"""Is told of it."""', 'f"{id}: somebody said no"'])
def test_the_check_finds_personified_prose(line: str) -> None:
    assert prose_problems(line)


def test_the_check_finds_comments_and_docstrings() -> None:
    source = 'def f():\n    """One."""\n    x = "# no"  # Two.\n    # Three.\n'

    assert comments_and_docstrings(source) == ["One.", "Two.", "Three."]


def test_the_check_finds_type_aliases() -> None:
    source = """
T = TypeVar("T")
LIMIT: Final = 5
Count = Annotated[int, Meta(ge=0)]
Row: TypeAlias = tuple[int, str]
if TYPE_CHECKING:
    Handler = Callable[[], None]
else:
    Handler = Callable
"""

    assert [name for name, _ in type_aliases(source)] == ["Row", "Handler", "Handler"]


def test_a_name_in_backticks_is_no_prose() -> None:
    assert prose_problems("# the column `said` of version 1") == []


@pytest.mark.parametrize("name", ["answering_machine", "essay", "wordsmith", "Surface"])
def test_the_check_looks_at_whole_words(name: str) -> None:
    assert problems_of(name) == []
