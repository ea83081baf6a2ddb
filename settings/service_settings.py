"""The settings of other sources of papers than files: metadata services and Zotero."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from .key_trust import ApiKey

MetadataService = Literal["crossref", "datacite", "openalex", "semantic_scholar"]


class MetadataSettings(BaseModel):
    """A part of `Settings`, which names where each value was set."""

    metadata_services: list[MetadataService] = Field(
        ["crossref", "datacite", "openalex", "semantic_scholar"],
        description="Services that 'papers enrich', 'add' and 'check --look-up' ask, as a JSON list; no other does.",
    )
    metadata_mailto: str = Field(
        "",
        max_length=200,
        pattern=r"^([^\s@<>()\"]+@[^\s@<>()\"]+)?$",
        description="Your email address for the polite pools of Crossref and OpenAlex; not set: none is sent.",
    )
    metadata_days: float = Field(
        7, ge=0, le=3650, description="Days for which an answer of a metadata service is taken from the cache."
    )
    crossref_base_url: str = Field("https://api.crossref.org", description="Address of Crossref's REST API.")
    datacite_base_url: str = Field("https://api.datacite.org", description="Address of DataCite's REST API.")
    openalex_base_url: str = Field("https://api.openalex.org", description="Address of OpenAlex's API.")
    openalex_api_key: ApiKey | None = Field(None, description="Key for OpenAlex; without one it answers few requests.")
    semantic_scholar_base_url: str = Field(
        "https://api.semanticscholar.org/graph/v1", description="Address of Semantic Scholar's Graph API."
    )
    semantic_scholar_api_key: ApiKey | None = Field(None, description="Key for Semantic Scholar.")
    retraction_watch: Path | None = Field(None, description="Retraction Watch's CSV file of retractions.")
    cite_retracted: bool = Field(False, description="Let sections and answers cite retracted papers.")
    citation_key: str = Field(
        "auth.lower + year + veryshorttitle.lower",
        min_length=1,
        max_length=300,
        description="Pattern for the keys of papers added by identifier or from Zotero, in Better BibTeX's terms.",
    )


class ZoteroSettings(BaseModel):
    """A part of `Settings`, which names where each value was set."""

    zotero: str = Field(
        "",
        max_length=1000,
        description="Zotero's data folder, or the address of its local API; not set: the API at "
        "http://localhost:23119, else the folder ~/Zotero.",
    )
    zotero_linked: Path | None = Field(
        None, description="Folder of Zotero's linked files; attachments that are linked are only read inside it."
    )
    zotero_seconds: float = Field(
        30, ge=1, le=86_400, description="Seconds between two polls of 'sync zotero --watch'."
    )
