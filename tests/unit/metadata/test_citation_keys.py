"""Citation keys by patterns in Better BibTeX's terms."""

from __future__ import annotations

import pytest

from citeloom.errors import ConfigurationError
from citeloom.metadata.bib_entry import KeyFields, KeyPattern

FIELDS = KeyFields(
    ["Sánchez-Lengeling", "van der Meer", "O'Brien"],
    "On the Deep-Learning of Looms: A Survey",
    2021,
    "Journal of Looms",
    "journal-article",
)


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("auth.lower + year + veryshorttitle.lower", "sanchezlengeling2021deeplearning"),
        ("auth.lower + shorttitle(3,3) + year", "sanchezlengelingDeepLearningLoomsSurvey2021"),
        ("auth(3).upper + shortyear", "SAN21"),
        ("auth(0, 2) + '_' + year", "vanderMeer_2021"),
        ("authors(2) + year", "SanchezLengelingvanderMeer2021"),
        ("authEtAl.lower + year", "sanchezlengelingetal2021"),
        ("authorLast + year", "OBrien2021"),
        ("journal.abbr + year", "JoL2021"),
        ('"key:" + year', "key:2021"),
        ("title.substring(1,6) + year.postfix('x')", "OnTheD2021x"),
        ("AUTH.Lower+YEAR", "sanchezlengeling2021"),
    ],
)
def test_a_pattern_produces_its_key(pattern: str, key: str) -> None:
    assert KeyPattern(pattern).key(FIELDS) == key


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("auth.shout", "'shout'"),
        ("author + year", "'author'"),
        ("auth + ", "'auth +'"),
        ("auth year", "'year'"),
        ("auth(-1)", "'auth(-1)'"),
        ("auth + {}", "'{}'"),
        ("(" * 150 + "auth", "auth"),
        ("[auth][year]", "'[auth][year]'"),
        ("auth('x')", ": auth "),
        ("auth.lower(3)", ": lower "),
        ("year(1)", ": year "),
    ],
)
def test_an_invalid_pattern_is_reported(pattern: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match="citation_key") as raised:
        KeyPattern(pattern).key(FIELDS)
    assert said in raised.value.message


def test_a_key_in_use_gets_the_next_letter() -> None:
    pattern = KeyPattern("auth.lower + year")
    one = KeyFields(["Lee"], "Title", 2020)
    assert pattern.key(one, {"LEE2020"}) == "lee2020a"
    taken = {"lee2020", *(f"lee2020{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")}
    assert pattern.key(one, taken) == "lee2020aa"


@pytest.mark.parametrize(
    "fields",
    [
        KeyFields([], "", None),
        KeyFields(["李"], "图神经网络", None),
        KeyFields(['}{"\\,#%~'], "$x$ {y}", 2020),
        KeyFields(["A" * 10_000], "B" * 10_000, 2020),
    ],
)
def test_a_key_is_always_usable(fields: KeyFields) -> None:
    key = KeyPattern("auth.lower + year + veryshorttitle.lower").key(fields)
    assert key.isascii() and key.replace("-", "").replace(":", "").replace("_", "").isalnum() and len(key) <= 120
