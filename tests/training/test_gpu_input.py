"""Decoding and cropping as on the GPU: the kernel in Triton's interpreter, the rest for real."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.ExifTags import Base

from ringside.data.images import PackedBytes, StoredImages
from training.input import gpu
from training.input.batches import Batches
from training.input.decoding import jpeg_decoder
from training.input.gpu import GpuDecoder
from training.input.loading import Crop, Pictures, make_loader
from training.input.normalisation import IMAGENET

pytest.importorskip("triton")

COMMON = """
import io
from unittest import mock
import numpy as np, torch
from PIL import Image
from torch.nn import functional
from ringside.data.images import PackedBytes, StoredImages
from ringside.errors import DataError
from training.input.batches import Batches
from training.input.decoding import decode
from training.input.gpu import GpuDecoder, _portions
from training.input.loading import Crop, Pictures, make_loader
from training.input.normalisation import IMAGENET
import training.input.gpu as gpu

def jpeg(height, width, kind="JPEG"):
    pixels = np.random.default_rng(height).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC).save(content, kind)
    return content.getvalue()

files = [jpeg(40, 60), jpeg(30, 20, "PNG"), jpeg(25, 33), jpeg(16, 16)]
names = PackedBytes.pack(f"{i}.jpg".encode() for i in range(4))
split = StoredImages(names, PackedBytes.pack(files), np.eye(4, dtype=np.uint8))
keys = [[(3, i) for i in range(4)]]
how = Crop(16, 5, True, 0.5)
calls = []

def decoder(parts, device):
    calls.append(len(parts))
    if any(len(part) == len(files[2]) for part in parts) and refuses:
        raise RuntimeError("nvJPEG cannot read this")
    return [decode(part.numpy().tobytes(), "x").contiguous() for part in parts]

refuses = False
gpu.jpeg_decoder = lambda: decoder
cpu = torch.device("cpu")

def batches(decode_here, split=split):
    pictures = Pictures(split, how, decode_here=decode_here)
    loader = make_loader(pictures, keys, num_workers=0, pin=False)
    return Batches(loader, cpu, IMAGENET)
"""

AGREES = """
(ours,), (theirs,) = list(batches(False)), list(batches(True))
assert ours[0].is_contiguous(memory_format=torch.channels_last)
level = 1 / 255 / min(IMAGENET.std)
assert (ours[0] - theirs[0]).abs().max() <= 1.01 * level, (ours[0] - theirs[0]).abs().max()
assert torch.equal(ours[1], theirs[1]) and ours[2].tolist() == [0, 1, 2, 3]
"""

REFUSED = """
refuses = True
stream = batches(False)
(first,), (theirs,) = list(stream), list(batches(True))
assert (first[0] - theirs[0]).abs().max() <= 1.01 / 255 / min(IMAGENET.std)
assert stream.decoder._refused == {2}
tried = len(calls)
list(stream)
assert calls[tried:] == [2], calls
"""

BROKEN = """
files[1] = b"\\xff\\xd8 no picture \\xff\\xd9"
broken = StoredImages(names, PackedBytes.pack(files), split.targets)
try:
    list(batches(False, broken))
except DataError as error:
    assert "1.jpg" in str(error), error
else:
    raise AssertionError("a broken file went through")
"""

RAW = """
class Raw:
    targets = np.eye(4, dtype=np.uint8)
    def __len__(self):
        return 4
    def name(self, i):
        return str(i)
    def pixels(self, i):
        return np.random.default_rng(i).integers(0, 256, (20 + i, 24, 3), dtype=np.uint8)

(ours,), (theirs,) = list(batches(False, Raw())), list(batches(True, Raw()))
assert (ours[0] - theirs[0]).abs().max() <= 1.01 / 255 / min(IMAGENET.std)
assert not calls
"""

PORTIONS = """
sizes = np.array([[4000, 3000]] * 30 + [[20_000, 8_000]] + [[500, 500]] * 3)
rows = list(_portions(sizes))
assert [r.start for r in rows[1:]] == [r.stop for r in rows[:-1]]
assert (rows[0].start, rows[-1].stop) == (0, 34)
assert all(len(r) == 1 or sizes[list(r)].prod(axis=1).sum() <= gpu.MAX_PIXELS for r in rows)
with mock.patch.object(gpu, "MAX_PIXELS", 2000):
    (ours,), (theirs,) = list(batches(False)), list(batches(True))
assert (ours[0] - theirs[0]).abs().max() <= 1.01 / 255 / min(IMAGENET.std)
"""

KERNEL = """
from training.input.resampling import crop_batch
rng = np.random.default_rng(0)
shapes, size = [(40, 61), (9, 9), (33, 20), (16, 16)], 16
boxes = np.array([[21, 2, 37], [0, 0, 9], [1, 12, 19], [0, 0, 16]])
mirror = np.array([False, True, True, False])
pictures = [torch.from_numpy(rng.integers(0, 256, (3, *shape), dtype=np.uint8)) for shape in shapes]
affine = torch.tensor([[2.0, 3.0, 4.0], [0.5, 0.0, -1.0]])
ours = crop_batch(pictures, boxes, mirror, size, affine)
for picture, (left, top, side), flip, got in zip(pictures, boxes, mirror, ours):
    part = picture[None, :, top:top + side, left:left + side]
    want = functional.interpolate(part, size=(size, size), mode="bilinear", antialias=True)[0]
    want = want.flip(2) if flip else want
    got = (got - affine[1].view(3, 1, 1)) / affine[0].view(3, 1, 1)
    assert (want - got).abs().max() <= 1, (left, top, side)
