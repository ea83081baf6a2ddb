"""`citeloom lsp` in an editor: every request on manuscripts of every format, and what an editor may do wrong."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcRequestCancelled

from citeloom import Settings, open_library
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.checking_model import CheckingModel
from tests.support.editor_client import PATIENCE, Editor, editing
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import envelope
from tests.support.sample_library import SAMPLES, index_samples

SEEDS, SCALING = "obrien2019seeds", "varga2021calibration"
ABOUT_SEEDS = "The seed alone spreads calibration error about twelve times as much as accuracy"
ABOUT_SCALING = "Temperature scaling makes the confidence of a classifier fit wearers that it has never met"
TEX = rf"""\documentclass{{article}}
\begin{{document}}
\section{{Introduction}}
{ABOUT_SCALING} \cite{{{SCALING}}}. {ABOUT_SEEDS} \citep[see][]{{}}.
It is so \cite{{obrien2019sead}}, as Figure~\ref{{fig:none}} shows.

The spread across seeds was described for four sensor and tabular data sets \cite{{{SEEDS}}}.
\bibliography{{library}}
\end{{document}}
"""
# A text with a citation that is being typed, and the text by which the chosen key is inserted.
TYPED = {
    "tex": (f"{ABOUT_SEEDS} \\cite{{|", SEEDS),
    "textcite.tex": (f"{ABOUT_SEEDS} \\parencite[p.~4]{{{SCALING}, |}}.", SEEDS),
    "md": (f"{ABOUT_SEEDS} [@|].", SEEDS),
    "second.md": (f"{ABOUT_SEEDS} [see @{SCALING}, p. 3; @|].", SEEDS),
    "narrative.md": (f"It is known. {ABOUT_SEEDS}, as @| showed.", SEEDS),
    "qmd": (f"---\nbibliography: library.bib\n---\n\n{ABOUT_SEEDS} [@|", SEEDS),
    "typ": (f"= Introduction\n{ABOUT_SEEDS} @|", SEEDS),
    "cite.typ": (f"{ABOUT_SEEDS} #cite(<|>).", SEEDS),
    "org": (f"* Introduction\n{ABOUT_SEEDS} [cite:@|].", SEEDS),
    "bare.org": (f"{ABOUT_SEEDS} [cite:|].", f"@{SEEDS}"),
    "ref.org": (f"{ABOUT_SEEDS} cite:|", SEEDS),
    "surrogates.md": (f"\U0001f9ea\U0001f9ea {ABOUT_SEEDS} \U0001f9ea [@|] \U0001f9ea.", SEEDS),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_samples(tmp_path_factory.mktemp("editors") / "home", LocalEmbedding()).root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "my paper"
    place.mkdir()
    shutil.copy(SAMPLES / "library.bib", place / "library.bib")
    return place


@pytest.fixture
def judge() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=CheckingModel()) as server:
        yield server


async def test_completion_follows_the_meaning_of_the_sentence_in_every_format(home: Path, folder: Path) -> None:
    async with editing(folder, "--home", home) as editor:
        for name, (text, inserted) in TYPED.items():
            file = folder / (name if "." in name else f"text.{name}")
            editor.open(file, text.replace("|", ""))
            editor.text = text
            items = await editor.complete(editor.at("|"))
            assert items, name
            first = items[0]
            edit = first.text_edit
            assert isinstance(edit, lsp.TextEdit) and edit.new_text == inserted, name
            assert edit.range == lsp.Range(editor.at("|"), editor.at("|")), name
            assert "calibration error varied about twelve times" in first.documentation.value, name  # type: ignore[union-attr]
            assert SCALING not in [item.label for item in items] if SCALING in text else True, name


async def test_a_typed_prefix_selects_among_keys_names_and_titles(home: Path, folder: Path) -> None:
    async with editing(folder, "--home", home) as editor:
        for number, (prefix, keys) in enumerate(
            {
                "okafor2": ["okafor2022ensembles"],
                "Eszter": [SCALING],
                "o\u2019brien": [],
                "ensembl": ["okafor2022ensembles"],
            }.items()
        ):
            text = f"{ABOUT_SEEDS} \\cite{{{prefix}}}"
            editor.open(folder / f"{number}.tex", text)
            items = await editor.complete(editor.at("}"))
            assert [item.label for item in items] == keys
            for item in items:
                assert item.filter_text == prefix
                assert item.text_edit.range == lsp.Range(editor.at(prefix), editor.at("}"))  # type: ignore[union-attr]
        editor.open(folder / "other.md", "No citation here, a@b.example, and @fig-plot.")
        assert await editor.complete(editor.at("here")) == []
        assert await editor.complete(editor.at("plot", 4)) == []


async def test_citations_are_known_before_the_first_check_and_after_an_edit(home: Path, folder: Path) -> None:
    bib = folder / "library.bib"
    bib.write_text(bib.read_text("utf-8").replace(SEEDS, "seeds19"), "utf-8")
    text = f"{ABOUT_SEEDS} \\cite{{}}.\n\nIt was described \\cite{{seeds19}}.\n\\bibliography{{library}}\n"
    async with editing(folder, "--home", home) as editor:
        for name in ("complete", "symbols", "rename"):
            editor.open(folder / f"{name}.tex", text)
            if name == "complete":
                assert (await editor.complete(editor.at("}.")))[0].label == "seeds19", "the key of the reference list"
            elif name == "rename":
                params = lsp.RenameParams(editor.document, editor.at("seeds19"), "better")
                renamed = await editor.client.text_document_rename_async(params)
                assert renamed and renamed.changes and len(renamed.changes) == 2, "in the text and in the .bib"
            else:
                claims = "It was described", "It was described again"
                for said in claims:
                    if said != claims[0]:
                        editor.change(lsp.TextDocumentContentChangeWholeDocument(text.replace(*claims)))
                    found = await editor.client.text_document_document_symbol_async(
                        lsp.DocumentSymbolParams(editor.document)
                    )
                    assert found and found[0].children[0].name.startswith(f"{said} [")  # type: ignore[union-attr,index]


async def test_a_paper_of_the_library_can_be_opened(home: Path, folder: Path) -> None:
    async with editing(folder, "--home", home) as editor:
        editor.open(SAMPLES / f"{SEEDS}.md", (SAMPLES / f"{SEEDS}.md").read_text())
        paper = editor.uri
        for name in ("first.tex", "second.tex"):  # checked after it
            editor.open(folder / name, TEX)
            await editor.diagnosed("key-without-entry")
        assert not editor.found.get(paper)


async def test_a_text_is_read_checked_and_repaired(home: Path, folder: Path) -> None:
    (folder / "paper.tex").write_text(TEX)
    async with editing(folder, "--home", home) as editor:
        editor.open(folder / "paper.tex", TEX)
        missing = await editor.diagnosed("key-without-entry")
        assert missing.range == lsp.Range(editor.at("obrien2019sead"), editor.at("obrien2019sead", 14))
        assert missing.severity is lsp.DiagnosticSeverity.Error and SEEDS in missing.message
        await editor.diagnosed("pointer-to-nothing")

        said = await editor.hover(editor.at(SEEDS, 3))
        assert said.startswith("**How Many Seeds?") and "\u201c" in said and "spread" in said

        actions = await editor.actions(editor.at("obrien2019sead"))
        (edit,) = actions[f"Cite {SEEDS} instead of obrien2019sead"].edit.changes[editor.uri]  # type: ignore[union-attr, index]
        assert edit.new_text == SEEDS and edit.range == missing.range

        actions = await editor.actions(editor.at("\\citep"))
        action = next(action for title, action in actions.items() if title.startswith(f"Cite {SEEDS}"))
        ((_, (filled,)),) = action.edit.changes.items()  # type: ignore[union-attr]
        assert filled.new_text == SEEDS

        found = await editor.client.text_document_definition_async(
            lsp.DefinitionParams(editor.document, editor.at(SEEDS))
        )
        places = {Path(item.uri).name: item.range.start.line for item in found}  # type: ignore[union-attr]
        assert places[f"{SEEDS}.md"] > 0 and places["library.bib"] > 0

        asked = lsp.RenameParams(editor.document, editor.at(SCALING), "varga2021")
        renamed = await editor.client.text_document_rename_async(asked)
        changed = {Path(uri).name: [edit.new_text for edit in edits] for uri, edits in renamed.changes.items()}  # type: ignore[union-attr]
        assert changed == {"paper.tex": ["varga2021"], "library.bib": ["varga2021"]}

        symbols = await editor.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(editor.document))
        (section,) = symbols or ()
        assert section.name == "Introduction" and len(section.children) == 3  # type: ignore[union-attr, arg-type]


async def test_an_uncited_sentence_is_offered_a_paper_that_says_it_and_its_entry(home: Path, folder: Path) -> None:
    (folder / "few.bib").write_text("@book{other, title={Another book}, year={2001}}\n")
    text = f"---\nbibliography: few.bib\n---\n\nIt is said by some [@other]. {ABOUT_SEEDS}. See also [@{SCALING}].\n"
    async with editing(folder, "--home", home) as editor:
        editor.open(folder / "notes.md", text)
        await editor.diagnosed("key-without-entry")
        actions = await editor.actions(editor.at("twelve"))
        action = next(action for title, action in actions.items() if title.startswith(f"Cite {SEEDS}"))
        (edit,) = action.edit.changes[editor.uri]  # type: ignore[union-attr, index]
        assert edit.new_text == f" [@{SEEDS}]" and edit.range.start == editor.at(ABOUT_SEEDS, len(ABOUT_SEEDS))
        actions = await editor.actions(editor.at(SCALING))
        added = actions[f"Add the entry of {SCALING} to few.bib"].edit.changes  # type: ignore[union-attr]
        ((uri, (entry,)),) = added.items()  # type: ignore[union-attr]
        assert uri.endswith("few.bib") and entry.new_text.strip().startswith(f"@inproceedings{{{SCALING},")
        assert f"Show the words of {SCALING}" in actions


async def test_a_model_judges_on_command_and_its_verdict_stays_until_the_words_change(
    home: Path, folder: Path, judge: FakeOpenAI
) -> None:
    settings = {"CHAT_MODEL": "checker", "CHAT_BASE_URL": judge.base_url}
    copy = Path(shutil.copytree(home, folder / "home"))
    async with editing(folder, "--home", copy, settings=settings, maxCalls=5) as editor:
        editor.open(folder / "paper.tex", TEX)
        await editor.diagnosed("key-without-entry")
        assert judge.calls() == 0
        asked = lsp.ExecuteCommandParams("citeloom.check", [editor.uri])
        await asyncio.wait_for(editor.client.workspace_execute_command_async(asked), PATIENCE)
        assert 0 < judge.calls() <= 5
        assert [item["kind"] for item in editor.progress if isinstance(item, dict)] == ["begin", "end"]
        verdict = await editor.hover(editor.at(SCALING))
        assert "**Contradicted**" in verdict  # it says "never"
        assert (
            await editor.client.workspace_execute_command_async(lsp.ExecuteCommandParams("citeloom.check", [7])) is None
        )


async def test_a_verdict_survives_a_check_of_text_typed_meanwhile(home: Path, folder: Path) -> None:
    checking, asked, typed = CheckingModel(), threading.Event(), threading.Event()

    def answer(body: Json) -> Json:
        asked.set()
        assert typed.wait(PATIENCE)
        return checking(body)

    with FakeOpenAI(behaviour=answer) as server:
        settings = {"CHAT_MODEL": "checker", "CHAT_BASE_URL": server.base_url}
        copy = Path(shutil.copytree(home, folder / "home"))
        async with editing(folder, "--home", copy, settings=settings, maxCalls=5) as editor:
            editor.open(folder / "paper.tex", TEX.replace("obrien2019sead", SEEDS))
            command = lsp.ExecuteCommandParams("citeloom.check", [editor.uri])
            judging = asyncio.ensure_future(editor.client.workspace_execute_command_async(command))
            assert await asyncio.to_thread(asked.wait, PATIENCE)
            end = editor.at("\\bibliography")
            editor.change(lsp.TextDocumentContentChangePartial(lsp.Range(end, end), "See \\cite{nobody2020}.\n"))
            await editor.diagnosed("key-without-entry")
            typed.set()
            await asyncio.wait_for(judging, PATIENCE)
            assert "**Contradicted**" in await editor.hover(editor.at(SCALING))


async def test_an_overstated_sentence_is_softened_by_rules_or_by_the_model(home: Path, folder: Path) -> None:
    said = f"Seeds always prove it~\\cite{{{SEEDS}}}, which will show \\citep[p.~2]{{{SCALING},{SEEDS}}}."
    checking = CheckingModel()

    def answer(body: Json) -> Json:
        if "You repair sentences" not in body["messages"][0]["content"]:
            return checking(body)
        task = body["messages"][-1]["content"]
        assert "claims too much" in task and "Seeds always prove it [E1], which will show [E2][E3]." in task
        return envelope(body, content=json.dumps({"S1": "Seeds may bear it out [E1], which is open [E2][E3]."}))

    with FakeOpenAI(behaviour=answer) as server:
        settings = {"CHAT_MODEL": "checker", "CHAT_BASE_URL": server.base_url}
        copy = Path(shutil.copytree(home, folder / "home"))
        async with editing(folder, "--home", copy, settings=settings, maxCalls=5) as editor:
            editor.open(
                folder / "paper.tex", f"\\begin{{document}}\n{said}\n\\bibliography{{library}}\n\\end{{document}}\n"
            )
            await editor.client.workspace_execute_command_async(
                lsp.ExecuteCommandParams("citeloom.check", [editor.uri])
            )
            await editor.diagnosed("claim-overstated")
            calls = server.calls()
            actions = await editor.actions(editor.at("always"))
            softer = next(action for title, action in actions.items() if title.startswith("Soften"))
            edits = softer.edit.changes[editor.uri]  # type: ignore[union-attr, index]
            assert [edit.new_text for edit in edits] == ["often", "suggest", "may", "suggest"]
            assert server.calls() == calls, "a list of fixes asks nobody"
            # lsprotocol's client takes an action with a command for a command.
            command = literal_eval(str(actions["Have the chat model word it more cautiously"].command))
            asked = lsp.ExecuteCommandParams(command["command"], command["arguments"])
            await asyncio.wait_for(editor.client.workspace_execute_command_async(asked), PATIENCE)
            assert server.calls() == calls + 1
            (applied,) = editor.applied
            (edit,) = applied.changes[editor.uri]  # type: ignore[index]
            assert edit.new_text == (
                f"Seeds may bear it out~\\cite{{{SEEDS}}}, which is open \\citep[p.~2]{{{SCALING},{SEEDS}}}."
            )
            assert edit.range == lsp.Range(editor.at("Seeds"), editor.at("show", len(said) - said.index("show")))


async def test_after_five_hundred_edits_server_and_editor_have_the_same_text(home: Path, folder: Path) -> None:
    async with editing(folder, "--home", home) as editor:
        editor.open(folder / "paper.md", "\U0001f9ea\u00e4 \r\n\r\n")
        mirror = f"{ABOUT_SEEDS} [@"
        for number in range(500):
            sign = mirror[number] if number < len(mirror) else " "
            column = 4 + number if number < len(mirror) else 0
            place = lsp.Position(0 if number < len(mirror) else 1, column)
            change = lsp.TextDocumentContentChangePartial(lsp.Range(place, place), sign)
            editor.change(change)
        items = await editor.complete(lsp.Position(0, 4 + len(mirror)))
        assert items[0].label == SEEDS
        assert items[0].text_edit.range.start == lsp.Position(0, 4 + len(mirror))  # type: ignore[union-attr]


async def test_wrong_positions_cancelled_requests_and_large_texts_do_no_harm(home: Path, folder: Path) -> None:
    large = f"{ABOUT_SCALING} [@{SCALING}]. " * 400 + "\n\n"
    large = large * (2_000_000 // len(large)) + f"{ABOUT_SEEDS} [@"
    async with editing(folder, "--home", home) as editor:
        editor.open(folder / "large.md", large)
        asked = lsp.CompletionParams(editor.document, lsp.Position(large.count("\n"), 10**6))
        cancelled = editor.client.text_document_completion(asked)
        editor.client.cancel_request(lsp.CancelParams(id=next(iter(editor.client.protocol._request_futures))))
        with pytest.raises(JsonRpcRequestCancelled):
            await asyncio.wait_for(asyncio.wrap_future(cancelled), PATIENCE)
        line = large.count("\n")
        items = await editor.complete(lsp.Position(line, 10**6))  # behind the end: the end
        assert items[0].label == SEEDS
        assert await editor.hover(lsp.Position(0, large.index(SCALING) + 2)) != ""
        for position in (lsp.Position(10**7, 0), lsp.Position(0, 10**7)):
            await editor.complete(position)
            await editor.hover(position)


async def test_two_editors_share_a_library_and_a_text_needs_no_folder(home: Path, folder: Path) -> None:
    async with editing(folder, "--home", home) as one, editing(None, "--home", home) as other:
        one.open(folder / "a.md", f"{ABOUT_SEEDS} [@")
        other.open("untitled:Untitled-1", f"{ABOUT_SCALING} \\cite{{", "latex")

        async def first(editor: Editor) -> str:
            return (await editor.complete(lsp.Position(0, 10**6)))[0].label

        assert await asyncio.gather(first(one), first(other)) == [SEEDS, SCALING]
        other.open("untitled:Untitled-2", "print(1)  # [@", "python")
        assert await other.complete(lsp.Position(0, 14)) == []


async def test_without_a_library_one_line_says_what_to_do(folder: Path) -> None:
    async with editing(folder, settings={"HOME": str(folder / "none")}) as editor:
        editor.open(folder / "a.md", f"{ABOUT_SEEDS} [@{SEEDS}]. Go on [@")
        message = await editor.told()
        assert "none" in message and "ingest" in message and "\n" not in message
        assert await editor.complete(lsp.Position(0, 10**6)) == []
        assert await editor.hover(editor.at(SEEDS)) == ""
        assert await editor.actions(editor.at(SEEDS)) == {}
    assert len(editor.messages) == 1


async def test_an_empty_library_is_reported_once(folder: Path) -> None:
    place = folder / ".citeloom"
    with open_library(place, settings=Settings()):
        pass
    async with editing(folder) as editor:
        editor.open(folder / "a.md", f"{ABOUT_SEEDS} [@")
        assert "empty" in await editor.told() and "ingest" in editor.messages[0]
        assert await editor.complete(lsp.Position(0, 10**6)) == []


async def test_numbered_citations_find_their_papers_in_a_typed_list(home: Path, folder: Path) -> None:
    listed = (
        "1. O'Brien N, D\u00edaz R (2019) How Many Seeds? Run-to-Run Variance of Small Sensor Classifiers. Journal."
    )
    text = f"# Introduction\n\n{ABOUT_SEEDS} [1]. It is so [7].\n\n# References\n\n{listed}\n"
    async with editing(folder, "--home", home) as editor:
        editor.open(folder / "a.md", text)
        assert "7 is cited" in (await editor.diagnosed("key-without-entry")).message
        assert "twelve times" in await editor.hover(editor.at("[1]", 1))
