"""The seeded split."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.data.splits import choose_val, roles
from ringside.errors import DataError

label_sets = st.lists(st.sets(st.sampled_from("abcdefgh")).map(tuple), min_size=2, max_size=80)


@given(labels=label_sets)
def test_both_splits_have_images_and_about_a_fifth_validates(labels: list[tuple[str, ...]]) -> None:
    val = choose_val(labels)
    assert 1 <= len(val) <= max(1, round(len(labels) / 5))
    assert val < set(range(len(labels)))


@given(labels=st.lists(st.sampled_from("abcdef").map(lambda c: (c,)), min_size=2, max_size=80))
def test_no_class_loses_more_than_half_of_its_images(labels: list[tuple[str]]) -> None:
    counts = Counter(label for (label,) in labels)
    taken = Counter(labels[i][0] for i in choose_val(labels))
    assert all(taken[c] <= counts[c] // 2 for c in taken) or max(counts.values()) == 1


@given(labels=label_sets, seed=st.integers(0, 99))
def test_the_same_seed_gives_the_same_split(labels: list[tuple[str, ...]], seed: int) -> None:
    assert choose_val(labels, seed) == choose_val(labels, seed)


def test_another_seed_gives_another_split() -> None:
    labels = [("a",)] * 100
    assert choose_val(labels, 0) != choose_val(labels, 1)


def test_many_small_classes_still_give_a_fifth() -> None:
    labels = [(str(i // 3),) for i in range(120)]
    assert len(choose_val(labels)) == 24


def test_one_image_cannot_be_split() -> None:
    with pytest.raises(DataError, match="at least 2 images, found 1"):
        choose_val([("a",)])


def test_test_validates_only_where_nothing_else_does() -> None:
    assert roles(["Train", "test"]) == {"Train": "train", "test": "val"}
    assert roles(["train", "val", "TEST"]) == {"train": "train", "val": "val", "TEST": None}
