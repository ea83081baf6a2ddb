"""All settings, with their bounds and a one-line description.

Precedence: an argument or flag, then `CITELOOM_*` in the environment, then `.env`, then `citeloom.toml` in the working
directory, then the user's own `~/.config/citeloom/citeloom.toml`, then the default. Settings are plain values and
record where each was set: values set by a folder's files are trusted less (`key_trust.py`).
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, PrivateAttr, SecretStr, ValidationError

from ..errors import ConfigurationError
from ..invalid_values import describe_invalid, field_path
from ..section_kinds import Ask as Ask, Depth as Depth
from . import key_trust
from .addresses import DatabaseUrl, VectorsUrl, home_address, vectors_url
from .key_trust import ApiKey, is_own, user_configuration

MetadataService = Literal["crossref", "datacite", "openalex", "semantic_scholar"]
CitationStyle = Literal["key", "pandoc", "latex", "numeric", "key-page"]
OcrMode = Literal["off", "auto"]
RetrievalMode = Literal["hybrid", "dense", "bm25"]
RoleName = Literal["agent", "reader", "writer", "judge", "summarizer", "vision"]

EXTRACTIVE = "extractive"
LOCAL_EMBEDDING = "local"
OPENAI_BASE_URL = "https://api.openai.com/v1"


class Price(BaseModel):
    """The price of a model per million tokens; all prices must be in the same currency."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0, description="Price per million tokens sent.")
    output: float = Field(0, ge=0, description="Price per million tokens received.")