"""


SCRIPTS = {
    "kernel": KERNEL, "agrees": AGREES, "refused": REFUSED, "broken": BROKEN, "raw": RAW,
    "portions": PORTIONS,
}  # fmt: skip


RUN_ALL = """
import json, sys, traceback
common, scripts = json.load(sys.stdin)
answers = {}
for name, script in scripts.items():
    try:
        exec(common + script, {})
        answers[name] = "agrees"
    except BaseException:
        answers[name] = traceback.format_exc()
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers():
    """What became of each script, which has names of its own.

    The interpreter has to be chosen before Triton is imported, so in a process of its own.
    """
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL], input=json.dumps([COMMON, SCRIPTS]),
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SCRIPTS)
def test_in_the_interpreter(name, answers):
    if "only 0-dimensional arrays can be converted" in answers[name]:
        pytest.skip("the interpreter of this Triton cannot count loops with this numpy")
    assert answers[name] == "agrees"


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
CYCLES = 200_000_000  # 0.1 s of a GPU's clock, in which everything queued behind waits


def jpeg(seed):
    """A colourful picture, one of four on its side; seeds differ by about 70 levels a pixel."""
    coarse = np.random.default_rng(seed).integers(0, 256, (8, 9, 3), dtype=np.uint8)
    content = io.BytesIO()
    image = Image.fromarray(coarse).resize((300, 260 + seed), Image.Resampling.BICUBIC)
    exif = Image.Exif()
    exif[Base.Orientation] = 6 if seed % 4 == 3 else 1
    image.save(content, "JPEG", quality=90, exif=exif)
    return content.getvalue()


def pictures_of(count, *, decode_here):
    split = StoredImages(
        PackedBytes.pack(str(i).encode() for i in range(count)),
        PackedBytes.pack(map(jpeg, range(count))),
        np.eye(count, dtype=np.uint8),
    )
    return Pictures(split, Crop(96, 3, True, 0.5), decode_here=decode_here)


@on_a_gpu
def test_both_decoders_feed_a_gpu_alike():
    """Two JPEG decoders differ by a few levels in places; a wrong crop would by a hundred."""
    keys = [[(1, i) for i in range(10)], [(1, i) for i in range(10, 20)]]

    def batches(*, decode_here):
        pictures = pictures_of(20, decode_here=decode_here)
        loader = make_loader(pictures, keys, num_workers=2, pin=True)
        return list(Batches(loader, torch.device("cuda"), IMAGENET))

    for ours, theirs in zip(batches(decode_here=False), batches(decode_here=True), strict=True):
        levels = (ours[0] - theirs[0]).abs() * 255 * min(IMAGENET.std)
        assert levels.mean() < 2
        assert torch.equal(ours[1], theirs[1])


@on_a_gpu
def test_the_decoder_waits_for_what_still_reads_its_memory():
    """nvJPEG's engine does not wait for its stream; torchcodec does for it since 0.17."""
    files = [torch.frombuffer(bytearray(jpeg(i)), dtype=torch.uint8) for i in range(32)]
    decode = jpeg_decoder()
    clean = [picture.sum().item() for picture in decode(files, device="cuda")]
    taken = set()
    for _ in range(5):
        pictures = decode(files, device="cuda")
        memory = {picture.data_ptr() for picture in pictures}
        torch.cuda._sleep(CYCLES)
        sums = [picture.sum() for picture in pictures]
        del pictures
        taken |= memory & {picture.data_ptr() for picture in decode(files[::-1], device="cuda")}
        assert [value.item() for value in sums] == clean
    assert taken, "no picture was given memory of another: nothing was tried"


@on_a_gpu
@pytest.mark.parametrize("max_pixels", [gpu.MAX_PIXELS, 300_000])
def test_pictures_stay_until_their_crops_are_made(monkeypatch, max_pixels):
    """Those of one batch before the next, and of one portion of a batch before another."""
    pictures = pictures_of(40, decode_here=False)
    first, second = (
        pictures.__getitems__([(0, i) for i in rows]) for rows in (range(20), range(20, 40))
    )
    decoder = GpuDecoder(pictures, torch.device("cuda"))
    monkeypatch.setattr(gpu, "MAX_PIXELS", max_pixels)
    affine = torch.tensor([[1.0] * 3, [0.0] * 3], device="cuda")
    clean = [decoder(batch, affine).clone() for batch in (first, second)]
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(5):
            torch.cuda._sleep(CYCLES)
            crops = [decoder(batch, affine) for batch in (first, second)]
            torch.cuda.current_stream().synchronize()
            for ours, wanted in zip(crops, clean, strict=True):
                assert torch.equal(ours, wanted)
