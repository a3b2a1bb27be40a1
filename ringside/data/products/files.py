"""Writes a product set to disk: the tier that measures storage and decoding.

    OUT/manifest.json
    OUT/train/metadata.jsonl  OUT/train/shard-00000/0000001.jpg  ...
    OUT/val/metadata.jsonl    OUT/val/shard-00000/0000000.jpg    ...

This is also the layout that the `imagefolder` loader of `datasets` reads.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ringside.cores import num_cores
from ringside.data.products.labels import PROFILE_OF, Profile, draw_scene, is_val, side_px
from ringside.errors import DataError, nearest

FORMAT = 1
GENERATOR_VERSION = 1  # raise it whenever the same seed and index give another picture or label
SHARD_IMAGES = 1000
MANIFEST_NAME = "manifest.json"
METADATA_NAME = "metadata.jsonl"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a written set is made of. Sets with equal manifests hold equal labels and pixels."""

    format: int
    generator: str
    generator_version: int
    profile: str
    seed: int
    num_images: int
    image_size: int
    pillow: str
    numpy: str


class _Shard(msgspec.Struct, frozen=True):
    """Up to 1,000 pictures of one split: the unit of work, present as a whole or not at all."""

    folder: str
    profile: str
    seed: int
    indices: list[int]


def make_data(
    profile: str,
    out: Path,
    *,
    num_images: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the product set of a profile to the folder `out` and return it.

    `progress(done, total)` is called with numbers of images after every shard. `workers` is the
    number of processes, by default one for every CPU this process may use. A second call with the
    same arguments goes on where a stopped one ended.

    Raises `DataError` for an unknown profile, for a folder that holds something else, and when
    writing fails.
    """
    if profile not in PROFILE_OF:
        raise DataError(f"There is no profile {profile!r}. {nearest(profile, PROFILE_OF)}")
    total = PROFILE_OF[profile].num_images if num_images is None else num_images
    if total < PROFILE_OF[profile].val_every:
        raise DataError(f"{total} images leave no split: ask for at least 10.")
    out = out.expanduser().absolute()
    try:
        _start(out, _manifest(profile, total, seed))
        shards = list(_shards(out, profile, total, seed))
        _write_missing(shards, workers or num_cores(), progress)
        for split in ("train", "val"):
            _write_metadata(out / split, PROFILE_OF[profile], seed, split, total)
    except OSError as error:
        raise DataError(
            f"Writing to {out} failed ({error.strerror}): make room or choose another folder, "
            "then run the same command to go on."
        ) from error
    return out


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a written product set; None when the folder is none."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST_NAME).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None
    return manifest if manifest.generator == "ringside products" else None


def _manifest(profile: str, num_images: int, seed: int) -> Manifest:
    import numpy as np
    import PIL

    return Manifest(
        format=FORMAT,
        generator="ringside products",
        generator_version=GENERATOR_VERSION,
        profile=profile,
        seed=seed,
        num_images=num_images,
        image_size=PROFILE_OF[profile].image_size,
        pillow=PIL.__version__,
        numpy=np.__version__,
    )


def _start(out: Path, manifest: Manifest) -> None:
    """Claim an empty folder, or check that a started one is to hold the same pictures."""
    if not out.exists() or not any(out.iterdir()):
        out.mkdir(parents=True, exist_ok=True)
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
        _write_whole(out / MANIFEST_NAME, content)
    elif (found := read_manifest(out)) is None:
        raise DataError(f"{out} is not empty and holds no product set: choose another folder.")
    elif found != manifest:
        differing = [
            f"{name} {getattr(found, name)} there, {getattr(manifest, name)} asked for"
            for name in manifest.__struct_fields__
            if getattr(found, name) != getattr(manifest, name)
        ]
        raise DataError(f"{out} holds another set ({'; '.join(differing)}): choose another folder.")


def _shards(out: Path, profile: str, total: int, seed: int) -> Iterator[_Shard]:
    for split in ("train", "val"):
        indices = _indices(PROFILE_OF[profile], split, total)
        for number, start in enumerate(range(0, len(indices), SHARD_IMAGES)):
            folder = str(out / split / _shard_name(number))
            yield _Shard(folder, profile, seed, indices[start : start + SHARD_IMAGES])


def _indices(profile: Profile, split: str, total: int) -> list[int]:
    return [i for i in range(total) if is_val(profile, i) == (split == "val")]


def _shard_name(number: int) -> str:
    return f"shard-{number:05d}"


def _write_missing(
    shards: list[_Shard], workers: int, progress: Callable[[int, int], None] | None
) -> None:
    missing = [shard for shard in shards if not Path(shard.folder).exists()]
    total = sum(len(shard.indices) for shard in shards)
    done = total - sum(len(shard.indices) for shard in missing)
    for num_written in _written(missing, min(workers, len(missing))):
        done += num_written
        if progress:
            progress(done, total)


def _written(shards: list[_Shard], workers: int) -> Iterator[int]:
    if workers <= 1:
        yield from map(_write_shard, shards)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    context = multiprocessing.get_context("spawn")  # the caller may hold threads
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for future in as_completed([pool.submit(_write_shard, shard) for shard in shards]):
            yield future.result()


def _write_shard(shard: _Shard) -> int:
    """Draw a shard beside its place and rename it, so that a shard that exists is complete."""
    from ringside.data.products.render import render_jpeg

    folder, profile = Path(shard.folder), PROFILE_OF[shard.profile]
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for index in shard.indices:
        scene, _ = draw_scene(profile, shard.seed, index)
        content = render_jpeg(scene, side_px(profile, shard.seed, index), shard.seed, index)
        (partial / _file_name(index)).write_bytes(content)
    partial.rename(folder)
    return len(shard.indices)


def _file_name(index: int) -> str:
    return f"{index:07d}.jpg"


def _write_metadata(folder: Path, profile: Profile, seed: int, split: str, total: int) -> None:
    lines = []
    for position, index in enumerate(_indices(profile, split, total)):
        _, labels = draw_scene(profile, seed, index)
        name = f"{_shard_name(position // SHARD_IMAGES)}/{_file_name(index)}"
        lines.append(msgspec.json.encode({"file_name": name, "labels": labels}))
    _write_whole(folder / METADATA_NAME, b"\n".join(lines) + b"\n")


def _write_whole(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