class Settings(BaseModel):
    """All settings of Citeloom; values that are not given are read from the environment and the files."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    home: Annotated[Path | DatabaseUrl | None, BeforeValidator(home_address)] = Field(
        None, description="Folder, or PostgreSQL database (postgresql://...), that holds library, journal and runs."
    )
    vectors: Annotated[VectorsUrl | None, BeforeValidator(vectors_url)] = Field(
        None, description="Milvus (http://HOST:19530, or a .db file) that searches a library in PostgreSQL."
    )

    chat_model: str = Field(
        EXTRACTIVE, min_length=1, description="Chat model name at the endpoint, or 'extractive' to work without one."
    )
    chat_base_url: str = Field(OPENAI_BASE_URL, description="OpenAI-compatible endpoint of the chat model.")
    chat_api_key: ApiKey | None = Field(None, description="Key for the chat endpoint.")
    agent_model: str | None = Field(None, description="Overrides chat_model for the search planner.")
    agent_base_url: str | None = Field(None, description="Overrides chat_base_url for the search planner.")
    agent_api_key: ApiKey | None = Field(None, description="Overrides chat_api_key for the search planner.")
    reader_model: str | None = Field(None, description="Overrides chat_model for reading evidence.")
    reader_base_url: str | None = Field(None, description="Overrides chat_base_url for reading evidence.")
    reader_api_key: ApiKey | None = Field(None, description="Overrides chat_api_key for reading evidence.")
    writer_model: str | None = Field(None, description="Overrides chat_model for writing sections.")
    writer_base_url: str | None = Field(None, description="Overrides chat_base_url for writing sections.")
    writer_api_key: ApiKey | None = Field(None, description="Overrides chat_api_key for writing sections.")
    judge_model: str | None = Field(None, description="Overrides chat_model for judging support.")
    judge_base_url: str | None = Field(None, description="Overrides chat_base_url for judging support.")
    judge_api_key: ApiKey | None = Field(None, description="Overrides chat_api_key for judging support.")
    judge_protocol: Literal["chat", "minicheck"] = Field(
        "chat",
        description="How `check` asks the judge: 'chat' for any chat model, 'minicheck' for a small checker that"
        ' answers Yes or No to "Document: ... Claim: ...".',
    )
    summarizer_model: str | None = Field(None, description="Overrides chat_model for paper summaries.")
    summarizer_base_url: str | None = Field(None, description="Overrides chat_base_url for paper summaries.")
    summarizer_api_key: ApiKey | None = Field(None, description="Overrides chat_api_key for paper summaries.")

    vision_model: str | None = Field(
        None, min_length=1, description="Model that describes the figures of papers; not set: none are described."
    )
    vision_base_url: str | None = Field(None, description="Overrides chat_base_url for describing figures.")
    vision_api_key: ApiKey | None = Field(None, description="Overrides chat_api_key for describing figures.")

    embedding_model: str = Field(
        LOCAL_EMBEDDING,
        min_length=1,
        description="'local' for the bundled model, or a model name at the embedding endpoint.",
    )
    embedding_base_url: str = Field(OPENAI_BASE_URL, description="OpenAI-compatible embedding endpoint.")
    embedding_api_key: ApiKey | None = Field(None, description="Key for the embedding endpoint.")

    temperature: float = Field(0.2, ge=0, le=2, description="Sampling temperature of the chat models.")
    request_timeout: float = Field(120, ge=1, le=3600, description="Timeout of one model call, in seconds.")
    max_retries: int = Field(6, ge=0, le=20, description="Number of retries after 429 and 5xx responses.")
    max_concurrency: int = Field(20, ge=1, le=256, description="Maximum of concurrent model calls per endpoint.")

    max_calls: int | None = Field(None, ge=1, description="Maximum number of model requests per run.")
    max_tokens: int | None = Field(None, ge=1, description="Maximum number of tokens per run.")
    max_cost: float | None = Field(None, gt=0, description="Maximum cost of a run, by the configured prices.")
    interrupts: list[Ask] = Field(
        [], max_length=5, description="What a run asks you: needs, evidence, sentences, budget, or all; a JSON list."
    )
    prices: dict[str, Price] = Field(
        default_factory=dict,
        description="Price of each model per million tokens, by its name: {'some-model': {'input': 1, 'output': 2}}.",
    )

    retrieval_mode: RetrievalMode = Field(
        "hybrid", description="How chunks are found: by vectors and words combined, by vectors, or by words."
    )
    rerank: float = Field(
        0.0, ge=0, le=1, description="Weight of the cross-encoder in ranking found chunks; 1: it alone decides."
    )
    top_k_initial: int = Field(40, ge=1, le=200, description="Number of chunks that each search proposes for reading.")
    screened_papers: int = Field(
        300, ge=0, le=10_000, description="Number of papers whose cards are read for a broad question; 0: none."
    )
    top_k_final: int = Field(
        8, ge=1, le=50, description="Number of findings shown per need; more of specific ones, and for a survey."
    )
    per_paper: int = Field(2, ge=1, le=20, description="Number of quotes per paper and query, without a chat model.")
    window_tokens: int = Field(1200, ge=200, le=8000, description="Number of tokens of a section read around a hit.")
    read_tokens: int = Field(
        16_000, ge=500, le=500_000, description="Number of tokens the first search reads; twice as many for a section."
    )
    search_tokens: int = Field(
        1200, ge=200, le=100_000, description="Number of tokens each later search reads; twice as many for a section."
    )
    paper_share: float = Field(
        0.5, gt=0, le=1, description="Largest share of what is read for a question that one paper may take."
    )
    vector_weight: float = Field(0.4, ge=0, le=1, description="Weight of the cosine in the combined score.")
    llm_weight: float = Field(0.6, ge=0, le=1, description="Weight of the reader's score.")
    score_threshold: float = Field(0.35, ge=0, le=1, description="Reader's score below which a chunk is dropped.")
    answer_threshold: float = Field(
        0.5, ge=0, le=1, description="Reader's score that one passage must reach for a question to be answered."
    )
    enough_findings: int = Field(
        4, ge=1, le=1000, description="Number of findings per need to end a search for a question about several papers."
    )
    max_search_iterations: int = Field(5, ge=0, le=50, description="Maximum number of further searches by the agent.")
    max_repairs: int = Field(2, ge=0, le=5, description="Maximum number of repairs of a draft that fails a check.")
    summary_words: int = Field(60, ge=10, le=300, description="Length of an evidence summary, in words.")
    depth: Depth = Field(
        "standard",
        description="How much a text says: brief (only what decides), standard (what matters) or thorough (all of it).",
    )
    section_words: int | None = Field(
        None, ge=80, le=5000, description="Target length of a section, in words; not set: depends on the depth."
    )
    answer_words: int | None = Field(
        None, ge=50, le=5000, description="Target length of an answer, in words; not set: by depth and evidence."
    )
    answer_sources: int = Field(8, ge=1, le=50, description="Maximum number of papers that an answer may use.")
    conversation_tokens: int = Field(
        4000, ge=0, le=100_000, description="Maximum tokens of a prompt for the earlier turns of a conversation."
    )
    conversation_days: int | None = Field(
        None, ge=1, description="Days after its last turn until a conversation is deleted; not set: never."
    )
    max_library_size: ByteSize | None = Field(
        None,
        ge=1_000_000,
        le=10**15,
        description="Space for papers and plots stored by a server ('500MB', '20GB'); not set: no limit.",
    )
    context_tokens: int | None = Field(
        None,
        ge=2048,
        le=100_000_000,
        description="Context size of the chat server in tokens, prompt and answer; not set: as the server reports.",
    )
    max_output_tokens: int = Field(4000, ge=100, le=100_000, description="Token limit of one answer.")
    prompts_dir: Path | None = Field(None, description="Folder whose prompt files replace the bundled ones.")
    cite_style: CitationStyle = Field("key", description="How a citation is shown in the text.")
    csl: str = Field("", description="CSL style of the references: a file, or a name from the extra 'styles'.")
    strict: bool = Field(False, description="Remove sentences that fail a check instead of marking them.")

    chunk_tokens: int = Field(400, ge=100, le=480, description="Target size of a chunk, in tokens.")
    chunk_overlap: int = Field(100, ge=0, le=200, description="Number of tokens shared by neighbouring chunks.")
    ocr: OcrMode = Field(
        "off",
        description="Whether pages of a PDF without text are read by OCR: 'auto' reads them if tesseract is installed.",
    )
    ocr_languages: str = Field(
        "eng",
        max_length=200,
        pattern=r"^\w+(/\w+)?(\+\w+(/\w+)?)*$",
        description="Languages of scanned pages, in tesseract's names: 'eng+deu'.",
    )

    zotero: str = Field(
        "",
        max_length=1000,
        description="Zotero's data folder, or the address of its local API; not set: the API at "
        "http://localhost:23119, else the folder ~/Zotero.",
    )
    zotero_linked: Path | None = Field(
        None, description="Folder of Zotero's linked files; linked attachments are read only inside it."
    )
    zotero_seconds: float = Field(30, ge=1, le=86_400, description="Seconds between polls of 'sync zotero --watch'.")

    metadata_services: list[MetadataService] = Field(
        ["crossref", "datacite", "openalex", "semantic_scholar"],
        description="Services that 'papers enrich', 'add' and 'check --look-up' ask, as a JSON list.",
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
    pinned: list[str] = Field(
        default_factory=list, max_length=50, description="Keys of papers that each section or answer reads first."
    )
    preferences: list[Annotated[str, Field(max_length=300)]] = Field(
        default_factory=list,
        max_length=1000,
        description="What the author wants of every text, in lines such as 'participants, not subjects', 'British "
        "spelling' or 'never cite KEY'; the lines of 'citeloom memory' are added.",
    )
    use_memory: bool = Field(True, description="Respect the lines of 'citeloom memory'.")
    user: str = Field("", max_length=100, description="Whose memory is used; not set: the name of the account.")
    cite_retracted: bool = Field(False, description="Let sections and answers cite retracted papers.")
    citation_key: str = Field(
        "auth.lower + year + veryshorttitle.lower",
        min_length=1,
        max_length=300,
        description="Pattern for the keys of papers added by identifier or from Zotero, in Better BibTeX's terms.",
    )

    _set: dict[str, str] = PrivateAttr(default_factory=dict)
    _own: dict[str, str] = PrivateAttr(default_factory=dict)
    _vouched: frozenset[str] = PrivateAttr(default=frozenset())

    def __init__(self, *, origins: Mapping[str, str] | None = None, **given: Any) -> None:
        """Read all sources; `origins` names the origins of given values that do not come from the user."""
        values, found_origins, own = _find_values(given, origins or {})
        super().__init__(**values)
        self._set, self._own = found_origins, own

    def with_own(self, values: Mapping[str, Any], origin: str) -> Settings:
        """Copy the settings with values that the user has just set; `origin` names where they are stored."""
        changed = self.model_copy(update=dict(values))
        changed._set = {name: value for name, value in self._set.items() if name not in values}
        changed._set |= {name: origin for name, value in values.items() if value is not None}
        changed._own = self._own | {
            name: value for name, value in values.items() if name.endswith("_base_url") and value
        }
        return changed

    @property
    def describes_figures(self) -> bool:
        return self.vision_model not in (None, EXTRACTIVE)

    def origin(self, name: str) -> str:
        """The origin of a setting: a flag, the environment, a file, or "default"."""
        return self._set.get(name, key_trust.DEFAULT)

    def origins(self) -> dict[str, str]:
        """The origin of each setting that is not a default."""
        return dict(self._set)

    def address_of(self, role: RoleName) -> tuple[str, str]:
        """Model and base URL of a role: its own if set, else the chat model's."""
        return getattr(self, f"{role}_model") or self.chat_model, getattr(self, self.url_setting(role))

    def role_endpoint(self, role: RoleName) -> tuple[str, str, SecretStr | None]:
        """Model, base URL and key for a role; raises `ConfigurationError` if the key may not be sent there."""
        model, url = self.address_of(role)
        if model == EXTRACTIVE:
            return model, url, None
        setting = self.url_setting(role)
        names = [f"{role}_api_key", *(["chat_api_key"] if setting == "chat_base_url" else [])]
        return model, url, self._key_for(setting, names)

    def embedding_endpoint(self) -> tuple[str, str, SecretStr | None]:
        """Model, base URL and key for embeddings; raises like `role_endpoint`."""
        key = self._key_for("embedding_base_url", ["embedding_api_key"])
        return self.embedding_model, self.embedding_base_url, key

    def service_endpoint(self, service: MetadataService) -> tuple[str, SecretStr | None, str]:
        """Base URL, key and contact address for a metadata service; raises like `role_endpoint`.

        The contact address is sent only to a service configured by the user, not to one set by a folder.
        """
        setting = f"{service}_base_url"
        keys = [name for name in (f"{service}_api_key",) if name in type(self).model_fields]
        trusted = is_own(self.origin(setting)) or not is_own(self.origin("metadata_mailto"))
        return getattr(self, setting), self._key_for(setting, keys), self.metadata_mailto if trusted else ""

    def key_marks(self, roles: Collection[RoleName]) -> list[str]:
        """Marks stored with a run to resume it with the same keys at the same addresses, without revealing them."""
        used = (self.role_endpoint(role) for role in roles)
        return sorted({key_trust.key_mark(key, url) for _, url, key in used if key is not None})

    def url_setting(self, role: RoleName) -> str:
        own = f"{role}_base_url"
        return "chat_base_url" if getattr(self, own) in (None, "", self.chat_base_url) else own

    def _key_for(self, setting: str, names: list[str]) -> SecretStr | None:
        """The first of the keys that is set, else OpenAI's; raises `ConfigurationError` if it may not be sent."""
        url: str = getattr(self, setting)
        usual = type(self).model_fields[setting].default or OPENAI_BASE_URL
        named = next((name for name in names if getattr(self, name) is not None), None)
        if named is not None:
            given = getattr(self, named), f"CITELOOM_{named.upper()}", self.origin(named)
            where = url, setting, self.origin(setting), self._own.get(setting, usual)
        elif (ambient := ambient_key(url)) is not None:
            # OpenAI's own address is safe for its key, whoever set it.
            given = ambient, "OPENAI_API_KEY", key_trust.ENVIRONMENT
            where = url, setting, key_trust.DEFAULT, url
        else:
            return None
        key = key_trust.KeyForAddress(*given, *where)
        key_trust.require_trusted(key, self._vouched)
        return key.secret


