"""The language server: completions, hovers, diagnostics and quick fixes for citations, over standard input and output.

The library is opened once, after the editor's first message; until then, and without a library, answers are empty.
Documents are checked without a model while they are typed; a model is called only on command, within a budget.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from ..api import checking, library_papers, messages, results
from ..api.citing import ReadText, anearest_words, aread_text, asuggest_citations, sentence_at
from ..errors import CiteloomError
from .checked_texts import (
    CheckedText,
    check_document,
    code_actions,
    diagnostics,
    keep_verdicts,
    paper_of,
    soften_edit,
    symbols,
)
from .manuscript_documents import (
    CitedKey,
    ManuscriptDocument,
    ManuscriptWorkspace,
    cited_at,
    cited_keys,
    entry_span,
    open_citation,
    open_document,
)

if TYPE_CHECKING:
    from ..api.homes import Session

_TRIGGERS: Final = ["{", ",", "@", ":", "<"]
_OFFERED: Final = 5
_OFFERED_BY_PREFIX: Final = 10
_FIRST_DELAY: Final = 0.4  # seconds after an edit
_SECOND_DELAY: Final = 1.6
_LARGE: Final = 300_000  # characters, beyond which only a check on command searches for each sentence
_MAX_CALLS: Final = 20  # model requests of one check on command, unless the editor sets `maxCalls`
_CHEAP: Final[tuple[checking.CheckPart, ...]] = ("references",)
_TYPED: Final[tuple[checking.CheckPart, ...]] = ("references", "numbers")
_EVERYTHING: Final[tuple[checking.CheckPart, ...]] = ("references", "numbers", "claims", "uncited")

OpenSession = Callable[[], "AbstractContextManager[Session]"]


class CitationServer(LanguageServer):
    """The server of one editor; with `in_folder`, `open_session` is called in the editor's workspace folder."""

    def __init__(self, open_session: OpenSession, *, in_folder: bool) -> None:
        super().__init__(messages.NAME, version(messages.NAME))
        self._open_session, self._in_folder = open_session, in_folder
        self._stack = ExitStack()
        self._opening: asyncio.Task[Session | None] | None = None
        self._said = ""
        self._max_calls, self._judge_on_save = _MAX_CALLS, False
        self._checked: dict[str, CheckedText] = {}
        self._checks: dict[str, asyncio.Task[None]] = {}
        completion = lsp.CompletionOptions(trigger_characters=_TRIGGERS)
        actions = lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix])
        features: list[tuple[str, Callable[..., Any], Any]] = [
            (lsp.INITIALIZE, self._initialize, None),
            (lsp.INITIALIZED, self._initialized, None),
            (lsp.SHUTDOWN, self._close, None),
            (lsp.TEXT_DOCUMENT_DID_OPEN, self._opened, None),
            (lsp.TEXT_DOCUMENT_DID_CHANGE, self._changed, None),
            (lsp.TEXT_DOCUMENT_DID_SAVE, self._saved, None),
            (lsp.TEXT_DOCUMENT_DID_CLOSE, self._closed, None),
            (lsp.TEXT_DOCUMENT_COMPLETION, self._completion, completion),
            (lsp.TEXT_DOCUMENT_HOVER, self._hover, None),
            (lsp.TEXT_DOCUMENT_DEFINITION, self._definition, None),
            (lsp.TEXT_DOCUMENT_CODE_ACTION, self._code_actions, actions),
            (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, self._symbols, None),
            (lsp.TEXT_DOCUMENT_PREPARE_RENAME, self._prepare_rename, None),
            (lsp.TEXT_DOCUMENT_RENAME, self._rename, lsp.RenameOptions(prepare_provider=True)),
        ]
        for name, handle, options in features:
            is_async = asyncio.iscoroutinefunction(handle)
            self.feature(name, options)(partial(self._report_errors, handle) if is_async else partial(handle))

        def add_command(name: str, carry_out: Callable[..., Awaitable[Any]]) -> None:
            @self.command(f"citeloom.{name}")
            async def _(*arguments: Any) -> Any:  # pygls reads the types of its parameters
                return await self._report_errors(carry_out, *arguments)

        add_command("check", self._check_command)
        add_command("showPassage", self._show_passage)
        add_command("soften", self._soften)

    async def _report_errors(self, handle: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Answer a request; an error is shown to the user in one line, and the answer is None."""
        try:
            return await handle(*arguments)
        except CiteloomError as error:
            self._say(str(error))
        return None

    def _say(self, line: str, kind: lsp.MessageType = lsp.MessageType.Warning) -> None:
        if line != self._said:
            self._said = line
            self.window_show_message(lsp.ShowMessageParams(kind, f"Citeloom: {line}"))

    # The life of the server

    def _initialize(self, params: lsp.InitializeParams) -> None:
        folders = params.workspace_folders or []
        root, encoding = params.root_uri or (folders[0].uri if folders else None), self.workspace.position_encoding
        kind = lsp.TextDocumentSyncKind.Incremental
        self.protocol._workspace = ManuscriptWorkspace(root, kind, folders, encoding)
        given = params.initialization_options
        if isinstance(given, dict):
            calls, on_save = given.get("maxCalls"), given.get("judgeOnSave")
            self._max_calls = calls if isinstance(calls, int) and calls > 0 else _MAX_CALLS
            self._judge_on_save = on_save is True
        path = to_fs_path(root) if root else None
        if self._in_folder and path and Path(path).is_dir():
            os.chdir(path)

    def _initialized(self, _: lsp.InitializedParams) -> None:
        self._opening = asyncio.create_task(self._open_library())

    async def _open_library(self) -> Session | None:
        try:
            session = await asyncio.to_thread(self._stack.enter_context, self._open_session())
            await session.require_papers()
            await asuggest_citations(session, "The first search loads the model.")
        except CiteloomError as error:
            self._say(str(error), lsp.MessageType.Error)
            await asyncio.to_thread(self._stack.close)  # opening or saving a text retries
            return None
        return session

    async def _session(self) -> Session | None:
        return await asyncio.shield(self._opening) if self._opening is not None else None

    async def _close(self, _: None) -> None:
        for task in self._checks.values():
            task.cancel()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        await asyncio.to_thread(self._stack.close)

    # Documents

    def _document(self, uri: str) -> ManuscriptDocument | None:
        """Return the open text; None if its language has no citations."""
        document = self.workspace.text_documents.get(unquote(uri))
        return document if isinstance(document, ManuscriptDocument) and document.suffix else None

    def _key_at(self, uri: str, position: lsp.Position) -> tuple[ManuscriptDocument, CitedKey] | None:
        """Return an open text, and the key or number at a position in it."""
        document = self._document(uri)
        cited = cited_at(document.source, document.place(position), document.suffix) if document else None
        return (document, cited) if document and cited else None

    async def _read(self, session: Session, document: ManuscriptDocument) -> ReadText | None:
        """Return the text as last checked, else as it is now; None if it cannot be read."""
        if checked := self._checked.get(document.uri):
            return checked.read
        with suppress(CiteloomError):  # the check reports it
            return await aread_text(session, document.file, document.source)
        return None

    def _opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        self._retry()
        self._schedule(params.text_document.uri, 0.0, _EVERYTHING)

    def _changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        self._schedule(params.text_document.uri, _FIRST_DELAY, _CHEAP, _TYPED)

    def _saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        self._retry()
        uri = params.text_document.uri
        self._schedule(uri, 0.0, _EVERYTHING, max_calls=self._max_calls if self._judge_on_save else 0)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        if task := self._checks.pop(uri, None):
            task.cancel()
        self._checked.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def _retry(self) -> None:
        """Try again to open the library if that failed, since the user may have made one."""
        if self._opening is not None and self._opening.done() and self._opening.result() is None:
            self._opening = asyncio.create_task(self._open_library())

    def _schedule(self, uri: str, delay: float, *stages: tuple[checking.CheckPart, ...], max_calls: int = 0) -> None:
        """Check a document in the background, stage by stage, replacing an earlier schedule."""
        if task := self._checks.get(uri):
            task.cancel()

        async def work() -> None:
            for number, parts in enumerate(stages):
                await asyncio.sleep(_SECOND_DELAY if number else delay)
                await self._check(uri, parts, max_calls)

        self._checks[uri] = asyncio.ensure_future(self._report_errors(work))

    async def _check(self, uri: str, parts: tuple[checking.CheckPart, ...], max_calls: int = 0) -> None:
        session, document = await self._session(), self._document(uri)
        if session is None or document is None:
            return
        if not max_calls:
            if await asyncio.to_thread(_is_paper, session, document.file):
                return  # opened for reading
            if len(document.source) > _LARGE:
                parts = _CHEAP
        checked = await check_document(session, document, parts, max_calls)
        if unquote(uri) in self.workspace.text_documents:
            if other := self._checked.get(uri):  # a check on command and one during typing may overlap
                newer, older = (other, checked) if other.version > checked.version else (checked, other)
                checked = keep_verdicts(newer, older)
            self._checked[uri] = checked
            if document.version == checked.version:
                found = diagnostics(document, checked)
                self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, checked.version))
        for line in checked.result["warnings"]:
            self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Info, line))

    async def _check_command(self, uri: Any = None, *_: Any) -> str | None:
        """Check a document with the configured model, with progress that can be cancelled."""
        if not isinstance(uri, str) or self._document(uri) is None:
            self._say("citeloom.check: give the URI of an open text.")
            return None
        await self._in_progress("Citeloom checks the text", self._check(uri, _EVERYTHING, self._max_calls))
        return " ".join(checking.summary_lines(self._checked[uri].result)) if uri in self._checked else None

    async def _soften(self, uri: Any = None, claim: Any = None, *_: Any) -> None:
        """Have the model word a sentence more cautiously, and send the editor the edit."""
        document, checked = self._document(str(uri)), self._checked.get(str(uri))
        if document is None or checked is None or (session := await self._session()) is None:
            return
        work = soften_edit(session, document, checked, str(claim), self._max_calls)
        edit = await self._in_progress("Citeloom asks the model", work)
        if document.version != checked.version:
            self._say("the text has changed meanwhile, so the edit was not applied.")
        elif edit is not None:
            changes = lsp.WorkspaceEdit({document.uri: [edit]})
            await self.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(changes, "Soften"))

    async def _in_progress(self, title: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Do work with progress that the user can cancel; returns None if cancelled."""
        task = asyncio.ensure_future(work)
        window, token = self.client_capabilities.window, f"citeloom-{id(task)}"
        shown = bool(window and window.work_done_progress)
        if shown:
            await self.work_done_progress.create_async(token)
            self.work_done_progress.tokens[token].add_done_callback(lambda future: task.cancel())
            self.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title, cancellable=True))
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            return None
        finally:
            if shown:
                self.work_done_progress.end(token, lsp.WorkDoneProgressEnd())

    # Requests

    async def _completion(self, params: lsp.CompletionParams) -> lsp.CompletionList | None:
        if (document := self._document(params.text_document.uri)) is None:
            return None
        source, place = document.source, document.place(params.position)
        typed = open_citation(source, place, document.suffix)
        if typed is None or (session := await self._session()) is None:
            return None
        read = await self._read(session, document)
        sentence = await asyncio.to_thread(sentence_at, source, *typed.whole, document.suffix)
        most = _OFFERED_BY_PREFIX if typed.prefix else _OFFERED
        without = [read.paper_of(key) if read else key for key in typed.keys]
        suggest = partial(asuggest_citations, session, sentence.text, before=sentence.before, prefix=typed.prefix)
        found = await suggest(without=without, most=most)
        span = document.range(typed.start, typed.end)
        items = []
        for number, paper in enumerate(found["papers"]):
            key = read.keys.get(paper["key"], paper["key"]) if read else paper["key"]
            about = lsp.CompletionItemLabelDetails(description=f"{paper['authors']} {paper['year'] or ''}".strip())
            item = lsp.CompletionItem(key, about, lsp.CompletionItemKind.Reference, detail=paper["title"])
            item.documentation, item.sort_text = _markdown(_quote_with_place(paper)), f"{number:02}"
            item.filter_text = source[typed.start : place]  # keeps editors from filtering by letters, not meaning
            item.text_edit = lsp.TextEdit(span, f"{typed.sign}{key}")
            items.append(item)
        return lsp.CompletionList(is_incomplete=True, items=items)

    async def _hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        found = self._key_at(params.text_document.uri, params.position)
        if found is None or (session := await self._session()) is None:
            return None
        document, cited = found
        span, source = document.range(cited.start, cited.end), document.source
        read = await self._read(session, document)
        paper = await paper_of(session, read, cited.key)
        if not paper:
            entry = read.references.entries.get(read.entry_of(cited.key)) if read else None
            if read is None or entry is None:
                return None
            name = f"**{entry.title}** ({entry.year or 'no year'})" if entry.title else read.references.texts[entry.key]
            return lsp.Hover(_markdown(f"{name}\n\nNot in the library."), span)
        sentence = await asyncio.to_thread(sentence_at, source, *cited.whole, document.suffix)
        near = await anearest_words(session, sentence.text, paper, before=sentence.before) if sentence.text else []
        head = await library_papers.apaper(session, paper)
        lines = [f"**{head.title}**", f"{', '.join(head.authors[:6])} ({head.year or 'no year'})"]
        lines += [_quote_with_place(item) for item in near]
        if checked := self._checked.get(document.uri):
            lines += checked.verdict(document, cited.start)
        return lsp.Hover(_markdown("\n\n".join(lines)), span)

    async def _definition(self, params: lsp.DefinitionParams) -> list[lsp.Location] | None:
        """Locate the cited paper's nearest words and its entry; a PDF is opened at the page if possible."""
        found = self._key_at(params.text_document.uri, params.position)
        if found is None or (session := await self._session()) is None:
            return None
        document, cited = found
        read, places = await self._read(session, document), list[lsp.Location]()
        if paper := await paper_of(session, read, cited.key):
            sentence = await asyncio.to_thread(sentence_at, document.source, *cited.whole, document.suffix)
            for near in await anearest_words(session, sentence.text or paper, paper):
                places += await self._passage_places(session, near)
        for bib in read.bibliographies if read else ():
            entries = open_document(bib, self.workspace)
            if read and entries and (span := entry_span(entries.source, read.entry_of(cited.key))):
                places.append(lsp.Location(entries.uri, entries.range(*span)))
        return places

    async def _passage_places(self, session: Session, passage: results.SuggestedCitation) -> list[lsp.Location]:
        """Locate a passage; empty if the editor opened the PDF at its page."""
        file = Path((await library_papers.apaper(session, passage["key"])).source)
        if not await asyncio.to_thread(file.is_file):
            return []
        if file.suffix.lower() == ".pdf":
            uri = f"{from_fs_path(str(file))}#page={passage['page'] or 1}"
            if await self._show(uri, external=True):
                return []
            return [lsp.Location(uri, lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))]
        text = await asyncio.to_thread(open_document, file, self.workspace)
        if text is None:
            return []
        start = max(0, text.source.find(passage["quote"][:60]))
        return [lsp.Location(text.uri, text.range(start, start))]

    async def _show(self, uri: str, **options: Any) -> bool:
        """Have the editor show a document; False if it cannot."""
        window = self.client_capabilities.window
        able = bool(window and window.show_document and window.show_document.support)
        if able:
            await self.window_show_document_async(lsp.ShowDocumentParams(uri, **options))
        return able

    async def _show_passage(self, key: Any = None, words: Any = None, *_: Any) -> None:
        """Show the words of a paper that are nearest to a sentence, and open the paper there."""
        session = await self._session()
        if session is None or not isinstance(key, str) or not isinstance(words, str):
            return
        for near in await anearest_words(session, words, key):
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, f"{key}: {_quote_with_place(near)}"))
            for place in await self._passage_places(session, near):
                await self._show(place.uri, selection=place.range)

    async def _code_actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        document, checked = self._document(params.text_document.uri), self._checked.get(params.text_document.uri)
        session = await self._session() if checked else None
        if document is None or checked is None or session is None or checked.version != document.version:
            return None
        span = document.place(params.range.start), document.place(params.range.end)
        return await code_actions(session, document, checked, span, params.context.diagnostics, self.workspace)

    async def _symbols(self, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        """Return the claims of the current text, not of the last check: editors do not ask again after a check."""
        uri = params.text_document.uri
        document, session = self._document(uri), await self._session()
        if document is None or session is None or await asyncio.to_thread(_is_paper, session, document.file):
            return []
        checked = self._checked.get(uri)
        if checked is None or checked.version != document.version:
            found = await check_document(session, document, _CHEAP, 0)
            checked = keep_verdicts(found, checked) if checked else found
        return symbols(document, checked)

    def _prepare_rename(self, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        found = self._key_at(params.text_document.uri, params.position)
        if found is None or found[1].key.isdecimal():
            return None
        return found[0].range(found[1].start, found[1].end)

    async def _rename(self, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        """Rename a key in the text, in included files, and in the `.bib` files."""
        found = self._key_at(params.text_document.uri, params.position)
        if found is None or found[1].key.isdecimal():
            return None
        (document, cited), name = found, params.new_name.strip()
        if not name or any(sign.isspace() or sign in "{}[](),;@\\\"'#%~" for sign in name):
            self._say(f"{messages.shorten(name)!r} cannot be a key: use letters, digits, and signs such as : . _ -")
            return None
        session = await self._session()
        read = await self._read(session, document) if session else None
        folder = document.file.parent
        included = [folder / each for each in read.manuscript.files[1:]] if read else []
        texts = [document, *(text for file in included if (text := open_document(file, self.workspace)))]
        changes: dict[str, list[lsp.TextEdit]] = {}
        for text in texts:
            spans = [(key.start, key.end) for key in cited_keys(text.source, document.suffix) if key.key == cited.key]
            changes[text.uri] = [lsp.TextEdit(text.range(*span), name) for span in spans]
        for bib in read.bibliographies if read else ():
            entries = open_document(bib, self.workspace)
            if entries and (span := entry_span(entries.source, cited.key)):
                changes[entries.uri] = [lsp.TextEdit(entries.range(*span), name)]
        return lsp.WorkspaceEdit({uri: edits for uri, edits in changes.items() if edits})


def _is_paper(session: Session, file: Path) -> bool:
    """Whether a file is a paper of the library."""
    source = str(file.resolve())
    return any(paper.source == source for paper in session.library.papers())


def _markdown(text: str) -> lsp.MarkupContent:
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, text)


def _quote_with_place(item: results.SuggestedCitation) -> str:
    page = f"p. {item['page']}" if item["page"] is not None else ""
    place = ", ".join(filter(None, [page, item["section"]]))
    return f"\u201c{item['quote']}\u201d{f' ({place})' if place else ''}" if item["quote"] else ""
