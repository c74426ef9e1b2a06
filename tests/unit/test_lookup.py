"""The baseline ``train-lookup`` on train items small enough to count by hand."""

from __future__ import annotations

import pytest

from nerprobe.lookup import Lookup

P, S = "PROFESION", "SITUACION_LABORAL"


def fit(*items: str) -> Lookup:
    """Learn from items written as ``word/tag word/tag``."""
    split = [[pair.rsplit("/", 1) for pair in item.split()] for item in items]
    return Lookup.fit([[word for word, _ in item] for item in split], [[tag for _, tag in item] for item in split])


def tags(lookup: Lookup, text: str) -> str:
    return " ".join(lookup.predict(text.split())[0])


def test_a_sequence_that_was_always_a_mention_is_predicted_everywhere() -> None:
    lookup = fit(f"la/O policía/B-{P} nacional/I-{P} vino/O")
    assert tags(lookup, "a policía nacional y policía nacional") == f"O B-{P} I-{P} O B-{P} I-{P}"
    assert tags(lookup, "policía local nacional") == "O O O"


def test_a_mention_must_be_one_more_often_than_not() -> None:
    # juez: 1 of 2 is not more often than not; actor: 2 of 3 is.
    lookup = fit(f"juez/B-{P} juez/O", f"actor/B-{P} actor/B-{P} actor/O")
    assert tags(lookup, "juez actor") == f"O B-{P}"
    assert lookup.predict(["actor"])[1] == [pytest.approx(2 / 3)]


def test_occurrences_inside_longer_mentions_count_as_places_where_it_was_none() -> None:
    # médico alone is a mention once; inside "jefe médico" twice it is not the mention: 1 of 3.
    lookup = fit(f"médico/B-{P}", f"jefe/B-{P} médico/I-{P}", f"jefe/B-{P} médico/I-{P}")
    assert tags(lookup, "médico") == "O"
    assert tags(lookup, "jefe médico") == f"B-{P} I-{P}"


def test_case_does_not_matter_also_beyond_ascii() -> None:
    lookup = fit(f"MÉDICA/B-{P}", f"Straße/B-{S}")
    assert tags(lookup, "médica Médica STRASSE straße") == f"B-{P} B-{P} B-{S} B-{S}"


def test_accents_do_matter() -> None:
    assert tags(fit(f"médico/B-{P}"), "medico me\u0301dico") == "O O"


def test_the_longest_match_wins() -> None:
    lookup = fit(f"policía/B-{P} y/O policía/B-{P} y/O policía/B-{P} nacional/I-{P}")
    assert tags(lookup, "policía nacional") == f"B-{P} I-{P}"
    assert tags(lookup, "policía local") == f"B-{P} O"


def test_matches_do_not_overlap() -> None:
    lookup = fit(f"a/B-{P} b/I-{P}", f"b/B-{S} c/I-{S}")
    assert tags(lookup, "a b c") == f"B-{P} I-{P} O"


def test_two_mentions_that_touch_are_told_apart() -> None:
    assert tags(fit(f"juez/B-{P}"), "juez juez") == f"B-{P} B-{P}"


def test_the_more_frequent_type_counts() -> None:
    assert tags(fit(f"paro/B-{S} y/O paro/B-{S} y/O paro/B-{P}"), "paro") == f"B-{S}"


def test_mentions_of_train_follow_the_same_rule_as_scores() -> None:
    # An I- after O begins a mention.
    assert tags(fit(f"el/O juez/I-{P}"), "juez") == f"B-{P}"


def test_words_that_match_nothing_are_o_with_share_one() -> None:
    assert fit("a/O b/O").predict(["a", "z"]) == (["O", "O"], [1.0, 1.0])


def test_a_match_does_not_run_over_the_end_of_an_item() -> None:
    assert tags(fit(f"a/B-{P} b/I-{P}"), "a") == "O"
