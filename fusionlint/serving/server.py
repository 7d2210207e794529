"""The language server: an open Python file is checked when it is opened, changed, or any open one is saved."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from importlib.metadata import version

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from fusionlint.rule import pages
from fusionlint.serving.checks import Checked, Told, checked, fixed
from fusionlint.serving.protocol import FIX_ALL, SOURCE, Text, actions, diagnostic, fix_all, overlap

# Seconds without a change before a text is looked at: who types is not told in the middle of a word.
_PAUSE = 0.2


class Server(LanguageServer):
    """What is known of the open files: the text that was checked last and what was found in it, when those are to be
    looked at that changed since, and who does it."""

    def __init__(self) -> None:
        super().__init__(SOURCE, version(SOURCE))
        self._found: dict[str, tuple[str, Sequence[Told]]] = {}
        self._due: dict[str, float] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._free = asyncio.Semaphore(os.cpu_count() or 1)
        self._said = ""

    def check_soon(self, uri: str, pause: float = 0.0) -> None:
        """Has the text checked as it is after the pause, or after a check that is under way: the first one of a large
        project reads all of it, and is not to begin again with every word."""
        self._due[uri] = time.monotonic() + pause
        if uri not in self._under_way:
            self._under_way[uri] = asyncio.create_task(self._check_what_is_due(uri))

    async def _check_what_is_due(self, uri: str) -> None:
        try:
            while uri in self._due:
                while (left := self._due[uri] - time.monotonic()) > 0:
                    await asyncio.sleep(left)
                del self._due[uri]
                async with self._free:
                    document = self.workspace.get_text_document(uri)
                    source = document.source
                    result = await checked(document.path, source)
                if uri not in self._due and source == self.workspace.get_text_document(uri).source:
                    self._publish(uri, source, result)
        finally:
            if self._under_way.get(uri) is asyncio.current_task():  # else it is forgotten, and may be open again
                del self._under_way[uri]

    def _publish(self, uri: str, source: str, result: Checked) -> None:
        document = self.workspace.get_text_document(uri)
        if result.error and result.error != self._said:  # once, not with every word that is typed
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, result.error))
        self._said, self._found[uri] = result.error, (source, result.findings)
        text = self.text(uri)
        diagnostics = [diagnostic(told, text) for told in result.findings]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, document.version))

    def forget(self, uri: str) -> None:
        """Nothing is said of a file any more."""
        self._due.pop(uri, None)
        if (task := self._under_way.pop(uri, None)) is not None:
            task.cancel()
        self._found.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def told(self, uri: str, span: types.Range) -> list[Told]:
        """The findings that have a place in common with a span; none before the text as it is now was checked: an edit
        would be made at a place of another text."""
        text = self.text(uri)
        source, found = self._found.get(uri, ("", ()))
        is_current = source == self.workspace.get_text_document(uri).source
        return [told for told in found if overlap(text.range(told), span)] if is_current else []

    def text(self, uri: str) -> Text:
        """The text of an open file, as it is now."""
        document = self.workspace.get_text_document(uri)
        return Text(document.source, document.position_codec)


async def _opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    ls.check_soon(params.text_document.uri)


async def _changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    ls.check_soon(params.text_document.uri, _PAUSE)


async def _saved(ls: Server, _: types.DidSaveTextDocumentParams) -> None:
    for uri in ls.workspace.text_documents:  # what a file means may hang on another one
        ls.check_soon(uri)


async def _closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    ls.forget(params.text_document.uri)


async def _page(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """The page of the rule that found something there."""
    uri, here = params.text_document.uri, types.Range(params.position, params.position)
    told = next(iter(ls.told(uri, here)), None)
    page = pages().get(told["rule"]) if told is not None else None
    if told is None or page is None:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page.text), ls.text(uri).range(told))


async def _actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri, wanted = params.text_document.uri, params.context.only
    found: list[types.CodeAction] = []
    if wanted is None or _is_wanted("quickfix", wanted):
        text = ls.text(uri)
        found += [action for told in ls.told(uri, params.range) for action in actions(told, text, uri)]
    if wanted is not None and _is_wanted(FIX_ALL, wanted):
        before = ls.text(uri)
        document = ls.workspace.get_text_document(uri)
        source = document.source
        after = await fixed(document.path, source)
        if ls.workspace.get_text_document(uri).source != source:
            return []  # of what was typed meanwhile
        found += [fix_all(before, after, uri)] if after != source else []
    return found


def _is_wanted(kind: str, wanted: Sequence[types.CodeActionKind | str]) -> bool:
    """Whether a kind of action, or one that it is a kind of, is asked for: "source" asks for "source.fixAll"."""
    return any(f"{kind}.".startswith(f"{getattr(one, 'value', one)}.") for one in wanted)


def server() -> Server:
    """A server that does what editors ask for; `start_io` has it speak on stdin and stdout."""
    made = Server()
    made.feature(types.TEXT_DOCUMENT_DID_OPEN)(_opened)
    made.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_changed)
    made.feature(types.TEXT_DOCUMENT_DID_SAVE)(_saved)
    made.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_closed)
    made.feature(types.TEXT_DOCUMENT_HOVER)(_page)
    kinds: list[types.CodeActionKind | str] = [types.CodeActionKind.QuickFix, FIX_ALL]
    made.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))(_actions)
    return made
