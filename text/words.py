"""Splits a text into words, knows stop words and generic words, and normalises wording."""

from __future__ import annotations

import html
import re
import threading
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_DASHES: Final = re.compile("[\u2010-\u2015]")
# Pure punctuation. Signs inside numbers (0.95, -1) and names (C++, C#, 50%) are significant.
_MARKS: Final = re.compile(r"[.,:](?![0-9])|[;!?\"“”„«»‘’'`()\[\]{}…]|(?<=[^\W\d])-(?=[^\W\d])")
_NO_CODE_POINT: Final = re.compile(r"&#0*+[1-9]\d{7,}+;?")


def one_line(text: str) -> str:
    """`text` with every run of white space folded to a space."""
    return " ".join(text.split())


def shorten(text: str, most: int = 80) -> str:
    """`text` on one line of at most `most` characters, cut with an ellipsis."""
    flat = one_line(text)
    return flat if len(flat) <= most else f"{flat[: most - 1]}\u2026"


def unescape_html(text: str) -> str:
    """`text` with HTML entities decoded; a numeric entity that is not a character becomes U+FFFD."""
    return html.unescape(_NO_CODE_POINT.sub("\ufffd", text))


def without_accents(text: str) -> str:
    """`text` in compatibility form (NFKD), without its accents."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def plain_wording(query: str) -> str:
    """`query` in lower case, with single spaces and without punctuation.

    A query of punctuation alone is returned unchanged, so that it equals only itself.
    """
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", query)).casefold()
    return " ".join(_MARKS.sub(" ", text.replace("'s", "s").replace("’s", "s")).split()) or query


_MOSTLY = 0.7


def is_latin(text: str) -> bool:
    """Whether most letters of a text are Latin; true for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    return latin >= _MOSTLY * len(letters)


_FUNCTION_WORDS: Final = {
    "German": "der die das den dem des und oder ist sind nicht ein eine einen wie viele was welche welcher für mit von"
    " bei auf im zu werden wird warum kann man gibt hat haben",
    "French": "le la les des du de que qui quel quelle quels quelles comment pourquoi combien est sont dans un une pour"
    " par avec et ou ne pas sur",
    "Spanish": "el la los las del de que cuál cuáles cómo qué cuántos cuántas es son en un una para por con se y más",
    "Italian": "il lo la gli le di del della dei che come quale quali quanti quante è sono un una per con si più",
    "Portuguese": "os as do da dos das de que qual quais como quantos quantas é são em um uma para por com se não mais",
    "Dutch": "de het een en van is zijn wat welke hoe voor met op niet te worden waarom hoeveel kan",
}


def foreign_language(text: str) -> str:
    """The language of a text that is clearly not in English, judged by its most frequent words; empty otherwise."""
    if not is_latin(text):
        return "a language other than English"
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {name: sum(word in known.split() for word in words) for name, known in _FUNCTION_WORDS.items()}
    name = max(counts, key=lambda name: counts[name])
    enough = 1 if "?" in text else 2
    return name if counts[name] >= enough + sum(word in STOP_WORDS for word in words) else ""


STOP_WORDS = frozenset(
    """
    a about above across after again against all almost alone along already also although always am among an and
    another any are around as at away back be became because become been before being below best better between both
    but by can cannot comparatively could did do does doing done down due during each either else enough especially
    even ever every few fewer first five for four from further generally get give given gives had half has have
    having he hence her here high higher highly him his how however i if in indeed instead into is it its itself
    just keep kept last least less let like likely low lower made main mainly make makes making many may me might
    mine more moreover most mostly much must my near nearly need neither never new next no none nor not nothing now
    of off often old on once one only onto or other others otherwise our ours out over own part per perhaps poorly
    quite rather really reach s same second see seen several shall she should similar since six small so some still
    such take taken ten than that the their theirs them then there therefore these they thing third this those
    though three through thus to together too toward towards two under until up upon us use used uses using usually
    various very via was way we well were what when where whether which while who whole whom whose why will with
    within without would yet you your systematically alike thousand million hundred
    """.split()
)

