"""The OpenAPI document holds for what is sent to the server: no answer that it does not name, and no 5xx."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.support.served_app import Served, served_app

SOME = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def served(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("openapi") / "home")
    with served_app(home, per_minute=1_000_000, max_body=2**20) as server:
        yield server


def document(served: Served) -> dict[str, Any]:
    described: dict[str, Any] = served.api.get("/openapi.json").json()
    return described


def test_every_route_documents_its_errors(served: Served) -> None:
    described = document(served)
    assert described["openapi"].startswith("3.1")
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            answers = operation["responses"]
            assert operation["summary"] and operation["description"], path
            assert {"400", "401", "403", "421", "422", "429", "500"} <= answers.keys(), (method, path)
            for status, answer in answers.items():
                if int(status) >= 400:
                    schema = answer["content"]["application/problem+json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Problem"}, (method, path, status)


def test_every_post_that_costs_accepts_an_idempotency_key(served: Served) -> None:
    # An edited sentence is judged once for the same words: a repeat is answered from the journal.
    # Equal plots are stored once; a text that is checked again costs only what changed.
    # An item of an update is accepted once, by its id.
    # A sentence that is rewritten again is answered from the journal; a text taken back again is the same version.
    # A line of the memory is kept once, and an answered proposal is no longer open.
    free = (
        *("/cancel", "/checks", "/conversations", "/experiments/check", "/plots", "/sentences"),
        *("/memory", "/memory/proposals/{line_id}", "/updates", "/rewrite", "/import"),
    )
    for path, methods in document(served)["paths"].items():
        if "post" in methods and not path.endswith(free):
            names = [parameter["name"] for parameter in methods["post"].get("parameters", ())]
            assert "idempotency-key" in names, path


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Overriding standard format")  # a strategy of Schemathesis for addresses
def test_every_answer_is_documented(served: Served, mode: str) -> None:
    import schemathesis  # takes each worker a second, also those that run other tests
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

    promises = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
    schema = schemathesis.openapi.from_dict(document(served))
    for found in schema.get_all_operations():

        @given(case=found.ok().as_strategy(generation_mode=GenerationMode(mode)))
        @SOME
        def call(case: schemathesis.Case) -> None:
            answer = case.call(base_url=served.url, timeout=300)
            case.validate_response(answer, checks=[not_a_server_error, *promises])

        with suppress(Unsatisfiable):  # there is nothing to get wrong
            call()
