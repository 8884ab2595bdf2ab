"""Secrets are taken out of commands before they are recorded or shown, and everything else stays."""

from __future__ import annotations

import pytest

from becket.host.redaction import redact_command

CANARY = "c4n4ry-value"


@pytest.mark.parametrize(
    "words",
    [
        [f"--api-key={CANARY}"],
        ["--api-key", CANARY],
        ["--apiKey", CANARY],
        ["-token", CANARY],
        [f"--access-token={CANARY}"],
        [f"--password={CANARY}"],
        [f"--db-pass={CANARY}"],
        [f"--client_secret={CANARY}"],
        [f"API_KEY={CANARY}"],
        [f"postgresql://user:{CANARY}@db.example/notes"],
        [f"postgresql://user:pa@ss{CANARY}@db.example/notes"],
        [f"https://{CANARY}@github.com/acme/notes"],
        [f"--url=redis://:{CANARY}@localhost:6379/0"],
        [f"https://example.com/mcp?api_key={CANARY}&x=1"],
        [f"Server=db;User Id=sa;Password={CANARY};Database=notes"],
        [f"host=db password={CANARY} dbname=notes"],
        [f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={CANARY}==;EndpointSuffix=x"],
        ["--header", f"Authorization: Bearer {CANARY}"],
        ["--header", f"Authorization:Bearer {CANARY}"],
        ["--header", f"X-Api-Key: {CANARY}"],
        [f"--header=X-Api-Key: {CANARY}"],
        [f"--password=two words {CANARY}"],
        [f"Server=db;Password=two words {CANARY};Database=notes"],
        [f"Server=db;Password='a;{CANARY}';Database=notes"],
        [f'Server=db;Password="a;{CANARY}";Database=notes'],
        [f'{{"name": "notes", "apiKey": "a \\" {CANARY}"}}'],
        [f'--env={{"TOKEN":"{CANARY}"}}'],
        ["--private-key", f"-----BEGIN {CANARY}"],
        [f"sk-{CANARY}"],
        [f"ghp_{CANARY}"],
    ],
    ids=lambda words: " ".join(words).replace(CANARY, "VALUE"),
)
def test_a_secret_in_a_command_is_not_shown(words: list[str]) -> None:
    shown = redact_command(["npx", "server", *words, "--verbose", "notes.py"])

    assert CANARY not in " ".join(shown)
    assert "***" in " ".join(shown)
    assert (shown[:2], shown[-2:]) == (("npx", "server"), ("--verbose", "notes.py"))


@pytest.mark.parametrize(
    "words",
    [
        ["python3", "main.py", "--port", "80", "--name=notes", "-v"],
        ["node", "/srv/a b/server.js", "--url=https://example.com:8080/a?x=1&y=2"],
        ["./notes", "--root=C:\\notes", "key", "value", "a:b", "12:30"],
        ["becket-notes", "--token-limit", "5"],
        ["notes", '{"name": "notes", "limits": {"key": 5}}', "host=db user=me dbname=notes"],
        ["uvx", "mcp-server-git", "--repository", "git@github.com:acme/notes.git"],
    ],
    ids=" ".join,
)
def test_a_command_without_secrets_is_shown_unchanged(words: list[str]) -> None:
    assert redact_command(words) == tuple(words)


def test_the_user_of_a_connection_string_is_hidden_and_its_host_shown() -> None:
    assert redact_command(["postgresql://u:p@db.example:5432/notes"]) == ("postgresql://***@db.example:5432/notes",)


def test_an_option_without_a_value_hides_nothing_of_the_next_one() -> None:
    assert redact_command(["--use-token", "--verbose"]) == ("--use-token", "--verbose")


@pytest.mark.parametrize(
    "part", ["a", "a=", "a-", "--", "a:", "://", "a ", "token=", "é", "@", "bearer ", "'", '"token":"', "token= "]
)
def test_a_hostile_word_is_redacted_as_well(part: str) -> None:
    word = part * 65_536

    assert len(redact_command([word])) == 1