# Words common to papers of every field. One of them alone is neither a theme nor a reason to cite.
GENERIC_WORDS = frozenset(
    """
    ability absence account accuracy achieve addition additional adjust advance advantage affect aim algorithm
    allow alternative amount analysis analyse analyze answer application apply appear approach approximate area
    arrive article ask aspect assess assessment assign associate assume attempt author available average aware
    base baseline basis behavior behaviour benchmark benefit bias big bound bring build calculate capture carry
    case category cause central certain challenge change characteristic check choice choose class clear close
    collect column combination combine common compare comparison complete complex component compute concept
    conclude conclusion condition confirm consider consist consistent constant contain content context contrast
    contribute contribution control correct correlate correlation count cover create criterion current data
    dataset date decrease default define demonstrate depend derive describe design detail detect determine
    develop development differ difference different difficult direct discuss discussion distance distinguish
    distribution document domain driver early easy effect efficient effort element enable end equal error
    establish estimate evaluate evaluation event evidence exact examine example exist expect experiment explain
    explore express expression extend extent factor fail failure feature field figure final find finding fit fix
    focus follow form format formula found frame framework frequency full function future gap general generate
    goal good great group grow hold human hypothesis idea identify image impact implement implementation
    implication important improve improvement include increase indicate individual influence inform information
    input instance integrate interest interpret introduce investigate involve issue item key kind know knowledge
    known label lack large late law lead learn learning left length level limit limitation line link list
    literature local long look loss machine manner map match material matter mean meaning measure mechanism
    member method metric min minimum max maximum mode model modern modify name narrow natural nature need
    negative normal note novel null number object observation observe obtain occur open operation opinion option
    order origin original outcome output overall pair paper parameter particular path pattern people perform
    performance period person perspective phase phenomenon plan play plot point population poor positive
    possible potential power practice precise predict prediction predictor present prevent previous principle
    probability problem procedure process produce product project property propose proportion protocol prove
    provide publication publish purpose quality quantity question random range rank rare rate ratio raw reason
    receive recent reconstruct record reduce reduction reference reflect region relate relation relationship
    relative release relevant rely remain remove repeat replace replicate report repository represent
    representation require requirement research researcher resource response rest result return reveal review
    reward right role row rule run sample scale schedule scheme science score search section select selection
    separate sequence series set setting shape share shift short show side sign signal significant simple
    simulate simulation single situation size software solution solve source space special specific split stable
    stage standard start state statement statistic step still strategy strength strong structure study subject
    subset success successful suggest suitable summary support sure system systematic table target task
    technique technology tend term test text theory think threshold time title token tool top topic total train
    training transfer trend true try tune type typical understand unit unknown user valid validate validation
    value variable variant variation variety vary version view want weak weight wide word work world write year
    yield zero
    """.split()
)

_LONGEST = 60  # letters; anything longer is not an English word
_WORD = re.compile(r"(?<![\w-])[^\W\d_](?:[\w'’]|[-‐](?=\w))*")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, its normalised form, and its position.

    `joined` if only blanks separate it from the previous word.
    """

    form: str
    surface: str
    start: int
    end: int
    joined: bool


_stemmers: Final = threading.local()  # a stemmer keeps the word that it works on


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The lower-case stem of an English word; other words are returned unchanged."""
    lowered = word.lower().replace("’", "'").removesuffix("'s")
    if len(lowered) > _LONGEST or not lowered.isascii() or any(character.isdigit() for character in lowered):
        return lowered
    if not hasattr(_stemmers, "english"):
        import snowballstemmer  # lazy: it loads the stemmers of thirty languages

        _stemmers.english = snowballstemmer.stemmer("english")
    return str(_stemmers.english.stemWord(lowered))


def theme_form(word: str) -> str:
    """The form for comparing themes: the stem, except for nouns in -ity and -ness.

    Their stems coincide with adjectives of another meaning: "essential" is not about gene essentiality.
    """
    lowered = word.lower().replace("’", "'").removesuffix("'s")
    if lowered.endswith(("ity", "ness")):
        return lowered
    if lowered.endswith("ities"):
        return f"{lowered[:-3]}y"
    return stem(lowered)


@lru_cache(maxsize=1)
def _generic_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in GENERIC_WORDS)


def split_words(text: str) -> list[Word]:
    """All words of a text in order; numbers and punctuation separate words."""
    found: list[Word] = []
    end_before = -1
    for match in _WORD.finditer(text):
        joined = end_before >= 0 and text[end_before : match.start()].isspace()
        surface = match.group()
        found.append(Word(theme_form(surface), surface, match.start(), match.end(), joined))
        end_before = match.end()
    return found


def is_stop(word: Word) -> bool:
    """Whether a word is a stop word or a single letter."""
    return word.surface.lower() in STOP_WORDS or len(word.surface) < 2


@lru_cache(maxsize=65536)
def is_generic(form: str) -> bool:
    """Whether a word, in any of its forms, is common to papers of every field."""
    return stem(form) in _generic_stems()
