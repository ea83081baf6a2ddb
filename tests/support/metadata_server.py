"""Crossref, DataCite, OpenAlex and Semantic Scholar on one local server, in their documented formats, with faults.

Each service has a path of its own (`/crossref/works/...`). Works are given once, as `ServedWork`, and every service
shows them in its own format. A `Fault` is played instead of the next answer of a service.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

SERVICES: Final = ("crossref", "datacite", "openalex", "s2")


@dataclass(frozen=True)
class ServedWork:
    """A work as the services know it; `updates` are (type, notice's DOI, date, source) of notices on it."""

    doi: str
    title: str
    authors: tuple[tuple[str, str], ...] = ()
    year: int = 2020
    journal: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""
    kind: str = "journal-article"
    abstract: str = ""
    citations: int = 0
    pdf: str = ""
    arxiv: str = ""
    updates: tuple[tuple[str, str, tuple[int, int, int], str], ...] = ()
    updates_to: tuple[tuple[str, str], ...] = ()
    relations: Mapping[str, str] = field(default_factory=dict)
    retracted: bool = False
    known_to: tuple[str, ...] = ("crossref", "openalex", "s2")


@dataclass(frozen=True)
class Fault:
    """An answer that is wrong: a status, a body or a redirect; or none until the server stops (`hangs`)."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


class MetadataServer:
    """The services over `works`; `requests` are the paths that were asked for, with their queries."""

    def __init__(self, *works: ServedWork) -> None:
        self.works = {work.doi: work for work in works}
        self.found: dict[str, list[ServedWork]] = {}  # search results by a word of the query
        self.files: dict[str, bytes | Fault] = {}
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._stopped = threading.Event()

    def __enter__(self) -> Self:
        serving = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                serving.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def settings(self) -> dict[str, str]:
        """The settings that name it, without their prefix."""
        return {
            "CROSSREF_BASE_URL": f"{self.url}/crossref",
            "DATACITE_BASE_URL": f"{self.url}/datacite",
            "OPENALEX_BASE_URL": f"{self.url}/openalex",
            "SEMANTIC_SCHOLAR_BASE_URL": f"{self.url}/s2",
        }

    def asked(self, service: str) -> list[str]:
        """The requests to one service."""
        return [path for path in self.requests if path.startswith(f"/{service}/")]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.path)
        self.headers.append(dict(handler.headers))
        parts = urlsplit(handler.path)
        service, _, rest = parts.path.lstrip("/").partition("/")
        if self.faults[service]:
            self._play(handler, self.faults[service].pop(0))
            return
        if service == "files":
            content = self.files.get(rest, Fault(404))
            self._play(handler, content if isinstance(content, Fault) else Fault(200, content))
            return
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        made = {"crossref": self._crossref, "datacite": self._datacite, "openalex": self._openalex, "s2": self._s2}
        found = made[service](unquote(rest), query)
        body = json.dumps(found if found is not None else {"error": "not found"}).encode()
        self._play(handler, Fault(200 if found is not None else 404, body, {"Content-Type": "application/json"}))

    def _play(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        if fault.hangs:
            self._stopped.wait(30)
            handler.close_connection = True
            return
        handler.send_response(fault.status)
        for name, value in {"Content-Length": str(len(fault.body)), **fault.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        try:
            handler.wfile.write(fault.body)
        except OSError:  # the client does not read an answer that is too long
            handler.close_connection = True

    def _searched(self, query: str) -> list[ServedWork]:
        return next((works for word, works in self.found.items() if word.casefold() in query.casefold()), [])

    def _known(self, doi: str, service: str) -> ServedWork | None:
        work = self.works.get(doi.lower())
        return work if work is not None and service in work.known_to else None

    def _crossref(self, path: str, query: Mapping[str, str]) -> Any:
        if path.startswith("works/"):
            work = self._known(path.removeprefix("works/"), "crossref")
            return work and {"status": "ok", "message-type": "work", "message": crossref_item(work)}
        if "filter" in query:
            doi = query["filter"].removeprefix("updates:")
            items = [work for work in self.works.values() if any(to == doi for _, to in work.updates_to)]
        else:
            items = self._searched(query["query.bibliographic"])
        message = {"total-results": len(items), "items": [crossref_item(work) for work in items]}
        return {"status": "ok", "message-type": "work-list", "message": message}

    def _datacite(self, path: str, _: Mapping[str, str]) -> Any:
        work = self._known(path.removeprefix("dois/"), "datacite")
        return work and {"data": {"id": work.doi, "type": "dois", "attributes": datacite_attributes(work)}}

    def _openalex(self, path: str, _: Mapping[str, str]) -> Any:
        work = self._known(path.removeprefix("works/doi:"), "openalex")
        return work and openalex_work(work)

    def _s2(self, path: str, query: Mapping[str, str]) -> Any:
        if path == "paper/search/match":
            found = [work for work in self._searched(query["query"]) if "s2" in work.known_to]
            return {"data": [{"matchScore": 180.5, **semantic_scholar_paper(found[0])}]} if found else None
        named = path.removeprefix("paper/")
        doi = f"10.48550/arxiv.{named[6:]}" if named.startswith("ARXIV:") else named.removeprefix("DOI:")
        work = self._known(doi, "s2")
        return work and semantic_scholar_paper(work)


def crossref_item(work: ServedWork) -> dict[str, Any]:
    """The work as Crossref's REST API shows it."""
    item: dict[str, Any] = {
        "DOI": work.doi.upper() if "/j." in work.doi else work.doi,
        "URL": f"https://doi.org/{work.doi}",
        "type": work.kind,
        "title": [work.title],
        "author": [
            {"given": given, "family": family, "sequence": "additional", "affiliation": []}
            if given
            else {"name": family, "sequence": "additional", "affiliation": []}
            for given, family in work.authors
        ],
        "issued": {"date-parts": [[work.year, 3, 1]]},
        "published": {"date-parts": [[work.year, 3, 1]]},
        "container-title": [work.journal] if work.journal else [],
        "publisher": "A Publisher",
        "is-referenced-by-count": work.citations,
        "relation": {
            name: [{"id-type": "doi", "id": other, "asserted-by": "subject"}] for name, other in work.relations.items()
        },
    }
    for name, value in (("volume", work.volume), ("issue", work.issue), ("page", work.pages)):
        if value:
            item[name] = value
    if work.abstract:
        item["abstract"] = f"<jats:title>Abstract</jats:title><jats:p>{work.abstract}</jats:p>"
    if work.updates:
        item["updated-by"] = [
            {
                "DOI": notice,
                "type": kind,
                "label": kind.replace("_", " ").capitalize(),
                "source": source,
                "updated": {"date-parts": [list(date)], "timestamp": 1},
            }
            for kind, notice, date, source in work.updates
        ]
    if work.updates_to:
        item["update-to"] = [
            {"DOI": to, "type": kind, "label": kind, "updated": {"date-parts": [[work.year, 6, 4]]}}
            for kind, to in work.updates_to
        ]
    return item


def datacite_attributes(work: ServedWork) -> dict[str, Any]:
    """The attributes of the DOI as DataCite's REST API shows them."""
    return {
        "doi": work.doi,
        "titles": [{"title": work.title}],
        "creators": [
            {"name": f"{family}, {given}", "nameType": "Personal", "givenName": given, "familyName": family}
            for given, family in work.authors
        ],
        "publisher": "arXiv" if work.arxiv else work.journal,
        "container": {},
        "publicationYear": work.year,
        "types": {"resourceTypeGeneral": "Preprint" if work.arxiv else "JournalArticle", "bibtex": "article"},
        "descriptions": [{"description": work.abstract, "descriptionType": "Abstract"}] if work.abstract else [],
        "relatedIdentifiers": [
            {"relationType": name, "relatedIdentifier": other, "relatedIdentifierType": "DOI"}
            for name, other in work.relations.items()
        ],
        "citationCount": work.citations,
    }


def openalex_work(work: ServedWork) -> dict[str, Any]:
    """The work as OpenAlex shows it."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(work.abstract.split()):
        places.setdefault(word, []).append(place)
    return {
        "id": "https://openalex.org/W1",
        "doi": f"https://doi.org/{work.doi}",
        "title": work.title,
        "display_name": work.title,
        "publication_year": work.year,
        "type": "preprint" if work.arxiv else "article",
        "authorships": [
            {"author_position": "first", "author": {"display_name": f"{given} {family}".strip()}}
            for given, family in work.authors
        ],
        "primary_location": {"source": {"display_name": work.journal} if work.journal else None},
        "biblio": {"volume": work.volume or None, "issue": work.issue or None, "first_page": None, "last_page": None},
        "cited_by_count": work.citations + 7,
        "is_retracted": work.retracted,
        "best_oa_location": {"is_oa": True, "pdf_url": work.pdf} if work.pdf else None,
        "abstract_inverted_index": places or None,
    }


def semantic_scholar_paper(work: ServedWork) -> dict[str, Any]:
    """The paper as Semantic Scholar's Graph API shows it."""
    ids = {"DOI": work.doi, "CorpusId": 1} | ({"ArXiv": work.arxiv} if work.arxiv else {})
    return {
        "paperId": "0" * 40,
        "externalIds": ids,
        "title": work.title,
        "abstract": work.abstract or None,
        "venue": work.journal,
        "year": work.year,
        "citationCount": work.citations + 3,
        "isOpenAccess": bool(work.pdf),
        "openAccessPdf": {"url": work.pdf, "status": "GREEN"} if work.pdf else None,
        "publicationTypes": ["JournalArticle"],
        "journal": {"name": work.journal, "volume": work.volume} if work.journal else None,
        "authors": [{"authorId": "1", "name": f"{given} {family}".strip()} for given, family in work.authors],
    }
