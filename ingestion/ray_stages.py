"""The stages of an ingest on a Ray cluster.

Workers are sent bytes, parsed papers and texts, never a setting or a key, and need no shared disk. The rest stays here:
bibliography, caches, stores, and calls to an embedding endpoint, whose limits so hold for the whole cluster.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..documents import Chunk
from ..documents.bibliography import Refusal
from ..documents.markdown import ParsedPaper
from ..documents.safe_files import FileRefusedError, read_regular, require_regular
from ..documents.sandbox import in_thread
from ..models.embeddings.bundled_models import LocalEmbedding
from ..models.embeddings.protocol import EmbeddingModel, Vector
from .ray_cluster import RayRequest, ray_jobs
from .ray_jobs import LOST, TRIES, Job, RayJobs
from .reading import MARKDOWN, PDF, ConvertedFiles, PdfReading, parse_file, printable
from .stages import Chunking, Stages, Texts, embed_texts, local_executor

MOST_SENT: Final = 64_000_000  # bytes of a file; a larger one is parsed here
_BATCH: Final = 16  # texts embedded by one task: about a second of work


@asynccontextmanager
async def ray_executor(request: RayRequest | None, embedding: EmbeddingModel) -> AsyncIterator[Stages]:
    """The stages on the requested Ray cluster, or here without a request; raises like `ray_jobs`."""
    if request is None:
        yield local_executor(embedding)
        return
    async with ray_jobs(request) as jobs:
        if isinstance(embedding, LocalEmbedding):
            embed, texts_at_once = partial(_embed, jobs), _BATCH * jobs.at_once
        else:  # an endpoint: limits, retries, the journal of paid calls and the key stay in this process
            embed, texts_at_once = partial(embed_texts, embedding), embedding.at_once
        yield Stages(partial(_parse, jobs), partial(_split, jobs), embed, texts_at_once)


class _NotCachedError(Exception):
    """A file has to be converted first."""


class _CachedOnly(ConvertedFiles):
    """A cache of converted files that refuses those without an entry."""

    def __init__(self, kept: ConvertedFiles) -> None:
        self._kept = kept

    def get(self, file: Path) -> dict[str, Any]:
        """The cached content of a file; raises `_NotCachedError`."""
        content = self._kept.get(file)
        if content is None:
            raise _NotCachedError
        return content


class _SentFile:
    """A file whose bytes are sent to a worker, perhaps more than once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digest = ""  # of what was sent last; empty if the file could not be read

    def size(self) -> int:
        """Its size in bytes; 0 if it has vanished meanwhile."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def arguments(self, pdf: PdfReading) -> tuple[bytes, str, PdfReading]:
        """The arguments of `ray_tasks.parse`."""
        try:
            data = read_regular(self.path, MOST_SENT)
        except (OSError, FileRefusedError):
            data, self.digest = b"", ""
        else:
            self.digest = hashlib.sha256(data).hexdigest()
        return data, str(self.path), pdf


def _parse(
    jobs: RayJobs, files: Sequence[Path], kept: ConvertedFiles | None, pdf: PdfReading
) -> list[ParsedPaper | Refusal]:
    """Parse files on the cluster, and here those that are cached, too large or cannot be sent."""
    parsed: dict[int, ParsedPaper | Refusal] = {}
    sent: dict[int, _SentFile] = {}

    def unparsed() -> Iterator[Job]:
        for number, file in enumerate(files):
            here = _parsed_here(file, kept, pdf)
            if here is not None:
                parsed[number] = here
                continue
            sent[number] = _SentFile(file)
            yield Job(number, "parse", partial(sent[number].arguments, pdf), sent[number].size())

    for job, result in jobs.run(unparsed()):
        file = sent.pop(job.number)
        if result is None:
            parsed[job.number] = Refusal(str(file.path), LOST)
        elif not file.digest:  # it has vanished meanwhile: say why
            parsed[job.number] = parse_file(file.path, kept, pdf)
        else:
            parsed[job.number], conversion = result
            if kept is not None and conversion is not None:
                kept.put(file.path, conversion, file.digest)
    return [parsed[number] for number in range(len(files))]


def _parsed_here(file: Path, kept: ConvertedFiles | None, pdf: PdfReading) -> ParsedPaper | Refusal | None:
    """The parsed paper if no worker is needed for it; None for a file to send."""
    try:
        require_regular(file, MOST_SENT)
    except (OSError, FileRefusedError):
        return parse_file(file, kept, pdf)
    needs_tesseract = pdf.ocr is not None and file.suffix.lower() == PDF  # that of this computer
    if needs_tesseract or printable(str(file)) != str(file):
        return parse_file(file, kept, pdf)
    if kept is None or file.suffix.lower() in MARKDOWN:
        return None
    try:
        return parse_file(file, _CachedOnly(kept), pdf)
    except _NotCachedError:
        return None


def _split(
    jobs: RayJobs, papers: Sequence[tuple[str, ParsedPaper]], chunking: Chunking
) -> list[tuple[Chunk, ...] | str]:
    """Split papers on the cluster."""
    done: dict[int, tuple[Chunk, ...] | str] = {}
    unsplit = (
        Job(number, "split", partial(_arguments, key, parsed, chunking), 2 * len(parsed.text))
        for number, (key, parsed) in enumerate(papers)
    )
    for job, chunks in jobs.run(unsplit):
        done[job.number] = LOST if chunks is None else chunks
    return [done[number] for number in range(len(papers))]


def _arguments(*given: Any) -> tuple[Any, ...]:
    return given


async def _embed(jobs: RayJobs, texts: Texts, on_done: Callable[[int], None]) -> Mapping[str, Vector]:
    """Embed texts on the cluster with the bundled model."""
    loop = asyncio.get_running_loop()
    return await in_thread(_embed_all, jobs, texts, lambda count: loop.call_soon_threadsafe(on_done, count))


def _embed_all(jobs: RayJobs, texts: Texts, on_done: Callable[[int], object]) -> dict[str, Vector]:
    """Embed texts in batches, and one by one those of a batch whose worker ends, so that no text costs another."""
    vectors: dict[str, Vector] = {}
    for size, tries in ((_BATCH, 1), (1, TRIES)):
        names = [name for name in texts if name not in vectors]
        batches = [names[start : start + size] for start in range(0, len(names), size)]
        unembedded = (
            Job(number, "embed", partial(_arguments, [texts[name] for name in batch]), tries=tries)
            for number, batch in enumerate(batches)
        )
        for job, rows in jobs.run(unembedded):
            if rows is not None:
                vectors.update(zip(batches[job.number], rows, strict=True))
                on_done(len(rows))
    return vectors
