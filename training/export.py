"""Makes a folder from a checkpoint that works without Ringside: `python -m training.export FOLDER`.

Weights for timm, a program without Python source (torch.export or ONNX), class names, thresholds,
and how pictures have to be prepared. The program is compared with the model before it is kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ringside.checkpoints import (
    ABOUT,
    CLASSES,
    THRESHOLDS,
    WEIGHTS,
    About,
    checksums_of,
    read_about,
    read_thresholds,
)
from ringside.data import write_classes
from ringside.errors import RingsideError, RunDirError, SetupError
from ringside.garbage import no_collection
from ringside.rundir import RunDir

with no_collection():
    import torch
    from torch import nn

    from training.checkpoint import load_model
    from training.export_guide import guide

PROGRAMS = {"torch": "model.pt2", "onnx": "model.onnx"}
MAX_DIFFERENCE = 1e-3
"""Of logits, between the program and the model: fused kernels round in another order."""


def main(argv: list[str] | None = None) -> int:
    """Export; 0 when the folder is complete, 2 for a mistake that one sentence explains."""
    parser = argparse.ArgumentParser(prog="python -m training.export")
    parser.add_argument("folder", type=Path, help="a checkpoint folder")
    parser.add_argument("--format", choices=PROGRAMS, default="torch")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    arguments = parser.parse_args(argv)
    try:
        export(arguments.folder, arguments.out, arguments.format)
    except RingsideError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"wrote {arguments.out}; its README.md shows how to load it")
    return 0


def export(folder: Path, out: Path, kind: str) -> None:
    """Make `out` from the checkpoint `folder`, whole or not at all.

    Raises RunDirError when `out` exists or cannot be written, SetupError when the model cannot be
    exported or a package is missing.
    """
    if kind == "onnx":
        _require_onnx()
    if out.exists():
        raise RunDirError(f"{out} exists: choose another folder with --out.")
    about = read_about(folder)
    model = load_model(folder, about)
    fresh = out.absolute().with_name(f".{out.name}.{os.getpid()}.new")
    try:
        fresh.mkdir(parents=True)
        _write(fresh, folder, about, model, kind)
        fresh.rename(out)
    except OSError as error:
        raise RunDirError(f"{out} cannot be written: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _write(fresh: Path, folder: Path, about: About, model: nn.Module, kind: str) -> None:
    shutil.copyfile(folder / WEIGHTS, fresh / WEIGHTS)
    files = RunDir(fresh)
    files.write(fresh / THRESHOLDS, read_thresholds(folder))
    write_classes(fresh / CLASSES, about.classes)
    origin = msgspec.json.decode((folder / ABOUT).read_bytes())
    origin |= {"mean": about.mean, "std": about.std, "checksums": checksums_of(fresh)}
    files.write(fresh / ABOUT, origin)
    (fresh / "README.md").write_text(guide(about, kind), encoding="utf-8")
    example = torch.randn(2, 3, about.image_size, about.image_size)
    program = _PROGRAM[kind](model, example, fresh / PROGRAMS[kind])
    if program is not None:
        _compare(model, program, torch.randn(3, *example.shape[1:]))


def _torch_program(model: nn.Module, example: torch.Tensor, path: Path) -> Callable[..., Any]:
    """torch.export's program for any number of pictures, as it is read back from the file."""
    try:
        program = torch.export.export(model, (example,), dynamic_shapes=_any_batch())
    except Exception as error:  # what a model's code cannot do has many types
        raise _not_exportable(error) from error
    torch.export.save(program, path)
    return torch.export.load(path).module()


def _onnx_program(model: nn.Module, example: torch.Tensor, path: Path) -> Callable[..., Any] | None:
    """The ONNX file as onnxruntime runs it; None where that is not installed."""
    try:
        torch.onnx.export(
            model, (example,), str(path), dynamo=True, dynamic_shapes=_any_batch(),
            input_names=["images"], output_names=["logits"], external_data=False, verbose=False,
        )  # fmt: skip
    except Exception as error:
        raise _not_exportable(error) from error
    if importlib.util.find_spec("onnxruntime") is None:
        print("onnxruntime is not installed, so the program was not compared with the model")
        return None
    onnxruntime = importlib.import_module("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(None, {"images": images.numpy()})[0])


_PROGRAM: dict[str, Callable[[nn.Module, torch.Tensor, Path], Callable[..., Any] | None]] = {
    "torch": _torch_program,
    "onnx": _onnx_program,
}


def _any_batch() -> tuple[dict[int, Any]]:
    return ({0: torch.export.Dim("batch", min=1)},)


@torch.no_grad()
def _compare(model: nn.Module, program: Callable[..., Any], images: torch.Tensor) -> None:
    expected, found = model(images), program(images)
    difference = float((expected - found).abs().max())
    if not difference <= MAX_DIFFERENCE * max(1.0, float(expected.abs().max())):
        raise SetupError(
            f"The exported program and the model differ by {difference:.2g} in their logits; "
            "nothing was written."
        )


def _not_exportable(error: Exception) -> SetupError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return SetupError(f"This model cannot be exported as a program: {reason}")


def _require_onnx() -> None:
    missing = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(
            f"ONNX export needs {' and '.join(missing)}: `pip install {' '.join(missing)}`, or "
            "choose --format torch."
        )


if __name__ == "__main__":
    sys.exit(main())
