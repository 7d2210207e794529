"""`fusionlint server`: what an editor gets to see, spoken over pipes as editors speak."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fusionlint.compiling import alone
from fusionlint.rule import pages
from fusionlint.serving.checks import Checked, checked, fixed

types = pytest.importorskip("lsprotocol.types")
client_module = pytest.importorskip("pygls.lsp.client")

LARGEST = "import jax.numpy as jnp\n\n\ndef largest(x):\n    return jnp.sort(x)[-1]\n"
# A character of two units of UTF-16 stands before the finding.
WIDE = "import jax.numpy as jnp\n\n\ndef f(x):\n    return '😀', jnp.sort(x)[-1]\n"
SECONDS = 60.0


class Editor:
    """An editor with files open in a folder, which notes what it is told of each."""

    def __init__(self, client: Any, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.told: asyncio.Queue[Any] = asyncio.Queue()
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.told.put_nowait(params))
        client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.put_nowait(params.message))

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def opens(self, name: str, text: str) -> None:
        document = types.TextDocumentItem(self.uri(name), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def types_in(self, name: str, text: str, version: int = 2) -> None:
        document = types.VersionedTextDocumentIdentifier(version=version, uri=self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def saves(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        document = types.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(document))

    async def sees(self) -> Any:
        """The next list of diagnostics."""
        return await asyncio.wait_for(self.told.get(), SECONDS)

    async def actions(self, name: str, line: int, only: list[str] | None = None) -> Any:
        place = types.Range(types.Position(line, 18), types.Position(line, 18))
        context = types.CodeActionContext([], only=only)
        document = types.TextDocumentIdentifier(self.uri(name))
        return await self.client.text_document_code_action_async(types.CodeActionParams(document, place, context))


@asynccontextmanager
async def editor(folder: Path) -> AsyncIterator[Editor]:
    client = client_module.LanguageClient("editor", "1")
    seen = Editor(client, folder)
    await client.start_io(sys.executable, "-m", "fusionlint", "server", cwd=str(folder))
    await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    yield seen
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


def run(folder: Path, scene: Callable[[Editor], Awaitable[None]]) -> None:
    async def played() -> None:
        async with editor(folder) as seen:
            await scene(seen)

    asyncio.run(played())


def test_a_file_is_checked_when_it_is_opened_and_when_it_changes(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", LARGEST)
        told = await seen.sees()
        (found,) = told.diagnostics
        assert (told.uri, told.version) == (seen.uri("env.py"), 1)
        assert (found.code, found.source, found.severity) == ("sort-for-max", "fusionlint", 3)
        assert (found.range.start, found.range.end) == (types.Position(4, 11), types.Position(4, 26))
        message, measured, advice = found.message.splitlines()
        assert message == "everything is sorted, and only the largest is read"
        assert measured.startswith("measured on the rule's page: ")
        assert advice == "write: jnp.max(x)"
        seen.types_in("env.py", LARGEST.replace("jnp.sort(x)[-1]", "jnp.max(x)"))
        assert not (await seen.sees()).diagnostics

    run(tmp_path, scene)


def test_columns_are_counted_as_the_editor_counts(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", WIDE)
        (found,) = (await seen.sees()).diagnostics
        line = WIDE.splitlines()[4].encode("utf-16-le")
        assert line[2 * found.range.start.character : 2 * found.range.end.character].decode("utf-16-le") == (
            "jnp.sort(x)[-1]"
        )
        fix, _ = await seen.actions("env.py", 4)
        ((edit,),) = fix.edit.changes.values()
        assert edit.range == found.range

    run(tmp_path, scene)


def test_a_text_is_read_in_the_encoding_that_it_names(tmp_path: Path) -> None:
    text = "# coding: latin-1\nimport jax.numpy as jnp\n\n\ndef f(x):\n    s = 'éé'; return s, jnp.searchsorted(x, x)\n"

    async def scene(seen: Editor) -> None:
        seen.opens("env.py", text)
        (found,) = (await seen.sees()).diagnostics
        line = text.splitlines()[5]
        assert line[found.range.start.character : found.range.end.character] == "jnp.searchsorted(x, x)"
        (action,) = await seen.actions("env.py", 5, only=["source.fixAll"])
        ((edit,),) = action.edit.changes.values()
        assert edit.new_text == text.replace("(x, x)", "(x, x, method='scan_unrolled')")

    run(tmp_path, scene)


@pytest.mark.parametrize("text", [f"s = '\ud83d'\n{LARGEST}", f"# coding: latin-1\ns = '😀'\n{LARGEST}"])
def test_a_text_that_no_file_can_hold_has_no_findings(text: str) -> None:
    assert asyncio.run(checked("env.py", text)) == Checked()
    assert asyncio.run(fixed("env.py", text)) == text


def test_a_fix_and_a_comment_that_silences_are_offered_where_something_was_found(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", LARGEST)
        await seen.sees()
        assert not await seen.actions("env.py", 0)
        fix, silence = await seen.actions("env.py", 4)
        assert fix.title == "write: jnp.max(x) (may change rounding, ties, NaN, dtypes, shapes or random draws)"
        assert (fix.kind, fix.is_preferred) == ("quickfix", False)
        ((edit,),) = fix.edit.changes.values()
        assert edit.new_text == "jnp.max(x)"
        ((edit,),) = silence.edit.changes.values()
        assert edit.new_text == "  # fusionlint: ignore[sort-for-max]"
        lines = LARGEST.splitlines()
        seen.types_in("env.py", "\n".join([*lines[:4], lines[4] + edit.new_text, ""]))
        assert not (await seen.sees()).diagnostics

    run(tmp_path, scene)


def test_right_after_typing_nothing_is_offered_at_the_places_of_the_text_before(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", LARGEST)
        await seen.sees()
        lines = LARGEST.splitlines(keepends=True)
        seen.types_in("env.py", "".join([*lines[:4], "    y = jnp.concatenate([x, x, x])\n", *lines[4:]]))
        assert not await seen.actions("env.py", 4)
        await seen.sees()
        assert await seen.actions("env.py", 5)

    run(tmp_path, scene)


def test_fixes_and_all_of_them_are_both_offered_where_both_are_asked_for(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", LARGEST.replace("jnp.sort(x)[-1]", "jnp.searchsorted(x, x)"))
        await seen.sees()
        found = await seen.actions("env.py", 4, only=["quickfix", "source.fixAll"])
        assert [one.kind for one in found] == ["quickfix", "quickfix", "source.fixAll.fusionlint"]

    run(tmp_path, scene)


def test_all_that_is_safe_is_fixed_where_an_editor_asks_for_it(tmp_path: Path) -> None:
    text = LARGEST.replace("jnp.sort(x)[-1]", "jnp.searchsorted(x, x), jnp.sort(x)[-1]")
    done = subprocess.run(
        [sys.executable, "-m", "fusionlint", "check", "-", "--fix"], input=text, text=True, capture_output=True
    )
    assert done.stdout != text  # one of the two is safe

    async def scene(seen: Editor) -> None:
        seen.opens("env.py", text)
        await seen.sees()
        (action,) = await seen.actions("env.py", 0, only=["source.fixAll"])
        ((edit,),) = action.edit.changes.values()
        assert edit.new_text == done.stdout
        assert not await seen.actions("env.py", 0, only=["refactor"])

    run(tmp_path, scene)


@pytest.mark.parametrize("ends", ["raise ValueError('why')", "print('Traceback', file=sys.stderr); os._exit(2)"])
def test_of_a_check_that_crashes_nothing_is_taken_for_the_fixed_text(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "command", lambda *_: [sys.executable, "-c", f"import os, sys; {ends}"])
    assert asyncio.run(fixed("env.py", LARGEST)) == LARGEST
    found = asyncio.run(checked("env.py", LARGEST))
    assert found.error
    assert not found.findings


def test_what_is_pointed_at_shows_the_page_of_its_rule(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", LARGEST)
        await seen.sees()
        document = types.TextDocumentIdentifier(seen.uri("env.py"))
        hover = seen.client.text_document_hover_async
        shown = await hover(types.HoverParams(document, types.Position(4, 15)))
        assert shown.contents.value == pages()["sort-for-max"].text
        assert await hover(types.HoverParams(document, types.Position(0, 1))) is None

    run(tmp_path, scene)


def test_what_is_typed_during_a_check_is_what_is_told_of(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", LARGEST)
        for version in range(2, 9):
            seen.types_in("env.py", "\n" * version + LARGEST, version)
            await asyncio.sleep(0.05)
        told = await seen.sees()
        while told.version < 8:
            told = await seen.sees()
        (found,) = told.diagnostics
        assert found.range.start.line == 4 + 8
        assert seen.told.empty()

    run(tmp_path, scene)


def test_settings_hold_and_a_mistake_in_them_is_said_once(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        (tmp_path / "pyproject.toml").write_text('[tool.fusionlint]\nignore = ["sort-for-max"]\n')
        seen.opens("env.py", LARGEST)
        assert not (await seen.sees()).diagnostics
        (tmp_path / "pyproject.toml").write_text('[tool.fusionlint]\nignore = ["sort-for-maxx"]\n')
        for version in (2, 3):
            seen.types_in("env.py", LARGEST, version)
            assert not (await seen.sees()).diagnostics
        assert "did you mean 'sort-for-max'?" in seen.messages.get_nowait()
        assert seen.messages.empty()

    run(tmp_path, scene)


def test_what_another_file_says_counts_when_that_is_saved(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "names.py").write_text("import numpy as xp\n")
    text = LARGEST.replace("import jax.numpy as jnp", "from names import xp as jnp")

    async def scene(seen: Editor) -> None:
        seen.opens("env.py", text)
        assert not (await seen.sees()).diagnostics
        seen.saves("names.py", "import jax.numpy as xp\n")
        (found,) = (await seen.sees()).diagnostics
        assert found.code == "sort-for-max"

    run(tmp_path, scene)


def test_a_closed_file_has_no_findings_and_a_text_that_does_not_parse_neither(tmp_path: Path) -> None:
    async def scene(seen: Editor) -> None:
        seen.opens("env.py", LARGEST)
        assert (await seen.sees()).diagnostics
        seen.types_in("env.py", LARGEST + "def (")
        assert not (await seen.sees()).diagnostics
        seen.types_in("env.py", LARGEST, 3)
        assert (await seen.sees()).diagnostics
        document = types.TextDocumentIdentifier(seen.uri("env.py"))
        seen.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        assert not (await seen.sees()).diagnostics
        seen.opens("env.py", LARGEST)
        seen.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        seen.opens("env.py", LARGEST)
        assert not (await seen.sees()).diagnostics  # of the closing
        assert (await seen.sees()).diagnostics

    run(tmp_path, scene)


def test_without_pygls_it_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pygls'] = None; sys.argv = ['fusionlint', 'server']; import fusionlint.cli as c\n"
    )
    program += "import importlib.util as u; find = u.find_spec\n"
    program += "u.find_spec = lambda name, *more: None if name == 'pygls' else find(name, *more)\nc.program()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fusionlint: the server needs pygls: pip install 'fusionlint[server]'\n"
