"""Augmentation follows from seed, epoch and sample alone; both decoders see the same picture."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms.v2 import functional as reference

from ringside.data import decode_rgb, evaluation_crop, open_data
from ringside.errors import DataError
from ringside.hardware import read_hardware
from ringside.request import RunRequest, resolve
from ringside.spec import DataSpec
from training.input.augmentation import Mixer, jitter
from training.input.batches import Batches, made_up
from training.input.crops import centre_box, draws_of, training_box
from training.input.decoding import crop, decode, ordinary_jpeg_size
from training.input.feed import Feed
from training.input.loading import Crop, Pictures, make_loader
from training.input.normalisation import IMAGENET, normalisation_of
from training.model import make_model

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def split():
    return open_data(DataSpec(source="products", profile="ci")).val


@pytest.fixture(scope="module")
def photo():
    """500 x 400 pixels of smooth colours."""
    coarse = np.random.default_rng(0).integers(0, 256, (20, 25, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((500, 400), Image.Resampling.BICUBIC)


def encoded(image, kind="JPEG", **options):
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def pictures(split, *, seed=7, augment=True, size=32, **kwargs):
    return Pictures(split, Crop(size, seed, augment, 0.5), decode_here=True, **kwargs)


def test_augmentation_differs_by_epoch_and_sample_and_repeats(split):
    def pixels(epoch, index, seed=7):
        return pictures(split, seed=seed)[epoch, index].pixels

    assert torch.equal(pixels(1, 0), pixels(1, 0))
    assert not torch.equal(pixels(1, 0), pixels(2, 0))
    assert not torch.equal(pixels(1, 0), pixels(1, 0, seed=8))


def test_a_sample_is_cropped_alike_in_any_batch(split):
    together = pictures(split).__getitems__([(3, 5), (3, 9)]).pixels
    assert torch.equal(together[1], pictures(split)[3, 9].pixels[0])


def test_evaluation_sees_the_picture_itself(split):
    images = pictures(split, augment=False)
    assert torch.equal(images[1, 3].pixels, images[9, 3].pixels)


def test_evaluation_crops_as_the_preview_does(photo):
    rgb = np.asarray(photo)
    box = centre_box(*rgb.shape[:2])
    ours = crop(torch.from_numpy(rgb.copy()).permute(2, 0, 1), box, 224).permute(1, 2, 0)
    assert np.abs(ours.numpy().astype(int) - evaluation_crop(rgb, 224)).max() <= 1


def test_boxes_stay_inside_and_keep_the_area():
    sizes = np.random.default_rng(0).integers(8, 900, (4000, 2))
    draws = draws_of(1, [(1, i) for i in range(4000)])
    boxes = [
        training_box(*size, draw, 0.25)
        for size, draw in zip(sizes.tolist(), draws.tolist(), strict=True)
    ]
    left, top, side = np.array(boxes).T
    assert min(left.min(), top.min()) >= 0
    assert max((left + side - sizes[:, 1]).max(), (top + side - sizes[:, 0]).max()) <= 0
    share = side.astype(float) ** 2 / sizes.min(axis=1) ** 2
    large = sizes.min(axis=1) > 100
    assert share[large].min() > 0.24
    assert share[large].mean() == pytest.approx(0.625, abs=0.02)  # uniform on 0.25 to 1


@pytest.mark.parametrize("augment", [True, False])
def test_pictures_are_cropped_alike_together_and_one_by_one(augment):
    """The GPU's way cuts the boxes of a batch at once, the CPU's those of each picture."""
    sizes = np.random.default_rng(0).integers(1, 900, (500, 2))
    draws = draws_of(1, [(1, i) for i in range(500)])
    how = Crop(224, 1, augment, 0.25)
    boxes, mirror = how.of_all(sizes, draws)
    together = zip(map(tuple, boxes.tolist()), mirror.tolist(), strict=True)
    alone = [how.of(*size, draw) for size, draw in zip(sizes.tolist(), draws.tolist(), strict=True)]
    assert list(together) == alone


def test_batches_are_normalised_like_imagenet(split):
    images = pictures(split, augment=False)
    loader = make_loader(images, [[(0, 0), (0, 5)]], num_workers=0, pin=False)
    ((pixels, targets, index),) = list(Batches(loader, CPU, IMAGENET))
    mean, std = np.array(IMAGENET.mean), np.array(IMAGENET.std)
    by_hand = (images[0, 5].pixels[0].numpy() / 255 - mean) / std
    assert pixels.shape == (2, 3, 32, 32)
    assert pixels.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(pixels[1].permute(1, 2, 0), by_hand, atol=1e-5)
    assert targets.tolist() == split.targets[[0, 5]].tolist()
    assert index.tolist() == [0, 5]


@pytest.mark.parametrize(
    ("asked", "strategy", "layout"),
    [
        (None, "ddp", torch.channels_last), (None, "fsdp", torch.channels_last),
        (True, "ddp", torch.channels_last), (False, "ddp", torch.contiguous_format),
        (False, "fsdp", torch.contiguous_format),
    ],
)  # fmt: skip
def test_a_convolution_computes_in_the_layout_that_was_asked_for(split, asked, strategy, layout):
    """It follows its images, whatever the layout of its weights."""
    wanted = {} if asked is None else {"channels_last": str(asked).lower()}
    request = RunRequest(preset=strategy, data="products:ci", model="resnet18", overrides=wanted)
    spec = resolve(request, read_hardware())
    model = make_model(spec, num_classes=3)
    found = []
    model.layer1[0].conv1.register_forward_hook(lambda _m, _i, out: found.append(out))
    engine = SimpleNamespace(spec=spec, device=CPU, pipeline=None, rank=0)
    feed = Feed(engine, open_data(spec.data), SimpleNamespace(share=lambda choice: choice))
    order = [[(0, 0), (0, 5)]]
    for batches in (feed.training(order), feed.evaluation(order), made_up(spec, 3, CPU)):
        model(next(iter(batches))[0])
    assert [one.is_contiguous(memory_format=layout) for one in found] == [True] * 3


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

    broken = pictures(Broken(), augment=False)
    loader = make_loader(broken, [[(0, 1)]], num_workers=num_workers, pin=False)
    with pytest.raises(DataError, match=r"photos/1\.jpg"):
        list(Batches(loader, CPU, IMAGENET))


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"subsampling": 2}, {"quality": 30}]
)
def test_the_fast_decoder_and_the_careful_one_agree(photo, options):
    data = encoded(photo, **options)
    assert ordinary_jpeg_size(data) == (400, 500)
    assert np.array_equal(decode(data, "x").permute(1, 2, 0), decode_rgb(data, "x"))


def test_a_turned_photo_is_upright_for_the_fast_decoder_too(photo):
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(photo, exif=exif)
    assert ordinary_jpeg_size(data) == (400, 500)
    assert decode(data, "x").shape == (3, 500, 400)
    assert np.array_equal(decode(data, "x").permute(1, 2, 0), decode_rgb(data, "x"))


def test_what_needs_a_rule_takes_the_careful_way(photo):
    whole = encoded(photo)
    assert ordinary_jpeg_size(encoded(photo.convert("CMYK"))) is None
    assert ordinary_jpeg_size(encoded(photo, keep_rgb=True)) is None
    assert ordinary_jpeg_size(encoded(photo, "PNG")) is None
    assert ordinary_jpeg_size(whole[: len(whole) // 2]) is None
    assert ordinary_jpeg_size(b"") is None
    with pytest.raises(DataError, match=r"half\.jpg .*cut off"):
        decode(whole[: len(whole) // 2], "half.jpg")


def test_jitter_is_torchvisions():
    images = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    draws = torch.tensor([[0.1, 0.9, 0.4], [0.5, 0.5, 0.5], [1.0, 0.0, 1.0]])
    ours = jitter(images, draws, 0.4)
    for image, row, got in zip(images, 1 + 0.4 * (2 * draws - 1), ours, strict=True):
        want = reference.adjust_brightness(image, float(row[0]))
        want = reference.adjust_contrast(want, float(row[1]))
        want = reference.adjust_saturation(want, float(row[2]))
        torch.testing.assert_close(got, want, atol=1e-3, rtol=0)  # its grey weights have 4 digits
    torch.testing.assert_close(ours[1], images[1])


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.4, 0.0), (0.0, 1.0)])
def test_targets_are_mixed_as_the_pixels_are(mixup, cutmix):
    """A picture of ones with target 1, its partner of zeros with target 0: means must agree."""
    images = torch.tensor([1.0, 0.0]).view(2, 1, 1, 1).expand(2, 3, 20, 30).contiguous()
    targets = torch.tensor([[1.0], [0.0]])
    mixer = Mixer(3, mixup, cutmix)
    mixed, mixed_targets = mixer(images, targets, epoch=1, first=8)
    torch.testing.assert_close(mixed.mean(dim=(1, 2, 3)), mixed_targets[:, 0])
    assert 0 < mixed_targets[0] < 1
    assert len({float(Mixer(3, 0.4, 0.0)(images, targets, e, 8)[1][0]) for e in (1, 2, 3)}) == 3
    again, _ = Mixer(3, mixup, cutmix)(images, targets, epoch=1, first=8)
    assert torch.equal(mixed, again)


def test_a_batch_for_the_gpu_holds_files_and_planes(split, photo):
    files = [encoded(photo), encoded(photo, "PNG"), encoded(photo.resize((60, 50)))]

    class Mixed:
        targets = np.eye(3, dtype=np.uint8)

        def __len__(self):
            return 3

        def name(self, index):
            return str(index)

        def read(self, index):
            return files[index]

    batch = Pictures(Mixed(), Crop(32), decode_here=False).__getitems__([(0, i) for i in range(3)])
    assert batch.sizes.tolist() == [[400, 500], [400, 500], [50, 60]]
    assert batch.is_decoded.tolist() == [False, True, False]
    parts = np.split(batch.data.numpy(), batch.ends[:-1])
    assert [parts[0].tobytes(), parts[2].tobytes()] == [files[0], files[2]]
    assert np.array_equal(parts[1].reshape(400, 500, 3), np.asarray(photo))


def test_pixels_are_normalised_as_the_models_weights_expect():
    assert normalisation_of("resnet50") == IMAGENET
    assert normalisation_of("vit_base_patch16_224").mean == (0.5, 0.5, 0.5)
    assert normalisation_of("no_such_model") == IMAGENET
