"""An editor: pygls' own client of a `citeloom lsp` in a process of its own, over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path

from tests.support.cli_process import CLI, environment

PATIENCE = 300.0  # seconds
LANGUAGES = {".tex": "latex", ".md": "markdown", ".qmd": "quarto", ".typ": "typst", ".org": "org"}


class Editor:
    """One editor: what it was sent, and requests by line and column in the text that it has open."""

    def __init__(self) -> None:
        self.client = LanguageClient("editor of the tests", "1")
        self.messages: list[str] = []
        self.shown: list[lsp.ShowDocumentParams] = []
        self.progress: list[Any] = []
        self.applied: list[lsp.WorkspaceEdit] = []
        self.found: dict[str, Sequence[lsp.Diagnostic]] = {}
        self._published = asyncio.Event()
        self._version = 1
        self.uri = ""
        self.text = ""

        @self.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def _(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self._published.set()

        @self.client.feature(lsp.WINDOW_LOG_MESSAGE)
        def _(params: lsp.LogMessageParams) -> None:
            pass

        @self.client.feature(lsp.WINDOW_SHOW_DOCUMENT)
        def _(params: lsp.ShowDocumentParams) -> lsp.ShowDocumentResult:
            self.shown.append(params)
            return lsp.ShowDocumentResult(True)

        @self.client.feature(lsp.WORKSPACE_APPLY_EDIT)
        def _(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
            self.applied.append(params.edit)
            return lsp.ApplyWorkspaceEditResult(True)

        @self.client.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def _(params: lsp.WorkDoneProgressCreateParams) -> None:
            self.progress.append(params.token)

        @self.client.feature(lsp.PROGRESS)
        def _(params: lsp.ProgressParams) -> None:
            self.progress.append(params.value)

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: lsp.PublishDiagnosticsParams) -> None:
            self.found[params.uri] = params.diagnostics
            self._published.set()

    @property
    def document(self) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri)

    def open(self, file: Path | str, text: str, language: str = "") -> None:
        """Open a file, or a text under another address, which need not be saved."""
        self.uri = file if isinstance(file, str) else from_fs_path(str(file)) or ""
        self.text = text
        language = language or LANGUAGES[Path(self.uri).suffix]
        item = lsp.TextDocumentItem(self.uri, language, self._version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def change(self, *changes: lsp.TextDocumentContentChangeEvent) -> None:
        self._version += 1
        document = lsp.VersionedTextDocumentIdentifier(self._version, self.uri)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, list(changes)))

    def at(self, words: str, behind: int = 0) -> lsp.Position:
        """The position of words in the text as it was opened, in units of UTF-16."""
        place = self.text.index(words) + behind
        line = self.text.count("\n", 0, place)
        column = self.text[self.text.rfind("\n", 0, place) + 1 : place]
        return lsp.Position(line, len(column.encode("utf-16-le")) // 2)

    async def complete(self, position: lsp.Position) -> list[lsp.CompletionItem]:
        params = lsp.CompletionParams(self.document, position)
        found = await asyncio.wait_for(self.client.text_document_completion_async(params), PATIENCE)
        return list(getattr(found, "items", found) or ())

    async def hover(self, position: lsp.Position) -> str:
        params = lsp.HoverParams(self.document, position)
        found = await asyncio.wait_for(self.client.text_document_hover_async(params), PATIENCE)
        return found.contents.value if found else ""  # type: ignore[union-attr]  # it sends markdown

    async def actions(self, position: lsp.Position) -> dict[str, lsp.CodeAction]:
        span, given = lsp.Range(position, position), lsp.CodeActionContext(list(self.found.get(self.uri, ())))
        params = lsp.CodeActionParams(self.document, span, given)
        found = await asyncio.wait_for(self.client.text_document_code_action_async(params), PATIENCE)
        return {action.title: action for action in found or ()}  # type: ignore[misc]  # it sends no bare commands

    async def diagnosed(self, rule: str, uri: str = "") -> lsp.Diagnostic:
        """The first diagnostic of a rule; waits for it."""

        async def wait() -> lsp.Diagnostic:
            while True:
                self._published.clear()
                for item in self.found.get(uri or self.uri, ()):
                    if item.code == rule:
                        return item
                await self._published.wait()

        return await asyncio.wait_for(wait(), PATIENCE)

    async def told(self) -> str:
        """The first message to the user; waits for it."""

        async def wait() -> str:
            while not self.messages:
                self._published.clear()
                await self._published.wait()
            return self.messages[0]

        return await asyncio.wait_for(wait(), PATIENCE)


@asynccontextmanager
async def editing(
    folder: Path | None, *arguments: str | Path, settings: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[Editor]:
    """An editor with a folder open; at the end the server is shut down, and must end on its own without an error."""
    editor = Editor()
    client = editor.client
    command = [str(CLI), *map(str, arguments), "lsp"]
    await client.start_io(sys.executable, *command, env=environment(settings or {}), cwd=folder or Path.cwd())
    window = lsp.WindowClientCapabilities(
        work_done_progress=True, show_document=lsp.ShowDocumentClientCapabilities(support=True)
    )
    root = from_fs_path(str(folder)) if folder else None
    server = client._server
    assert server is not None and server.stderr is not None
    errors = asyncio.ensure_future(server.stderr.read())
    await client.initialize_async(
        lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(window=window), root_uri=root, initialization_options=options or None
        )
    )
    client.initialized(lsp.InitializedParams())
    try:
        yield editor
        await asyncio.wait_for(client.shutdown_async(None), PATIENCE)
        client.exit(None)
        assert await asyncio.wait_for(server.wait(), PATIENCE) == 0
        assert b"Traceback" not in await errors
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
        await errors
        await client.stop()
