"""The seeded split."""

from collections import Counter
from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.data.splits import roles
from ringside.data.stratify import choose_val
from ringside.errors import DataError

label_sets = st.lists(st.sets(st.sampled_from("abcdefgh")).map(tuple), min_size=2, max_size=80)


@given(labels=label_sets)
def test_both_splits_have_images_and_no_label_loses_more_than_half(
    labels: list[tuple[str, ...]],
) -> None:
    val = choose_val(labels)
    assert val
    assert val < set(range(len(labels)))
    counts, taken = (
        Counter(label for i in part for label in labels[i]) for part in (range(len(labels)), val)
    )
    assert all(taken[c] <= counts[c] // 2 for c in taken) or len(val) == 1


@given(labels=st.lists(st.sampled_from("abcdef").map(lambda c: (c,)), min_size=2, max_size=80))
def test_every_class_of_three_or_more_gives_its_fifth(labels: list[tuple[str]]) -> None:
    counts = Counter(label for (label,) in labels)
    taken = Counter(labels[i][0] for i in choose_val(labels))
    assert all(abs(taken[c] - n / 5) <= 0.5 for c, n in counts.items()) or max(counts.values()) < 3


def skewed_labels() -> list[tuple[str, ...]]:
    """2,000 images with 0 to 4 of 100 labels, of which the last are rare."""
    random = Random(1)
    return [
        tuple({f"{100 * random.random() ** 3:.0f}" for _ in range(random.randrange(5))})
        for _ in range(2000)
    ]


def test_many_labels_are_shared_out_far_better_than_by_chance() -> None:
    labels = skewed_labels()
    counts = Counter(label for row in labels for label in row)

    def mean_error(val: Collection[int]) -> float:
        taken = Counter(label for i in val for label in labels[i])
        return sum(abs(taken[c] - n / 5) for c, n in counts.items()) / len(counts)

    val = choose_val(labels)
    assert len(val) == 400
    assert mean_error(val) < mean_error(Random(0).sample(range(2000), 400)) / 4
    assert all(any(c in labels[i] for i in val) for c, n in counts.items() if n >= 3)


@pytest.mark.parametrize("seed", range(20))
def test_rarer_labels_never_take_more_than_half_of_a_label_with_them(seed: int) -> None:
    labels = [row for r in "abcdefg" for row in (("common", r), (r,), (r,))]
    val = choose_val(labels, seed)
    assert sum("common" in labels[i] for i in val) <= 3


@given(labels=label_sets, seed=st.integers(0, 9))
def test_twins_are_never_divided(labels: list[tuple[str, ...]], seed: int) -> None:
    pairs = [(i, i + 1) for i in range(0, len(labels) - 3, 3)]
    val = choose_val(labels, seed, pairs)
    assert all((i in val) == (j in val) for i, j in pairs)


def test_a_set_of_copies_cannot_be_split() -> None:
    with pytest.raises(DataError, match="at least 2 images that differ, found 1"):
        choose_val([("a",)] * 5, twins=[range(5)])


@given(labels=label_sets, seed=st.integers(0, 99))
def test_the_same_seed_gives_the_same_split(labels: list[tuple[str, ...]], seed: int) -> None:
    assert choose_val(labels, seed) == choose_val(labels, seed)


def test_another_seed_gives_another_split() -> None:
    labels = [("a",)] * 100
    assert choose_val(labels, 0) != choose_val(labels, 1)


def test_images_without_a_label_even_out_the_total() -> None:
    labels = [(str(i // 3),) for i in range(60)] + [()] * 60
    val = choose_val(labels)
    assert len(val) == 24
    assert sum(i < 60 for i in val) == 20


def test_one_image_cannot_be_split() -> None:
    with pytest.raises(DataError, match="at least 2 images that differ, found 1"):
        choose_val([("a",)])


def test_test_validates_only_where_nothing_else_does() -> None:
    assert roles(["Train", "test"]) == {"Train": "train", "test": "val"}
    assert roles(["train", "val", "TEST"]) == {"train": "train", "val": "val", "TEST": None}