def ambient_key(base_url: str) -> SecretStr | None:
    """`OPENAI_API_KEY`, but only for OpenAI's own address; raises `ConfigurationError` if it is not a valid key."""
    if urlsplit(base_url).hostname != urlsplit(OPENAI_BASE_URL).hostname:
        return None
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    try:
        return key_trust.clean_key(SecretStr(key)) if key else None
    except ValueError as error:
        message = f"OPENAI_API_KEY: {error}."
        raise ConfigurationError(message, help="Copy it again, without surrounding characters.") from None


def load_settings(
    *,
    brought: Mapping[str, Any] | None = None,  # values that do not come from the user, such as those of a run
    origin: str = key_trust.FLAG,  # names the source of these
    vouched: Collection[str] = (),  # marks of keys and addresses used together before (`Settings.key_marks`)
    flags: Mapping[str, str] | None = None,  # the options by which the user gave overrides, by setting, for errors
    **overrides: Any,  # values given by the user, such as flags; None values are ignored
) -> Settings:
    """Load settings from all sources; raises `ConfigurationError` naming the field and its bounds."""
    given = {name: value for name, value in overrides.items() if value is not None}
    others = {name: value for name, value in (brought or {}).items() if value is not None and name not in given}
    try:
        settings = Settings(origins=dict.fromkeys(others, origin), **others, **given)
    except ValidationError as error:
        first = error.errors()[0]
        option = (flags or {}).get(str(first["loc"][0])) if str(first["loc"][0]) in given else None
        name = field_path(first["loc"])
        secret = name.endswith(("_api_key", "_base_url")) or name in ("home", "vectors")
        wrong = f"{describe_invalid(first, show=not secret)}."
        if option is not None:
            raise ConfigurationError(f"{option}: {wrong}") from error
        message = f"Setting {name} (CITELOOM_{str(first['loc'][0]).upper()}): {wrong}"
        raise ConfigurationError(message, help="See '{citeloom} doctor' for the settings in force.") from error
    settings._vouched = frozenset(vouched)
    return settings


