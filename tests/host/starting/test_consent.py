"""Consent: approved files are started, others are prompted for or refused."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace
from tests.host.folders import write_extension

from becket.contract.audit import AuditEvent, ConsentRefused, FilesChanged, GrantChanged
from becket.errors import BadFile, ExtensionRefused, StartFailed
from becket.host.data_dir import DataDir
from becket.host.diagnostics import Diagnostic
from becket.host.events import EventBus, ExtensionEvent, PermissionGranted, PermissionRevoked
from becket.host.persistence import open_persistence
from becket.host.starting import consent
from becket.host.starting.candidate import Candidate, OperatorSettings
from becket.host.starting.consent import ConsentController, ManagedExtension
from becket.host.starting.consent_request import ConsentChanges, ConsentRequest, describe_request
from becket.host.starting.discovery import discover_extensions
from becket.host.starting.folder_digest import digest_folder
from becket.host.starting.grants_file import GrantEntry, edit_grants, load_grants
from becket.host.starting.launch import LaunchSettings, LaunchSpec
from becket.host.starting.manifest import Environment
from becket.permissions.gate import MAX_PROMPTS
from becket.permissions.grants import Grants

pytestmark = pytest.mark.loops

READING = 'permissions = ["memory.read"]\n'
BOTH = 'permissions = ["memory.read", "memory.write"]\n'


class ConsentSetup:
    """A consent controller, its prompts, and its events."""

    def __init__(
        self,
        root: Path,
        data: Path | None,
        responses: Callable[[str], bool] | None,
        *,
        on_find: Callable[[], object] | None = None,
        asks_async: bool = False,
        **options: Any,
    ) -> None:
        self.root = root
        self._on_find = on_find
        self.data_dir = None if data is None else DataDir(data)
        self.prompts: list[str] = []
        self.requests: list[ConsentRequest] = []
        self.diagnostics: list[Diagnostic] = []
        self.events_seen: list[ExtensionEvent] = []
        self.audit: list[AuditEvent] = []
        self._answers = responses
        self.persistence = open_persistence(self.data_dir)
        events = EventBus()
        events.subscribe(ExtensionEvent, self.events_seen.append)
        settings = LaunchSettings(
            store=self.persistence.store,
            audit=self.audit.append,
            data_dir=self.data_dir,
            ask=None if responses is None else self._decide_async if asks_async else self._decide,
            variables=os.environ,
        )
        arguments: dict[str, Any] = {"host_grants": {}, "configured": {}, "in_development": False, **options}
        self.controller = ConsentController(
            self.persistence,
            settings,
            events=events,
            complain=self.diagnostics.append,
            find_again=self.find,
            **arguments,
        )

    def _decide(self, prompt: str, request: ConsentRequest) -> bool:
        self.prompts.append(prompt)
        self.requests.append(request)
        assert self._answers is not None
        return self._answers(prompt)

    async def _decide_async(self, prompt: str, request: ConsentRequest) -> bool:
        return self._decide(prompt, request)

    def find(self, id: str = "notes") -> Candidate:
        if self._on_find is not None:
            self._on_find()
        for candidate in discover_extensions([self.root]).candidates:
            if candidate.id == id:
                return candidate
        raise ExtensionRefused(id, "it is not found any more")

    async def evaluate_and_approve(self, candidate: Candidate | None = None) -> ManagedExtension:
        extension = await self.controller.evaluate(candidate or self.find())
        await self.controller.approve_start(extension)
        return extension


@asynccontextmanager
async def consent_setup(
    root: Path, data: Path | None, responses: Callable[[str], bool] | None = lambda prompt: True, **options: Any
) -> AsyncGenerator[ConsentSetup, None]:
    setup = ConsentSetup(root, data, responses, **options)
    try:
        with anyio.fail_after(60):
            yield setup
    finally:
        setup.persistence.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_extension(tmp_path / "root" / "notes", "notes", READING)
    return tmp_path / "root"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def change(root: Path, text: str = "print('changed')\n") -> None:
    (root / "notes" / "main.py").write_text(text, encoding="utf-8")


# -- copies


async def test_approved_files_are_started_from_a_copy(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        spec = await setup.controller.resolve_launch(extension)

        digest = digest_folder(root / "notes").digest
        assert spec.folder == str(data / "copies" / digest)
        assert spec.command[1:] == (f"{spec.folder}/main.py",)
        assert load_grants(data / "grants.toml")["notes"] == GrantEntry(("memory.read",), (), digest)


async def test_a_file_that_is_changed_after_the_check_is_not_started(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        change(root)

        spec = await setup.controller.resolve_launch(extension)

        assert (Path(spec.folder) / "main.py").read_text(encoding="utf-8") == "print()\n"
        assert len(setup.prompts) == 1


async def test_a_program_in_the_folder_is_that_of_the_copy(root: Path, data: Path) -> None:
    manifest = root / "notes" / "becket.toml"
    manifest.write_text(manifest.read_text("utf-8").replace('"python3", "main.py"', '"./run", "main.py"'), "utf-8")
    (root / "notes" / "run").write_text("#!/bin/sh\n", encoding="utf-8")
    (root / "notes" / "run").chmod(0o755)
    async with consent_setup(root, data) as setup:
        spec = await setup.controller.resolve_launch(await setup.evaluate_and_approve())

        assert spec.command == (f"{spec.folder}/run", f"{spec.folder}/main.py")
        assert Path(spec.folder).parent == data / "copies"


async def test_a_working_directory_in_the_folder_is_one_in_the_copy(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        (root / "notes" / "work").mkdir()
        candidate = replace(setup.find(), cwd=str(root / "notes" / "work"))

        spec = await setup.controller.resolve_launch(await setup.evaluate_and_approve(candidate))

        assert spec.cwd == f"{spec.folder}/work"


async def test_a_copy_is_made_once_and_again_when_it_was_changed(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        copy = Path((await setup.controller.resolve_launch(await setup.evaluate_and_approve())).folder)
        first = (copy / "main.py").stat().st_ino
    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve()
        assert (copy / "main.py").stat().st_ino == first
    (copy / "main.py").chmod(0o600)
    (copy / "main.py").write_text("print('evil')\n", encoding="utf-8")
    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve()
        assert (copy / "main.py").read_text(encoding="utf-8") == "print()\n"
        assert setup.prompts == []


async def test_copies_without_an_approval_are_removed(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        old = await setup.controller.resolve_launch(await setup.evaluate_and_approve())
        change(root)
        new = await setup.controller.resolve_launch(await setup.evaluate_and_approve())
        setup.controller.remove_unused_snapshots()
        assert [str(path) for path in (data / "copies").iterdir()] == [new.folder]
        assert old.folder != new.folder
    edit_grants(data / "grants.toml", "notes", lambda _: None)
    async with consent_setup(root, data) as setup:
        setup.controller.remove_unused_snapshots()
        assert [*(data / "copies").iterdir()] == []


async def test_a_running_extension_retains_its_copy_while_other_files_are_approved(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        old = await setup.controller.resolve_launch(extension)
        change(root)
        await setup.controller.approve_reload(extension)
        setup.controller.remove_unused_snapshots()
        assert os.path.basename(old.folder) in os.listdir(data / "copies")


async def test_the_files_of_the_host_do_not_count_where_they_lie_in_the_extensions_folder(root: Path) -> None:
    async with consent_setup(root, root / "notes" / "state") as setup:
        spec = await setup.controller.resolve_launch(await setup.evaluate_and_approve())
        assert not (Path(spec.folder) / "state").exists()
    async with consent_setup(root, root / "notes" / "state") as setup:
        await setup.evaluate_and_approve()
        assert setup.prompts == []


# -- working copies

SYSTEMS = pytest.mark.parametrize("dialect", ["synaps", "nexo", "roder", "morphir", "cigen"])


def release(*specs: LaunchSpec) -> None:
    for spec in specs:
        assert spec.working is not None
        spec.working.release()


@SYSTEMS
async def test_a_program_of_another_system_gets_a_fresh_copy_that_it_may_write_for_each_start(
    root: Path, data: Path, dialect: str
) -> None:
    write_extension(root / "notes", "notes", f'dialect = "{dialect}"\n')
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        first = await setup.controller.resolve_launch(extension)
        (Path(first.folder) / "main.py").write_text("changed", encoding="utf-8")
        second = await setup.controller.resolve_launch(extension)  # as a reload does, while the first still runs
        release(first)
        third = await setup.controller.resolve_launch(extension)

        assert [spec.folder for spec in (first, second, third)] == [
            str(data / "working" / "notes" / slot / "notes") for slot in "121"
        ]
        assert second.command[1:] == (f"{second.folder}/main.py",)
        assert second.digest == third.digest == digest_folder(root / "notes").digest
        assert digest_folder(third.folder).digest == third.digest
        assert len(setup.prompts) == 1
        release(second, third)


async def test_a_native_extension_has_the_read_only_copy(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        spec = await setup.controller.resolve_launch(await setup.evaluate_and_approve())

        assert spec.working is None
        assert (Path(spec.folder) / "main.py").stat().st_mode & 0o222 == 0
        assert not (data / "working").exists()


@SYSTEMS
async def test_the_operator_may_let_a_program_write_in_its_own_folder(root: Path, data: Path, dialect: str) -> None:
    write_extension(root / "notes", "notes", f'dialect = "{dialect}"\n')
    async with consent_setup(root, data) as setup:
        candidate = replace(setup.find(), operator=OperatorSettings(in_place=True))

        assert (await setup.controller.resolve_launch(await setup.evaluate_and_approve(candidate))).folder == str(
            root / "notes"
        )
        assert not (data / "working").exists()


def find_in_place(setup: ConsentSetup) -> Candidate:
    return replace(setup.find(), operator=OperatorSettings(in_place=True))


async def add_files_in_place(root: Path, data: Path) -> None:
    """Consents to an extension that runs in place, and adds files as its program would."""
    (root / "notes" / "lib.py").write_text("lib = 1\n", encoding="utf-8")
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve(find_in_place(setup))
        (root / "notes" / "state.json").write_text("{}", encoding="utf-8")
        (root / "notes" / "cache").mkdir()
        (root / "notes" / "cache" / "pipe").symlink_to("nowhere")

        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")
        assert len(setup.prompts) == 1


async def test_files_that_a_program_adds_in_place_need_no_further_consent(root: Path, data: Path) -> None:
    await add_files_in_place(root, data)

    async with consent_setup(root, data, None) as setup:
        extension = await setup.evaluate_and_approve(find_in_place(setup))

        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")
        assert extension.gate.grants.allow == {"memory.read"}


@pytest.mark.parametrize(
    ("change_file", "changed", "removed"),
    [
        (lambda path: path.write_text("lib = 2\n", encoding="utf-8"), ("lib.py",), ()),
        (lambda path: path.chmod(0o755), ("lib.py",), ()),
        (lambda path: path.unlink(), (), ("lib.py",)),
    ],
    ids=["content", "mode", "removed"],
)
async def test_approved_files_that_change_in_place_need_consent(
    root: Path,
    data: Path,
    change_file: Callable[[Path], object],
    changed: tuple[str, ...],
    removed: tuple[str, ...],
) -> None:
    await add_files_in_place(root, data)
    change_file(root / "notes" / "lib.py")

    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve(find_in_place(setup))

        [request] = setup.requests
        assert request.changes is not None
        assert request.changes.changed_files == changed
        assert request.changes.removed_files == removed
        assert request.changes.added_files == ("cache/pipe", "state.json")
    async with consent_setup(root, data, None) as setup:
        await setup.evaluate_and_approve(find_in_place(setup))  # the added files are approved too
    (root / "notes" / "state.json").write_text("[]", encoding="utf-8")
    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve(find_in_place(setup))
        assert len(setup.prompts) == 1


@pytest.mark.parametrize("names", [["becket.toml", "main.py"], []], ids=["shortened", "emptied"])
async def test_a_list_of_approved_files_that_was_shortened_hides_no_change(
    root: Path, data: Path, names: list[str]
) -> None:
    await add_files_in_place(root, data)
    (root / "notes" / "lib.py").write_text("evil = 1\n", encoding="utf-8")
    path = data / "approvals" / "notes.json"
    approval = msgspec.json.decode(path.read_bytes())
    approval["files"] = {name: approval["files"][name] for name in names}
    path.write_bytes(msgspec.json.encode(approval))

    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve(find_in_place(setup))
        assert len(setup.prompts) == 1


async def test_files_that_are_added_to_an_extension_that_runs_from_a_copy_need_consent(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve()
    (root / "notes" / "state.json").write_text("{}", encoding="utf-8")

    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve()
        assert len(setup.prompts) == 1


async def test_a_copy_of_the_host_that_was_changed_is_made_anew_before_the_next_start(root: Path, data: Path) -> None:
    write_extension(root / "notes", "notes", 'dialect = "nexo"\n')
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        [copy] = (data / "copies").iterdir()
        (copy / "main.py").chmod(0o600)
        (copy / "main.py").write_text("print('evil')\n", encoding="utf-8")

        spec = await setup.controller.resolve_launch(extension)

        assert (Path(spec.folder) / "main.py").read_text(encoding="utf-8") == "print()\n"
        assert len(setup.prompts) == 1
        release(spec)


async def test_a_start_whose_working_copy_cannot_be_made_fails_with_the_path(root: Path, data: Path) -> None:
    write_extension(root / "notes", "notes", 'dialect = "nexo"\n')
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        (data / "working").touch()

        with pytest.raises(StartFailed) as failed:
            await setup.controller.resolve_launch(extension)
        assert str(data / "working") in str(failed.value)


async def test_working_copies_without_an_approval_are_removed(root: Path, data: Path) -> None:
    write_extension(root / "notes", "notes", 'dialect = "nexo"\n')
    async with consent_setup(root, data) as setup:
        release(await setup.controller.resolve_launch(await setup.evaluate_and_approve()))
        setup.controller.remove_unused_snapshots()
        assert os.listdir(data / "working") == ["notes"]
    edit_grants(data / "grants.toml", "notes", lambda _: None)
    async with consent_setup(root, data) as setup:
        setup.controller.remove_unused_snapshots()
        assert os.listdir(data / "working") == []


# -- without a copy


async def test_without_a_directory_for_copies_a_change_needs_consent_before_the_next_start(root: Path) -> None:
    async with consent_setup(root, None) as setup:
        extension = await setup.evaluate_and_approve()
        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")
        change(root)

        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")

        assert len(setup.prompts) == 2
        assert "changed" in setup.prompts[1]
        await setup.controller.resolve_launch(extension)
        assert len(setup.prompts) == 2


async def test_without_a_copy_a_change_without_consent_is_refused(root: Path) -> None:
    responses = iter([True, False])
    async with consent_setup(root, None, lambda prompt: next(responses)) as setup:
        extension = await setup.evaluate_and_approve()
        change(root)

        with pytest.raises(ExtensionRefused) as refused:
            await setup.controller.resolve_launch(extension)

        assert "consent was refused" in refused.value.because
        change(root, "print()\n")
        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")


async def test_without_a_copy_a_folder_that_cannot_be_read_any_more_is_refused(root: Path) -> None:
    async with consent_setup(root, None) as setup:
        extension = await setup.evaluate_and_approve()
        (root / "notes").rename(root / "gone")

        with pytest.raises(ExtensionRefused) as refused:
            await setup.controller.resolve_launch(extension)

        assert str(root / "notes") in refused.value.because


async def test_an_extension_in_a_shared_folder_is_compared_with_its_digest_before_each_start(
    root: Path, data: Path
) -> None:
    async with consent_setup(root, data) as setup:
        shared = replace(setup.find(), files=(str(root / "notes" / "main.py"),), is_listed=True)
        extension = await setup.evaluate_and_approve(shared)
        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")
        change(root)
        assert not (data / "copies").exists()

        await setup.controller.resolve_launch(extension)

        assert len(setup.prompts) == 2


def add_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def add_way_out(folder: Path) -> None:
    (folder / "out").symlink_to("..")


def add_way_back(folder: Path) -> None:
    (folder / "back").symlink_to(folder / "main.py")


SPOILED = pytest.mark.parametrize("spoil", [add_pipe, add_way_out, add_way_back])


@SPOILED
async def test_a_folder_that_cannot_be_copied_is_refused_before_the_prompt(
    root: Path, data: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(root / "notes")
    async with consent_setup(root, data) as setup:
        with pytest.raises(ExtensionRefused) as refused:
            await setup.controller.evaluate(setup.find())

        assert "cannot be copied" in refused.value.because
        assert "in_place = true" in refused.value.hint
        assert setup.prompts == []


@SPOILED
async def test_the_operator_may_let_a_folder_run_in_place_which_is_compared_before_each_start(
    root: Path, data: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(root / "notes")
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve(replace(setup.find(), operator=OperatorSettings(in_place=True)))

        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")
        assert not (data / "copies").exists()
        change(root)
        with pytest.raises(ExtensionRefused):  # it is found again without the operator's setting
            await setup.controller.resolve_launch(extension)


@SPOILED
async def test_a_folder_of_which_no_copy_is_made_need_not_be_copyable(
    root: Path, data: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(root / "notes")
    async with consent_setup(root, None) as setup:
        assert (await setup.controller.resolve_launch(await setup.evaluate_and_approve())).folder == str(root / "notes")
    async with consent_setup(root, data, None, host_grants={"notes": Grants.of(["memory.read"])}) as setup:
        assert (await setup.controller.resolve_launch(await setup.evaluate_and_approve())).folder == str(root / "notes")


async def test_a_copy_that_cannot_be_written_is_a_refusal(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        (data / "copies").touch()

        with pytest.raises(ExtensionRefused) as refused:
            await setup.evaluate_and_approve()

        assert str(data / "copies") in refused.value.because


async def test_grants_of_the_host_program_hold_for_any_files(root: Path, data: Path) -> None:
    async with consent_setup(root, data, None, host_grants={"notes": Grants.of(["memory.read"])}) as setup:
        extension = await setup.evaluate_and_approve()
        change(root)

        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")
        assert not (data / "copies").exists()


# -- development


async def test_in_development_changed_files_start_and_the_audit_records_it(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve()
        approved = load_grants(data / "grants.toml")["notes"].digest
    async with consent_setup(root, data, None, in_development=True) as setup:
        extension = await setup.evaluate_and_approve()
        assert (await setup.controller.resolve_launch(extension)).folder == str(root / "notes")
        assert setup.audit == []
        change(root)

        await setup.controller.resolve_launch(extension)

        assert setup.audit == [FilesChanged("notes", approved, digest_folder(root / "notes").digest)]
        assert load_grants(data / "grants.toml")["notes"].digest == approved


# -- prompts


async def test_consent_is_recorded_and_reported_with_its_source(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.controller.evaluate(setup.find())
        assert extension.needs_consent
        assert not extension.gate.allows("memory.read")

        await setup.controller.approve_start(extension)

        assert not extension.needs_consent
        assert extension.gate.allows("memory.read")
        assert setup.audit == [GrantChanged("notes", "memory.read", True, "answer")]
        assert setup.events_seen == [PermissionGranted("notes", "memory.read", "answer")]


@pytest.mark.parametrize("asks_async", [False, True])
async def test_consent_counts_from_plain_and_async_callbacks(root: Path, data: Path, asks_async: bool) -> None:
    async with consent_setup(root, data, lambda prompt: True, asks_async=asks_async) as setup:
        assert (await setup.evaluate_and_approve()).gate.allows("memory.read")


@pytest.mark.parametrize("asks_async", [False, True])
@pytest.mark.parametrize("answer", [False, None, "yes", 1])
async def test_any_value_but_true_is_a_refusal(root: Path, data: Path, answer: Any, asks_async: bool) -> None:
    async with consent_setup(root, data, lambda prompt: answer, asks_async=asks_async) as setup:
        extension = await setup.controller.evaluate(setup.find())
        with pytest.raises(ExtensionRefused):
            await setup.controller.approve_start(extension)
        assert extension.needs_consent
        assert not extension.gate.allows("memory.read")


# -- refusals


@pytest.mark.parametrize("has_data", [True, False])
async def test_a_refusal_holds_until_the_files_change(root: Path, tmp_path: Path, has_data: bool) -> None:
    data = tmp_path / "data"
    async with consent_setup(root, data if has_data else None, lambda prompt: False) as setup:
        with pytest.raises(ExtensionRefused) as refused:
            await setup.evaluate_and_approve()
        with pytest.raises(ExtensionRefused) as again:
            await setup.evaluate_and_approve()
        assert len(setup.prompts) == 1
        assert str(again.value) == str(refused.value)
        assert "becket grant notes" in refused.value.hint

        change(root)
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()
        assert len(setup.prompts) == 2
    if has_data:
        async with consent_setup(root, data) as setup:
            with pytest.raises(ExtensionRefused):
                await setup.evaluate_and_approve()
            assert setup.prompts == []


async def test_a_refusal_holds_until_other_variables_are_requested(root: Path, data: Path) -> None:
    def with_variable(candidate: Candidate, value: str) -> Candidate:
        return replace(candidate, manifest=replace(candidate.manifest, environment=Environment(set={"A": value})))

    async with consent_setup(root, data, lambda prompt: False) as setup:
        for value, prompts in (("1", 1), ("1", 1), ("2", 2)):
            with pytest.raises(ExtensionRefused):
                await setup.evaluate_and_approve(with_variable(setup.find(), value))
            assert len(setup.prompts) == prompts


async def test_a_refused_extension_without_requests_does_not_start_without_a_prompt(tmp_path: Path, data: Path) -> None:
    write_extension(tmp_path / "root" / "notes", "notes")
    async with consent_setup(tmp_path / "root", data, lambda prompt: False) as setup:
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()

    async with consent_setup(tmp_path / "root", data, None) as setup:
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()


async def test_a_refusal_is_audited_and_so_is_its_end(root: Path, data: Path) -> None:
    async with consent_setup(root, data, lambda prompt: False) as setup:
        extension = await setup.controller.evaluate(setup.find())
        with pytest.raises(ExtensionRefused):
            await setup.controller.approve_start(extension)
        digest = digest_folder(root / "notes").digest
        assert setup.audit == [ConsentRefused("notes", "answer", digest, ("memory.read",))]

        await setup.controller.approve("notes")

        assert setup.audit[1:] == [ConsentRefused("notes", "host", withdrawn=True)]
        assert await setup.controller.recheck(extension)


async def test_a_grant_by_another_program_ends_a_refusal(root: Path, data: Path) -> None:
    async with consent_setup(root, data, lambda prompt: False) as setup:
        extension = await setup.controller.evaluate(setup.find())
        with pytest.raises(ExtensionRefused):
            await setup.controller.approve_start(extension)

        edit_grants(data / "grants.toml", "notes", lambda entry: entry.with_grants(["memory.read"]))
        await setup.controller.apply_grant_changes()

        assert await setup.controller.recheck(extension)


async def test_a_refusal_of_changed_files_leaves_the_earlier_approval(root: Path, data: Path) -> None:
    responses = iter([True, False])
    async with consent_setup(root, data, lambda prompt: next(responses)) as setup:
        await setup.evaluate_and_approve()
        change(root)
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()

        change(root, "print()\n")
        extension = await setup.evaluate_and_approve()

        assert extension.gate.allows("memory.read")
        assert len(setup.prompts) == 2


async def test_timeouts_and_failures_are_not_stored_as_refusals(root: Path, data: Path) -> None:
    def fail(prompt: str) -> bool:
        raise RuntimeError("no terminal")

    async with consent_setup(root, data, fail) as setup:
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()
    async with consent_setup(root, data) as setup:
        assert (await setup.evaluate_and_approve()).gate.allows("memory.read")


async def test_a_refusal_that_cannot_be_stored_is_reported_and_prompted_for_again(root: Path, data: Path) -> None:
    async with consent_setup(root, data, lambda prompt: False) as setup:
        (data / "grants.toml").mkdir()
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()
        assert ["grants.toml" in one.problem for one in setup.diagnostics] == [True]
        (data / "grants.toml").rmdir()
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()
        assert len(setup.prompts) == 2


# -- the text of a prompt


async def test_the_callback_gets_the_request_as_fields(tmp_path: Path, data: Path) -> None:
    more = f'{BOTH}environment = {{ pass = ["EDITOR"], set = {{ MODE = "calm" }} }}\n'
    folder = write_extension(tmp_path / "root" / "notes", "notes", more)
    async with consent_setup(tmp_path / "root", data) as setup:
        await setup.evaluate_and_approve()

    (request,) = setup.requests
    assert (request.extension, request.version, request.is_start) == ("notes", "1.0.0", True)
    assert request.command == (shutil.which("python3"), str(folder / "main.py"))
    assert request.working_directory == str(folder)
    assert request.permissions == ("memory.read", "memory.write")
    assert (request.variables.passed, request.variables.set) == (("EDITOR",), {"MODE": "calm"})
    assert request.digest == digest_folder(folder).digest
    assert request.changes is None
    assert describe_request(request) == setup.prompts[0]


@pytest.mark.parametrize("has_data", [True, False])
async def test_changes_since_the_last_consent_are_fields_and_lines_of_the_prompt(
    tmp_path: Path, has_data: bool
) -> None:
    root = tmp_path / "root"
    setting = 'environment = {{ set = {{ MODE = "{}", NOTES_TOKEN = "{}", PLACE = "db://me:{}@x", {} = "1" }} }}\n'
    folder = write_extension(root / "notes", "notes", READING + setting.format("calm", "canary", "canary", "OLD"))
    (folder / "gone.py").touch()
    async with consent_setup(root, tmp_path / "data" if has_data else None) as setup:
        await setup.evaluate_and_approve()
        write_extension(folder, "notes", BOTH + setting.format("wild", "canary2", "canary2", "NEW"))
        manifest = folder / "becket.toml"
        events_seen = manifest.read_text(encoding="utf-8").replace('"main.py"', '"main.py", "--fast"')
        manifest.write_text(events_seen, encoding="utf-8")
        (folder / "gone.py").unlink()
        (folder / "\x1b[2J.py").touch()
        await setup.evaluate_and_approve()

    changes = setup.requests[1].changes
    assert changes is not None
    assert (changes.added_files, changes.changed_files) == (("\\x1b[2J.py",), ("becket.toml",))
    assert changes.removed_files == ("gone.py",)
    assert changes.command == setup.requests[0].command
    assert changes.working_directory is None
    assert changes.added_permissions == ("memory.write",)
    assert changes.variables.keys() == {"MODE", "NEW", "NOTES_TOKEN", "PLACE"}
    assert (changes.variables["MODE"], changes.variables["NEW"]) == ("calm", None)
    assert changes.removed_variables == ("OLD",)
    python = shutil.which("python3")
    assert [line for line in setup.prompts[1].splitlines() if line.startswith("since")] == [
        "since the last consent its files have changed: becket.toml (changed), \\x1b[2J.py (new), gone.py (removed)",
        f"since the last consent its command has changed, from: {python} {folder}/main.py",
        "since the last consent it requests more permissions: memory.write",
        "since the last consent it sets other variables: "
        "MODE (it was calm), NEW (new), NOTES_TOKEN (another value), PLACE (another value), OLD (no longer set)",
    ]
    if has_data:
        persistence = (tmp_path / "data" / "approvals" / "notes.json").read_bytes()
        assert b"canary" not in persistence


async def test_of_an_approval_without_a_copy_only_the_digest_is_known(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        await setup.evaluate_and_approve()
        (data / "approvals" / "notes.json").write_text("{", encoding="utf-8")
        change(root)
        await setup.evaluate_and_approve()

    assert setup.requests[1].changes == ConsentChanges(is_known=False)
    assert "its files have changed since they were approved" in setup.prompts[1].splitlines()


async def test_a_prompt_that_fails_is_a_refusal_and_reported(root: Path, data: Path) -> None:
    def fail(prompt: str) -> bool:
        raise RuntimeError("no terminal")

    async with consent_setup(root, data, fail) as setup:
        with pytest.raises(ExtensionRefused):
            await setup.evaluate_and_approve()
        assert ["no terminal" in one.problem for one in setup.diagnostics] == [True]


async def test_no_decision_in_time_is_a_refusal(root: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent, "CONSENT_TIMEOUT", 0.05)
    end = threading.Event()
    async with consent_setup(root, data, lambda prompt: end.wait()) as setup:
        try:
            with pytest.raises(ExtensionRefused):
                await setup.evaluate_and_approve()
        finally:
            end.set()


async def test_files_that_change_during_the_prompt_are_prompted_for_again(root: Path, data: Path) -> None:
    def answer(prompt: str) -> bool:
        change(root)
        return True

    async with consent_setup(root, data, answer) as setup:
        spec = await setup.controller.resolve_launch(await setup.evaluate_and_approve())
        assert len(setup.prompts) == 2
        assert (Path(spec.folder) / "main.py").read_text(encoding="utf-8") == "print('changed')\n"


async def test_files_that_change_during_every_check_are_refused(root: Path, data: Path) -> None:
    edits: list[str] = []

    def edit(prompt: str = "") -> bool:
        edits.append("#\n")
        change(root, "".join(edits))
        return True

    async with consent_setup(root, data, edit, on_find=edit) as setup:
        with pytest.raises(ExtensionRefused) as refused:
            await setup.evaluate_and_approve()
        assert "keep changing" in refused.value.because
        assert len(setup.prompts) == 3


async def test_a_permission_that_is_denied_during_the_prompt_stays_denied(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "root"
    write_extension(root / "notes", "notes", BOTH)

    def answer(prompt: str) -> bool:
        edit_grants(data / "grants.toml", "notes", lambda entry: entry.with_denials(["memory.write"]))
        return True

    async with consent_setup(root, data, answer) as setup:
        extension = await setup.evaluate_and_approve()
        assert extension.gate.allows("memory.read")
        assert not extension.gate.allows("memory.write")
        assert load_grants(data / "grants.toml")["notes"].deny == ("memory.write",)


async def test_consent_that_cannot_be_stored_is_a_refusal(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        (data / "grants.toml").mkdir()
        with pytest.raises(ExtensionRefused) as refused:
            await setup.evaluate_and_approve()
        assert "grants.toml" in refused.value.because


async def test_a_grant_without_a_digest_is_bound_to_the_present_files(root: Path, data: Path) -> None:
    edit_grants(data / "grants.toml", "notes", lambda entry: entry.with_grants(["memory.read"]))
    async with consent_setup(root, data, None) as setup:
        spec = await setup.controller.resolve_launch(await setup.evaluate_and_approve())
        assert Path(spec.folder).parent == data / "copies"
    assert load_grants(data / "grants.toml")["notes"].digest == digest_folder(root / "notes").digest


async def test_an_extension_without_a_decision_is_prompted_for_when_it_is_started(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.controller.evaluate(setup.find())
        assert Path((await setup.controller.resolve_launch(extension)).folder).parent == data / "copies"
        assert len(setup.prompts) == 1


# -- again


async def test_changed_files_that_are_approved_are_started_next(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        old = await setup.controller.resolve_launch(extension)
        write_extension(root / "notes", "notes", BOTH)

        candidate = await setup.controller.approve_reload(extension)

        assert candidate.manifest.permissions == ("memory.read", "memory.write")
        assert not extension.gate.allows("memory.write")  # the old copy still runs
        new = await setup.controller.resolve_launch(extension)
        assert new.folder != old.folder
        assert extension.gate.allows("memory.write")


async def test_permissions_that_changed_files_no_longer_request_are_revoked(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "root"
    write_extension(root / "notes", "notes", BOTH)
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        write_extension(root / "notes", "notes", READING)
        await setup.controller.approve_reload(extension)
        await setup.controller.resolve_launch(extension)
        assert not extension.gate.allows("memory.write")
        assert setup.events_seen[-1] == PermissionRevoked("notes", "memory.write", "answer")


async def test_changed_files_without_consent_change_nothing(root: Path, data: Path) -> None:
    responses = iter([True, False])
    async with consent_setup(root, data, lambda prompt: next(responses)) as setup:
        extension = await setup.evaluate_and_approve()
        old = await setup.controller.resolve_launch(extension)
        change(root)

        with pytest.raises(ExtensionRefused):
            await setup.controller.approve_reload(extension)

        assert await setup.controller.resolve_launch(extension) == old
        assert extension.gate.allows("memory.read")


async def test_an_extension_that_is_no_longer_found_is_refused_and_its_copy_stays(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        (root / "notes" / "becket.toml").unlink()

        with pytest.raises(ExtensionRefused):
            await setup.controller.approve_reload(extension)

        assert (Path((await setup.controller.resolve_launch(extension)).folder) / "becket.toml").exists()


async def test_the_number_of_prompts_about_changing_files_is_bounded(root: Path, data: Path) -> None:
    responses = iter([True])
    async with consent_setup(root, data, lambda prompt: next(responses, False)) as setup:
        extension = await setup.evaluate_and_approve()
        for number in range(MAX_PROMPTS + 5):
            change(root, f"print({number})\n")
            with pytest.raises(ExtensionRefused):
                await setup.controller.approve_reload(extension)
        assert len(setup.prompts) == MAX_PROMPTS


# -- changes by another program


def deny(data: Path, *names: str) -> None:
    edit_grants(data / "grants.toml", "notes", lambda entry: entry.with_denials(names))


def allow(data: Path, *names: str, digest: str = "") -> None:
    edit_grants(data / "grants.toml", "notes", lambda entry: entry.with_grants(names, digest))


async def test_grants_and_revocations_of_another_program_take_effect(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "root"
    write_extension(root / "notes", "notes", BOTH)
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        taken: list[str] = []
        extension.gate.subscribe(taken.append)
        assert await setup.controller.apply_grant_changes() == {}  # what it has written itself is no news
        assert not setup.persistence.has_grant_changes()
        deny(data, "memory.write")
        assert setup.persistence.has_grant_changes()

        assert await setup.controller.apply_grant_changes() == {"notes": False}

        assert not extension.gate.allows("memory.write")
        assert taken == ["memory.write"]
        assert setup.events_seen[-1] == PermissionRevoked("notes", "memory.write", "grants.toml")
        assert setup.audit[-1] == GrantChanged("notes", "memory.write", False, "grants.toml")
        assert not setup.persistence.has_grant_changes()
        allow(data, "memory.write", "audio.input")
        await setup.controller.apply_grant_changes()
        assert extension.gate.allows("memory.write")
        assert not extension.gate.allows("audio.input")  # which it does not request
        assert setup.events_seen[-1] == PermissionGranted("notes", "memory.write", "grants.toml")


async def test_after_all_approvals_are_removed_only_the_grants_of_the_host_are_left(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "root"
    write_extension(root / "notes", "notes", BOTH)
    allow(data, "memory.write")
    async with consent_setup(root, data, None, host_grants={"notes": Grants.of(["memory.read"])}) as setup:
        extension = await setup.evaluate_and_approve()
        assert extension.gate.allows("memory.write")
        edit_grants(data / "grants.toml", "notes", lambda _: None)
        await setup.controller.apply_grant_changes()
        assert not extension.gate.allows("memory.write")
        assert extension.gate.allows("memory.read")


async def test_a_grant_for_other_files_does_not_apply_to_the_running_ones_and_revokes_nothing(
    tmp_path: Path, data: Path
) -> None:
    root = tmp_path / "root"
    write_extension(root / "notes", "notes", BOTH)
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        await setup.controller.revoke("notes", ["memory.write"])
        change(root)
        allow(data, "memory.write", digest=digest_folder(root / "notes").digest)

        assert await setup.controller.apply_grant_changes() == {"notes": True}

        assert extension.gate.allows("memory.read")
        assert not extension.gate.allows("memory.write")
        deny(data, "memory.read")
        assert await setup.controller.apply_grant_changes() == {"notes": True}
        assert not extension.gate.allows("memory.read")


async def test_a_revocation_just_before_the_host_itself_writes_is_not_missed(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "root"
    write_extension(root / "notes", "notes", BOTH)
    allow(data, "memory.read")
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        deny(data, "memory.read")
        await setup.controller.grant("notes", ["memory.write"])

        assert await setup.controller.apply_grant_changes() == {"notes": False}

        assert not extension.gate.allows("memory.read")
        assert extension.gate.allows("memory.write")


async def test_a_decision_that_was_made_at_run_time_holds(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "root"
    write_extension(root / "notes", "notes", BOTH)
    allow(data, "memory.read")
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        assert extension.gate.begin_prompt("memory.write")
        extension.gate.resolve_prompt("memory.write", True)
        deny(data, "memory.read")
        await setup.controller.apply_grant_changes()
        assert extension.gate.allows("memory.write")


async def test_grants_that_cannot_be_read_change_nothing(root: Path, data: Path) -> None:
    async with consent_setup(root, data) as setup:
        extension = await setup.evaluate_and_approve()
        (data / "grants.toml").write_text("[notes", encoding="utf-8")
        assert setup.persistence.has_grant_changes()
        with pytest.raises(BadFile):
            await setup.controller.apply_grant_changes()
        assert extension.gate.allows("memory.read")
        assert not setup.persistence.has_grant_changes()


async def test_entries_about_missing_or_unapproved_extensions_are_reported(root: Path, data: Path) -> None:
    async with consent_setup(root, data, None) as setup:
        extension = await setup.controller.evaluate(setup.find())
        assert not await setup.controller.recheck(extension)
        allow(data, "memory.read")
        edit_grants(data / "grants.toml", "other", lambda entry: entry.with_grants(["memory.read"]))
        assert await setup.controller.apply_grant_changes() == {"notes": False, "other": False}
        assert not extension.gate.allows("memory.read")
        assert await setup.controller.recheck(extension)
        await setup.controller.approve_start(extension)
        assert extension.gate.allows("memory.read")


async def test_an_extension_that_can_no_longer_start_is_refused_at_the_recheck(root: Path, data: Path) -> None:
    async with consent_setup(root, data, None) as setup:
        extension = await setup.controller.evaluate(setup.find())
        write_extension(root / "notes", "notes", 'permissions = ["no.such"]\n')
        with pytest.raises(ExtensionRefused):
            await setup.controller.recheck(extension)
