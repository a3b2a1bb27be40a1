"""Which labels a picture gets, by threshold, by rank, or both."""

from __future__ import annotations

import pytest

from ringside.checkpoints import About, Thresholds
from ringside.errors import SpecError
from ringside.labelling import Label, LabelRule, labels_of, make_rule

MULTI = About(model="m", classes=("cat", "dog", "hen"), task="multi_label", image_size=32)
SINGLE = About(model="m", classes=("cat", "dog", "hen"), task="single_label", image_size=32)
TUNED = Thresholds(epoch=1, num_evaluated=9, thresholds={"cat": 0.1, "dog": 0.7, "hen": None})


def names(probabilities, about=MULTI, top=None, threshold=None):
    rule = make_rule(top, threshold, about, TUNED)
    return [label.name for label in labels_of(probabilities, about, TUNED, rule)]


def test_several_labels_by_default_from_one_half():
    assert make_rule(None, None, MULTI, TUNED) == LabelRule(threshold=0.5)
    assert names([0.6, 0.5, 0.9]) == ["hen", "cat"]  # the threshold itself is not enough
    assert names([0.1, 0.2, 0.3]) == []


def test_one_class_by_default_the_most_probable():
    assert make_rule(None, None, SINGLE, TUNED) == LabelRule(top=1)
    assert names([0.3, 0.4, 0.3], SINGLE) == ["dog"]
    assert names([0.3, 0.4, 0.3], SINGLE, threshold="0.5") == []


def test_top_takes_the_most_probable_however_low():
    assert names([0.1, 0.3, 0.2], top=2) == ["dog", "hen"]
    assert names([0.1, 0.3, 0.2], top=9) == ["dog", "hen", "cat"]
    assert names([0.1, 0.3, 0.2], top=2, threshold="0.25") == ["dog"]


def test_tuned_thresholds_are_each_class_own_and_one_half_where_there_is_none():
    assert names([0.2, 0.6, 0.6], threshold="tuned") == ["hen", "cat"]
    assert names([0.05, 0.8, 0.4], threshold="tuned") == ["dog"]


def test_probabilities_are_kept():
    rule = LabelRule(top=1)
    assert labels_of([0.25, 0.75, 0.0], MULTI, TUNED, rule) == [Label("dog", 0.75)]


@pytest.mark.parametrize("text", ["1.5", "-0.1", "nan", "half", ""])
def test_what_is_no_probability_is_refused(text):
    with pytest.raises(SpecError, match="a number from 0 to 1 or `tuned`"):
        make_rule(None, text, MULTI, TUNED)


def test_what_the_model_does_not_have_is_refused():
    with pytest.raises(SpecError, match="chooses one class"):
        make_rule(None, "tuned", SINGLE, TUNED)
    with pytest.raises(SpecError, match="no tuned thresholds"):
        make_rule(None, "tuned", MULTI, Thresholds())
    with pytest.raises(SpecError, match="at least 1, not 0"):
        make_rule(0, None, MULTI, TUNED)
