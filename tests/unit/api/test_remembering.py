"""Twenty edits that a person makes in a section, and the memory lines that they suggest."""

from __future__ import annotations

from collections import Counter

from citeloom.api.remembering import suggested_lines

EDITS = [
    ("The subjects slept badly [E1].", "The participants slept badly [E1].", "participants, not subjects"),
    ("Subjects were paid.", "Participants were paid.", "participants, not subjects"),
    ("Half of the subjects left.", "Half of the participants left.", "participants, not subjects"),
    ("The behavior of the model changed.", "The behaviour of the model changed.", "British spelling"),
    ("We analyze the color of cells.", "We analyse the colour of cells.", "British spelling"),
    ("The model generalizes well.", "The model generalises well.", "generalises, not generalizes"),  # British too
    ("It utilizes seeds.", "It uses seeds.", ""),  # a common word
    ("We show the effect.", "We report the effect.", "report, not show"),
    ("The neural net converged.", "The neural network converged.", "network, not net"),
    ("Deep learning helps here.", "Machine learning helps here.", "machine, not deep"),
    ("It is big.", "It is large.", "large, not big"),
    ("The effect was 0.31 [E2].", "The effect was 0.32 [E2].", ""),  # a number
    ("The effect was small.", "The effect was small and not stable.", ""),  # words added
    ("The effect was small and not stable.", "The effect was small.", ""),  # words dropped
    ("This rests on seeds.", "That rests on seeds.", ""),  # a word without a meaning of its own
    ("Seeds differ.", "Seed differs.", ""),  # other forms of the same words
    ("Rain falls. It is wet.", "It is wet. Rain falls.", ""),  # moved
    ("Seeds matter [E3].", "Seeds matter [E4].", ""),  # another citation
    ("Pooling halves the error of small models.", "One sees that errors are lower if we pool them.", ""),  # rewritten
    ("The first point stands.", "", ""),  # dropped
]


def test_twenty_edits_suggest_terms_and_a_spelling_and_nothing_from_rewritten_sentences() -> None:
    assert len(EDITS) == 20
    for before, after, line in EDITS:
        assert set(suggested_lines(before, after)) == ({line} if line else set()), (before, after)
    found = Counter(line for before, after, _ in EDITS for line in set(suggested_lines(before, after)))
    assert found.most_common(2) == [("participants, not subjects", 3), ("British spelling", 2)]
