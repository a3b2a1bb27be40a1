"""What DDP's private report is made of, and that its absence harms nothing."""

from __future__ import annotations

import pytest
import torch

from training.ddp_report import ddp_report


@pytest.fixture
def model(monkeypatch):
    """A DDP model whose report is given; real ones are in the distributed tests."""
    made = torch.nn.parallel.DistributedDataParallel.__new__(
        torch.nn.parallel.DistributedDataParallel
    )
    torch.nn.Module.__init__(made)

    def says(answer):
        monkeypatch.setattr(
            torch.nn.parallel.DistributedDataParallel, "_get_ddp_logging_data",
            lambda _self: answer() if callable(answer) else answer, raising=False,
        )  # fmt: skip
        return made

    return says


def test_nanoseconds_become_milliseconds_and_texts_sizes(model):
    report = ddp_report(
        model({
            "bucket_sizes": "94371840, 479888", "rebuilt_bucket_sizes": "1,2,3",
            "has_rebuilt_buckets": 1, "find_unused_parameters": 0, "unused_parameter_size": 8,
            "iteration": 40, "avg_backward_comm_time": 2_500_000,
            "avg_backward_compute_time": 0, "rank": 0,
        }), epoch=1, step=40,
    )  # fmt: skip
    assert report is not None
    assert report.bucket_bytes == (94371840, 479888)
    assert report.rebuilt_bucket_bytes == (1, 2, 3)
    assert (report.has_rebuilt_buckets, report.find_unused_parameters) == (True, False)
    assert (report.unused_parameter_bytes, report.num_iterations) == (8, 40)
    assert (report.communication_span_ms, report.backward_span_ms) == (2.5, None)


def test_what_a_newer_torch_leaves_out_or_words_otherwise_is_none(model):
    report = ddp_report(model({"bucket_sizes": "many", "iteration": "4"}), epoch=1, step=4)
    assert report is not None
    assert (report.bucket_bytes, report.num_iterations, report.has_rebuilt_buckets) == (
        (), None, None,
    )  # fmt: skip


def test_no_report_is_no_failure(model):
    def fails():
        raise RuntimeError("the logger is gone")

    assert ddp_report(model(fails), epoch=1, step=1) is None
    assert ddp_report(model(7), epoch=1, step=1) is None
    assert ddp_report(torch.nn.Linear(1, 1), epoch=1, step=1) is None
