"""The tools that other agents call over MCP, on the functions that the command line and our own agent use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from ..errors import InputError
from ..graph.session import Session
from ..ingestion.doctor import examine
from ..runs.research import ResearchRequest
from ..tools.paper_records import load_figure_records
from ..tools.paper_search import papers_by_summary, papers_by_text
from ..tools.retrieval import Retrieval, hit_records, retrieve
from ..tools.scope import require_words
from .agent_requests import AgentArguments, EvidenceQuery, FigureQuery, PaperQuery, StatusQuery, WindowQuery
from .agent_results import (
    FoundPapers,
    FoundPassages,
    LibraryStatus,
    ListedFigures,
    PassageWindow,
    ResearchAnswer,
    WindowPassage,
)
from .job import Job
from .problems import ServerError
from .request_models import LimitedBody, ResearchBody
from .run_jobs import RunJobs

Report = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class AgentLibrary:
    """What the tools work on: an open library, and the runs of the process."""

    session: Session
    runs: RunJobs

    async def search_evidence(self, given: EvidenceQuery, report: Report) -> FoundPassages:
        """Passages for a query, as `citeloom search` finds them."""
        require_words(given.query)
        library, settings = self.session.library, self.session.settings
        scope = await asyncio.to_thread(given.scope, library)
        how = Retrieval(settings.retrieval_mode, rerank=settings.rerank)
        hits = await retrieve(library, given.query, given.limit, scope, how)
        records = await asyncio.to_thread(hit_records, library, given.query, hits)
        return FoundPassages.model_validate({"passages": records})

    async def search_papers(self, given: PaperQuery, report: Report) -> FoundPapers:
        """Papers for a query, as `citeloom find` finds them."""
        require_words(given.query)
        asked = (self.session.library, given.query, given.min_year, given.max_year, given.page)
        if given.by == "summary":
            return FoundPapers.model_validate(await papers_by_summary(*asked))
        return FoundPapers.model_validate(await asyncio.to_thread(papers_by_text, *asked))

    async def get_context_window(self, given: WindowQuery, report: Report) -> PassageWindow:
        """A passage with its neighbours; raises `InputError` for an unknown one."""
        library = self.session.library
        try:
            chunks = await asyncio.to_thread(library.window, given.chunk_id, given.window)
        except ValueError:
            chunks = []
        if not chunks:
            raise InputError(
                f"chunk_id: there is no passage {given.chunk_id[:80]!r}.", help="Take an id that search_evidence gave."
            )
        paper = await asyncio.to_thread(library.paper, chunks[0].key)
        passages = [
            WindowPassage(chunk_id=item.id, section=item.section, page=item.page, text=item.text) for item in chunks
        ]
        return PassageWindow(key=paper.key, title=paper.title, passages=passages)

    async def list_figures(self, given: FigureQuery, report: Report) -> ListedFigures:
        """The figures and tables of a paper; raises `UnknownPaperError`."""
        figures = await asyncio.to_thread(load_figure_records, self.session.library, given.key)
        return ListedFigures.model_validate({"key": given.key, "figures": figures})

    async def research(self, given: ResearchBody, report: Report) -> ResearchAnswer:
        """Answer a question, or join or resume the run that does; reports each step."""
        limits = set(LimitedBody.model_fields)
        asked = given.model_dump(exclude={"length", "papers", "from_year", "to_year", *limits})
        request = ResearchRequest(
            **asked,
            words=given.length,
            papers=tuple(given.papers),
            min_year=given.from_year,
            max_year=given.to_year,
        )
        job = await self.runs.start_run(request, given.limits())
        async for event in job.log.read():
            if event.name == "stage":
                await report(json.loads(event.data)["text"])
        await job.ended()
        return ResearchAnswer.of_record(_record(job))

    async def library_status(self, given: StatusQuery, report: Report) -> LibraryStatus:
        """What the library holds, and the problems that `citeloom doctor` finds."""
        return await asyncio.to_thread(self._status)

    def _status(self) -> LibraryStatus:
        library = self.session.library
        papers = library.papers()
        years = [paper.year for paper in papers if paper.year is not None]
        problems = [finding for finding in examine(library) if finding.level == "problem"]
        return LibraryStatus(
            home=str(library.home.name),
            papers=len(papers),
            passages=library.chunk_count(),
            first_year=min(years, default=None),
            last_year=max(years, default=None),
            embedding=library.embedding.name,
            version=library.version(),
            chat_models=not self.session.extractive,
            problems=[f"{item.topic}: {item.message}. {item.remedy}".strip() for item in problems],
        )


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool: its name, what it does, its arguments, its result, and the method of `AgentLibrary` that does it."""

    title: str
    description: str
    arguments: type[AgentArguments | ResearchBody]
    result: type[BaseModel]
    call: Callable[[AgentLibrary, Any, Report], Awaitable[BaseModel]]
    read_only: bool = True

    @property
    def name(self) -> str:
        """The name by which an agent calls it."""
        return self.call.__name__

    def parsed(self, arguments: dict[str, Any] | None) -> BaseModel:
        """The arguments; raises `InputError` naming each that is wrong."""
        try:
            return self.arguments.model_validate(arguments or {})
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(str(part) for part in item['loc']) or 'arguments'}: {item['msg']}"
                for item in error.errors()
            )
            raise InputError(
                f"{self.name}: {wrong}.", help=f"It takes {', '.join(self.arguments.model_fields)}."
            ) from None


TOOLS: Final = {
    tool.name: tool
    for tool in (
        AgentTool(
            "Search passages",
            "Find passages of the user's papers, word for word, by meaning and by words. Free and fast. Cite what you "
            "use by key and page.",
            EvidenceQuery,
            FoundPassages,
            AgentLibrary.search_evidence,
        ),
        AgentTool(
            "Search papers",
            "Find papers of the user's library by the words of their text, or by what they are about. Free and fast.",
            PaperQuery,
            FoundPapers,
            AgentLibrary.search_papers,
        ),
        AgentTool(
            "Read around a passage",
            "Read the passages before and after one that search_evidence or search_papers gave. Free and fast.",
            WindowQuery,
            PassageWindow,
            AgentLibrary.get_context_window,
        ),
        AgentTool(
            "Figures of a paper",
            "List a paper's figures and tables with their captions. Free and fast.",
            FigureQuery,
            ListedFigures,
            AgentLibrary.list_figures,
        ),
        AgentTool(
            "Answer from the library",
            "Answer a question from the user's papers alone, each cited sentence checked against the words that it "
            "rests on. Takes a minute or more and may cost the user money; the same question again is free. Use "
            "search_evidence to look something up.",
            ResearchBody,
            ResearchAnswer,
            AgentLibrary.research,
            read_only=False,
        ),
        AgentTool(
            "Library status",
            "How many papers and passages the library holds, from which years, and what is wrong with it.",
            StatusQuery,
            LibraryStatus,
            AgentLibrary.library_status,
        ),
    )
}


def _record(job: Job) -> dict[str, Any]:
    if job.result is not None:
        return dict(job.result)
    problem = job.problem or {"status": 503, "detail": "The run was stopped.", "help": "Ask again to resume it."}
    raise ServerError(problem["status"], problem["detail"], help=problem.get("help", ""))
