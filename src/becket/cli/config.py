"""`becket config`: shows and changes stored configuration values.

Secrets can be set and removed here, and are never shown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from becket._text import escape
from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import DataDirOptions, data_dir_options
from becket.cli.support.output import json_option, print_json, print_line, print_message, print_table

if TYPE_CHECKING:
    from becket.host.starting.secrets import Secrets

__all__ = ["config"]

if_revision_option = click.option(
    "--if-revision",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Only if the value still has this revision; 0: only if there is no value.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def config() -> None:
    """Show and change the configuration of extensions that a host stores.

    Stored values override the defaults of the manifest. They can be shown at any time, and changed while the host is
    not running.

    \b
    becket config list                 all values of all extensions
    becket config get eliza pace
    becket config set eliza pace 0.01
    becket config unset eliza pace     restore the default
    becket config set --secret notes token -    read a secret from stdin
    """


@config.command("list")
@json_option
@data_dir_options
@click.argument("extension", required=False)
def list_values(options: DataDirOptions, extension: str | None, as_json: bool) -> None:
    """List the values of EXTENSION, or of all.

    \b
    becket config list eliza
    becket config list --json | jq .eliza.pace
    """
    from becket.stores.sqlite import SqliteStore
    from becket.stores.sqlite.inspect import load_usage

    path = options.data_dir().store
    secrets = open_secrets(options)
    names = [share.extension for share in load_usage(path) if share.config_keys]
    with SqliteStore(path, read_only=True) as store:
        found = {
            name: hide_secrets(secrets, name, dict(sorted(store.read_config(name).values.items())))
            for name in names
            if extension in (None, name)
        }
    if as_json:
        print_json(found)
        return
    rows = [(name, key, value) for name, values in found.items() for key, value in values.items()]
    print_table(["extension", "key", "value"], rows)


@config.command()
@json_option
@data_dir_options
@click.argument("extension")
@click.argument("key")
def get(options: DataDirOptions, extension: str, key: str, as_json: bool) -> int:
    """Print the value of a KEY of EXTENSION; with --json also its revision. A secret is shown as `***`.

    \b
    becket config get eliza pace
    """
    from msgspec.structs import replace

    from becket.contract.names import strip_whitespace
    from becket.stores.sqlite import SqliteStore

    with SqliteStore(options.data_dir().store, read_only=True) as store:
        found = store.get_config(extension, key)
    if found.value is None:
        line = options.command_lines().keep("config", "list", extension)
        print_message(f"error: {extension} has no stored value of `{key}` (`{line}` lists its values)")
        return ExitCode.NOT_FOUND
    value = show(found.value, is_secret=strip_whitespace(key) in open_secrets(options).keys_of(extension))
    if as_json:
        print_json(replace(found, value=value))
    else:
        print_line("\n".join(escape(line) for line in value.split("\n")))
    return ExitCode.DONE


@config.command("set")
@if_revision_option
@click.option("--secret", is_flag=True, help="Save it in the file of secrets, and never show it.")
@data_dir_options
@click.argument("extension")
@click.argument("key")
@click.argument("value")
def set_value(
    options: DataDirOptions, extension: str, key: str, value: str, if_revision: int | None, secret: bool
) -> int:
    """Store a VALUE under a KEY of EXTENSION, for its next start. `-` reads it from stdin.

    The host must not be running. --secret is not needed for a key that the manifest declares with `secret = true`, if a
    host has read this manifest before, or finds it through the file of --config.

    \b
    becket config set eliza pace 0.01
    pass show notes | becket config set --secret notes token -
    """
    from becket.cli.support.store import open_store
    from becket.contract.config import ConfigSet
    from becket.contract.names import strip_whitespace
    from becket.host.starting.secrets import SecretConfig

    if value == "-":
        value = sys.stdin.read().removesuffix("\n")
    with open_store(options, make=True) as store:
        values = SecretConfig(store, open_secrets(options), [strip_whitespace(key)] if secret else ())
        is_secret = values.is_secret(extension, strip_whitespace(key))
        saved = values.set_config(extension, ConfigSet(key, value, if_revision))
    return report_change(saved.ok, extension, key, saved.revision, f"is `{show(value, is_secret=is_secret)}`")


@config.command()
@if_revision_option
@data_dir_options
@click.argument("extension")
@click.argument("key")
def unset(options: DataDirOptions, extension: str, key: str, if_revision: int | None) -> int:
    """Remove the value of a KEY of EXTENSION, which restores the default of its manifest.

    The host must not be running.

    \b
    becket config unset eliza pace
    """
    from becket.cli.support.store import open_store
    from becket.host.starting.secrets import SecretConfig

    with open_store(options) as store:
        values = SecretConfig(store, open_secrets(options))
        saved = values.remove_config(extension, key, if_revision=if_revision)
    return report_change(saved.ok, extension, key, saved.revision, "has no value")


def open_secrets(options: DataDirOptions) -> Secrets:
    """Returns the secrets of a host, including the secret keys of extensions that its configuration file finds."""
    from becket.host.starting.secrets import Secrets

    secrets = Secrets(options.data_dir().secrets)
    config = options.load_config()
    if config is not None:
        from becket.host.host import Host
        from becket.host.starting.launch import secret_keys_of

        for candidate in Host(config).discover().candidates:
            secrets.expect(candidate.id, secret_keys_of(candidate))
    return secrets


def hide_secrets(secrets: Secrets, extension: str, values: dict[str, str]) -> dict[str, str]:
    """Returns values with secrets replaced by `***`."""
    secret = secrets.keys_of(extension)
    return {key: show(value, is_secret=key in secret) for key, value in values.items()}


def show(value: str, *, is_secret: bool) -> str:
    """Returns a value for the user, `***` for a secret."""
    from becket.host.redaction import HIDDEN

    return HIDDEN if is_secret else value


def report_change(ok: bool, extension: str, key: str, revision: int | None, what: str) -> int:
    """Prints the outcome of a change and returns the exit code for it."""
    if ok:
        print_message(f"{extension}: `{key}` {what}, revision {revision}")
        return ExitCode.DONE
    print_message(f"error: {extension}: `{key}` was not changed: it has revision {revision}, not the given one")
    return ExitCode.FAILED