_PREFIX: Final = "citeloom_"
KEYRING: Final = "keyring"  # in place of a key, and the program's name in the keyring


def _with_keyring(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of the user's own file, with keys filled in from the operating system's keyring."""
    kept = [name for name, value in values.items() if name.endswith("_api_key") and value == KEYRING]
    if not kept:
        return values
    try:
        import keyring

        found = {name: keyring.get_password("citeloom", name) for name in kept}
        return {name: value for name, value in {**values, **found}.items() if value is not None}
    except Exception as error:
        message = f"{user_configuration()}: {kept[0]} is in the keyring, which cannot be read ({type(error).__name__})."
        raise ConfigurationError(message, help="Unlock the keyring, or set the key in the environment.") from error


def _find_values(
    given: Mapping[str, Any], given_origins: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """The values of all sources, the origin of each, and the user's own addresses, in case a folder sets others.

    Earlier sources take precedence, even for single entries of an object. Raises `ConfigurationError` for an unreadable
    source.
    """
    own_file = user_configuration()
    sources: list[tuple[Mapping[str, Any], str]] = [
        *(({name: value}, given_origins.get(name, key_trust.FLAG)) for name, value in given.items()),
        (_read_variables(os.environ, key_trust.ENVIRONMENT), key_trust.ENVIRONMENT),
        (_read_variables(_read_file(Path(key_trust.DOTENV), _parse_dotenv), key_trust.DOTENV), key_trust.DOTENV),
        (_read_file(Path(key_trust.FOLDER_TOML), tomllib.loads), key_trust.FOLDER_TOML),
        (_with_keyring(_read_file(own_file, tomllib.loads)), str(own_file)),
    ]
    values, origins, own = dict[str, Any](), dict[str, str](), dict[str, str]()
    for found, origin in sources:
        for name in Settings.model_fields.keys() & found.keys():
            value = found[name]
            if name.endswith("_base_url") and is_own(origin) and isinstance(value, str):
                own.setdefault(name, value)
            known = values.setdefault(name, value)
            if isinstance(known, dict) and isinstance(value, dict):
                values[name] = {**value, **known}
            origins.setdefault(name, origin)
    return values, origins, own


def _read_variables(variables: Mapping[str, str | None], origin: str) -> dict[str, Any]:
    """The settings among environment variables; an empty variable counts as not set."""
    found: dict[str, Any] = {}
    for variable, text in variables.items():
        name = variable.lower().removeprefix(_PREFIX)
        if text and name in Settings.model_fields and variable.lower().startswith(_PREFIX):
            try:
                in_json = get_origin(Settings.model_fields[name].annotation) in (dict, list)
                found[name] = json.loads(text) if in_json else text
            except (ValueError, RecursionError):
                message = f"{variable} ({origin}): is not valid JSON."
                raise ConfigurationError(message, help="Its value must be JSON.") from None
    return found


def _read_file(path: Path, parse: Callable[[str], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return parse(path.read_text("utf-8")) if path.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: {error}.", help="Correct or remove the file.") from error


def _parse_dotenv(text: str) -> dict[str, str | None]:
    """Parse `.env` without expanding `${NAME}`, which would let a foreign folder copy the environment into settings."""
    from dotenv import dotenv_values

    written = dotenv_values(stream=StringIO(text), interpolate=False)
    for name, value in written.items():
        if name.lower().startswith(_PREFIX) and "${" in (value or ""):
            message = f"{Path(key_trust.DOTENV)}: {name} holds '${{', but variables are not expanded there."
            raise ConfigurationError(message, help="Write the value itself, or set it in the environment.")
    return written
