"""Augmentation follows from seed, epoch and sample alone; faults keep the file's name."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ringside.data import open_data
from ringside.errors import DataError
from ringside.spec import DataSpec
from training.images import MEAN, STD, Batches, Images, make_loader


@pytest.fixture(scope="module")
def split():
    return open_data(DataSpec(source="products", profile="ci")).val


def test_augmentation_differs_by_epoch_and_sample_and_repeats(split):
    images = Images(split, 32, seed=7, augment=True)
    one, again, later = images[1, 0][0], images[1, 0][0], images[2, 0][0]
    assert np.array_equal(one, again)
    assert not np.array_equal(one, later)
    assert not np.array_equal(one, Images(split, 32, seed=8, augment=True)[1, 0][0])


def test_evaluation_sees_the_picture_itself(split):
    images = Images(split, 32, seed=7, augment=False)
    assert np.array_equal(images[1, 3][0], images[9, 3][0])


def test_batches_are_normalised_like_imagenet(split):
    images = Images(split, 32, seed=0, augment=False)
    loader = make_loader(images, [[(0, 0), (0, 5)]], num_workers=0, pin=False)
    ((pixels, targets, index),) = list(Batches(loader, torch.device("cpu")))
    by_hand = (images[0, 5][0] / 255 - np.array(MEAN)) / np.array(STD)
    assert pixels.shape == (2, 3, 32, 32)
    assert pixels.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(pixels[1].permute(1, 2, 0), by_hand, atol=1e-5)
    assert targets.tolist() == split.targets[[0, 5]].tolist()
    assert index.tolist() == [0, 5]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_broken_file_is_named_through_a_worker_too(split, num_workers):
    class Broken:
        targets = split.targets

        def __len__(self):
            return 2

        def name(self, index):
            return f"photos/{index}.jpg"

        def read(self, index):
            return split.read(0)[:40]

    loader = make_loader(
        Images(Broken(), 32, seed=0, augment=False), [[(0, 1)]], num_workers=num_workers, pin=False
    )
    with pytest.raises(DataError, match=r"photos/1\.jpg"):
        list(Batches(loader, torch.device("cpu")))
