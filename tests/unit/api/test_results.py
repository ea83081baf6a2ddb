"""The fields of records are described where they are declared."""

from __future__ import annotations

from pydantic import TypeAdapter

from citeloom.api.results import FoundPassages
from citeloom.server.response_models import PaperOnServer


def test_the_meaning_of_a_key_becomes_its_description_in_schemas() -> None:
    schema = TypeAdapter(FoundPassages).json_schema()
    passage = schema["$defs"]["FoundPassage"]
    assert passage["description"] and "page" in passage["required"]
    assert "citation key" in passage["properties"]["key"]["description"].lower()
    inherited = TypeAdapter(PaperOnServer).json_schema()["properties"]
    assert inherited["bibtex"]["description"] and inherited["added_here"]["description"]
