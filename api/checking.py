"""Checks a user's own text, or single claims, against the papers that they cite and the whole library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from ..claims.claim_records import CheckResult, ClaimInput, ClaimsResult
from ..graph.session import Session
from .arguments import requires_open
from .blocking import blocking

# What is checked: claims with citations, sentences without, numbers and names, the reference list.
CheckPart = Literal["claims", "uncited", "numbers", "references"]
CheckFormat = Literal["html", "docx", "tex", "json", "sarif"]


@requires_open
async def acheck_claims(
    session: Session, claims: Sequence[ClaimInput | str], *, judge: bool = True, most: int = 5, fresh: bool = False
) -> ClaimsResult:
    """Compare claims with papers or given passages; returns each claim's label, words and passages.

    Args:
        session: an open library.
        claims: sentences, or records of `ClaimInput` with the cited `papers` or `passages` to compare with; a sentence
            alone is compared with the passages nearest to it in the whole library.
        judge: whether a model judges; if not, the passages are returned, best first, and every label is "unjudged".
        most: passages per cited paper.
        fresh: judge again, without reusing answers.

    Raises `InputError` for an unknown key, and `PausedError` when a budget is reached or the endpoint is lost.
    """
    raise NotImplementedError


@requires_open
async def acheck_text(
    session: Session,
    file: Path | str,
    *,
    experiment: Path | str | None = None,
    bib: Path | str | None = None,
    only: Sequence[CheckPart] | CheckPart = (),
    max_calls: int | None = None,
    fresh: bool = False,
    out: Path | str | None = None,
    formats: Sequence[CheckFormat] | CheckFormat = (),
    on_notice: Callable[[str], None] = lambda _: None,
) -> CheckResult:
    """Check every sentence of a text of the user's own; nothing in it is changed.

    Args:
        session: an open library.
        file: the text: `.tex`, `.md`, `.docx`, `.typ` or `.pdf`.
        experiment: the `exp.json` whose numbers the text may state without a source.
        bib: the bibliography, if the text does not name it.
        only: parts to check; all if omitted.
        max_calls: limit on model requests; beyond it, sentences stay unjudged, and the same call goes on later.
        fresh: judge again, without reusing answers.
        out: folder for the files in `formats`; none are written if omitted.
        formats: `html` (one-file report), `docx` (a copy with comments), `tex` (a copy with notes), `json`, `sarif`.
        on_notice: called with one line about the work ahead.

    Raises `InputError` for a file that cannot be read, and `PausedError` if the endpoint is lost.
    """
    raise NotImplementedError


check_claims = requires_open(blocking(acheck_claims))
check_text = requires_open(blocking(acheck_text))
