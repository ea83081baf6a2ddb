"""Parses, splits and embeds on a Ray cluster.

Workers get bytes, parsed papers and texts, never a setting or key, and need no shared disk. Bibliography, caches,
stores and calls to an embedding endpoint stay here, so its limits hold for the whole cluster.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..documents import Chunk
from ..documents.bibliography import Refusal
from ..documents.markdown import ParsedPaper
from ..documents.pdf.ocr import Ocr
from ..documents.safe_files import FileRefusedError, read_regular, require_regular
from ..documents.sandbox import in_thread
from ..models.embeddings.bundled_models import LocalEmbedding, count_tokens_each
from ..models.embeddings.protocol import EmbeddingModel, Vector, Vectors
from .ray_jobs import LOST, TRIES, RayJob, RayJobs, RayRequest, ray_jobs
from .reading import (
    MARKDOWN,
    PDF,
    Chunking,
    ConvertedFiles,
    IngestExecutor,
    Texts,
    embed_texts,
    local_executor,
    parse_file,
    printable,
    split_papers,
)

MOST_SENT: Final = 64_000_000  # bytes of a file; a larger one is parsed here
_BATCH: Final = 16  # texts embedded by one task: about a second of work


@asynccontextmanager
async def ray_executor(request: RayRequest | None, embedding: EmbeddingModel) -> AsyncIterator[IngestExecutor]:
    """The executor on the requested Ray cluster, or the local one without a request; raises like `ray_jobs`."""
    if request is None:
        yield local_executor(embedding)
        return
    async with ray_jobs(request) as jobs:
        if isinstance(embedding, LocalEmbedding):
            loop = asyncio.get_running_loop()

            async def embed(texts: Texts, on_done: Callable[[int], None]) -> Mapping[str, Vector]:
                return await in_thread(_embed, jobs, texts, lambda count: loop.call_soon_threadsafe(on_done, count))

            yield IngestExecutor(partial(_parse, jobs), partial(_split, jobs), embed, _BATCH * jobs.at_once)
        else:  # an endpoint: limits, retries, the journal of paid calls and the key stay in this process
            here = partial(embed_texts, embedding)
            yield IngestExecutor(partial(_parse, jobs), partial(_split, jobs), here, embedding.at_once)


def _parse(
    jobs: RayJobs, files: Sequence[Path], kept: ConvertedFiles | None, ocr: Ocr | None
) -> list[ParsedPaper | Refusal]:
    """Parse files on the cluster, and here those that are cached, too large or cannot be sent."""
    parsed: dict[int, ParsedPaper | Refusal] = {}
    digests: dict[int, str] = {}  # of the bytes sent last; empty if the file could not be read

    def load(number: int) -> tuple[bytes, str, Ocr | None]:
        try:
            data = read_regular(files[number], MOST_SENT)
        except (OSError, FileRefusedError):
            data, digests[number] = b"", ""
        else:
            digests[number] = hashlib.sha256(data).hexdigest()
        return data, str(files[number]), ocr

    def unparsed() -> Iterator[RayJob]:
        for number, file in enumerate(files):
            here = _parse_here(file, kept, ocr)
            if here is not None:
                parsed[number] = here
                continue
            size = file.stat().st_size if file.is_file() else 0  # it may have vanished meanwhile
            yield RayJob(number, "parse", partial(load, number), size)

    for job, result in jobs.run(unparsed()):
        file, digest = files[job.number], digests[job.number]
        if result is None:
            parsed[job.number] = Refusal(str(file), LOST)
        elif not digest:  # it has vanished meanwhile: say why
            parsed[job.number] = parse_file(file, kept, ocr)
        else:
            parsed[job.number], conversion = result
            if kept is not None and conversion is not None:
                kept.put(file, conversion, digest)
    return [parsed[number] for number in range(len(files))]


def _parse_here(file: Path, kept: ConvertedFiles | None, ocr: Ocr | None) -> ParsedPaper | Refusal | None:
    """The parsed paper if no worker is needed; None if the file must be sent."""
    suffix = file.suffix.lower()
    needs_tesseract = ocr is not None and suffix == PDF  # on this computer
    try:
        require_regular(file, MOST_SENT)
        cached = kept is not None and suffix not in MARKDOWN and kept.get(file) is not None
    except (OSError, FileRefusedError):
        return parse_file(file, kept, ocr)
    return parse_file(file, kept, ocr) if needs_tesseract or cached or printable(str(file)) != str(file) else None


def _split(
    jobs: RayJobs, papers: Sequence[tuple[str, ParsedPaper]], chunking: Chunking
) -> list[tuple[Chunk, ...] | str]:
    unsplit = (
        RayJob(number, "split", partial(tuple, (key, parsed, chunking)), 2 * len(parsed.text))
        for number, (key, parsed) in enumerate(papers)
    )
    done = {job.number: LOST if chunks is None else chunks for job, chunks in jobs.run(unsplit)}
    return [done[number] for number in range(len(papers))]


def _embed(jobs: RayJobs, texts: Texts, on_done: Callable[[int], object]) -> dict[str, Vector]:
    """Embed texts in batches; if a worker dies, retry its batch one by one, so that one text cannot fail others."""
    vectors: dict[str, Vector] = {}
    for size, tries in ((_BATCH, 1), (1, TRIES)):
        names = [name for name in texts if name not in vectors]
        batches = [names[start : start + size] for start in range(0, len(names), size)]
        unembedded = (
            RayJob(number, "embed", partial(tuple, ([texts[name] for name in batch],)), tries=tries)
            for number, batch in enumerate(batches)
        )
        for job, rows in jobs.run(unembedded):
            if rows is not None:
                vectors.update(zip(batches[job.number], rows, strict=True))
                on_done(len(rows))
    return vectors


def parse(data: bytes, file: str, ocr: Ocr | None) -> tuple[ParsedPaper | Refusal, dict[str, Any] | None]:
    """Parse a file's bytes on a worker; also returns its converted content, if any. Raises OSError without space."""
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        copy, cache = Path(folder, f"paper{Path(file).suffix}"), ConvertedFiles(Path(folder, "converted"))
        copy.write_bytes(data)
        parsed = parse_file(copy, cache, ocr)
        if isinstance(parsed, Refusal):
            reason = parsed.reason.replace(str(copy.resolve()), file).replace(str(copy), file)
            return Refusal(file, reason), None
        return parsed, cache.get(copy)


def split(key: str, parsed: ParsedPaper, chunking: Chunking) -> tuple[Chunk, ...]:
    return next(split_papers(count_tokens_each, [(key, parsed)], chunking))


def embed(texts: list[str]) -> Vectors:
    """The vectors of texts from the bundled model on a worker, [n, d]."""
    model = LocalEmbedding()
    return np.stack([model.embed_text(text) for text in texts])
