"""Where JPEG is decoded: by rates as training will have them."""

from __future__ import annotations

import threading
import time
import weakref
from types import SimpleNamespace

import pytest
import torch

from training.input import choice, feed
from training.input.choice import Choice, choose

NAP_S = 0.03
CUDA = torch.device("cuda")


@pytest.fixture
def decoder(monkeypatch):
    """A decoder on the CPU that takes `NAP_S`; callers that share a core take turns."""

    def install(cores):
        free = threading.Semaphore(cores)

        def decode(data, name):
            with free:
                time.sleep(NAP_S)

        monkeypatch.setattr(choice, "decode", decode)
        monkeypatch.setattr(choice, "num_cores", lambda: 64)

    return install


class Pictures:
    split = SimpleNamespace(read=lambda index: b"", name=str)

    def __len__(self):
        return 20


def rate(num_threads):
    return choice._cpu_rate([b""] * 3, ["a", "b", "c"], num_threads)


def test_workers_on_cores_of_their_own_add_up(decoder):
    decoder(cores=4)
    assert rate(4) > 2 * rate(1)


def test_workers_that_share_a_core_do_not(decoder):
    decoder(cores=1)
    assert rate(4) < 2 * rate(1)


def test_pictures_of_the_sample_are_not_kept(monkeypatch):
    """8 for each of 16 workers, of 12 megapixels each, would be 4.6 GB."""
    alive, most = weakref.WeakSet(), []

    class Picture:
        pass

    def decode(data, name):
        picture = Picture()
        alive.add(picture)
        most.append(len(alive))
        return picture

    monkeypatch.setattr(choice, "decode", decode)
    rate(4)
    assert len(most) == 4 + 8 * 4
    assert max(most) <= 5


@pytest.mark.parametrize(("cores", "gpu_rate", "chosen"), [(8, 150, "cpu"), (2, 150, "gpu")])
def test_the_faster_side_decodes(decoder, monkeypatch, cores, gpu_rate, chosen):
    """8 workers that take 30 ms a picture, on 8 cores of this machine or on 2 of another."""
    decoder(cores)
    monkeypatch.setattr(choice, "jpeg_decoder", lambda: object())
    monkeypatch.setattr(choice, "has_triton", lambda: True)
    monkeypatch.setattr(choice, "ordinary_jpeg_size", lambda data: (8, 8))
    monkeypatch.setattr(choice, "_gpu_rate", lambda *_: gpu_rate)
    found = choose(Pictures(), CUDA, num_workers=8)
    assert (found.decoder, found.gpu_rate) == (chosen, gpu_rate)
    assert 0.5 * cores / NAP_S < found.cpu_rate < cores / NAP_S
    # Two ranks have twice the workers on the same cores, so each has half of what these do.
    two = choose(Pictures(), CUDA, num_workers=8, ranks_here=2)
    assert two.cpu_rate < 0.75 * found.cpu_rate


def test_no_more_threads_than_cores_are_timed(decoder, monkeypatch):
    decoder(cores=8)
    monkeypatch.setattr(choice, "num_cores", lambda: 2)
    monkeypatch.setattr(choice, "jpeg_decoder", lambda: object())
    monkeypatch.setattr(choice, "has_triton", lambda: True)
    monkeypatch.setattr(choice, "ordinary_jpeg_size", lambda data: (8, 8))
    monkeypatch.setattr(choice, "_gpu_rate", lambda *_: 1.0)
    found = choose(Pictures(), CUDA, num_workers=8)
    assert found.cpu_rate < 2 / NAP_S


@pytest.mark.parametrize(
    ("cores", "ranks", "workers"), [(8, 1, 7), (8, 2, 3), (64, 2, 16), (2, 4, 1)]
)
def test_workers_share_the_cores_with_the_ranks_of_the_machine(monkeypatch, cores, ranks, workers):
    monkeypatch.setattr(feed, "num_cores", lambda: cores)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks))
    training = SimpleNamespace(num_workers=None, decoder="cpu")
    spec = SimpleNamespace(training=training, num_readers=ranks)
    engine = SimpleNamespace(spec=spec, device=CUDA, pipeline=None, rank=0)
    made = feed.Feed(engine, None, SimpleNamespace(share=lambda value: value))
    assert (made.num_workers, made.ranks_here) == (workers, ranks)


def test_a_cpu_has_no_choice():
    assert choose(SimpleNamespace(), torch.device("cpu"), 4) == Choice("cpu")
