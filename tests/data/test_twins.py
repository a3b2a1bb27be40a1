"""Files of equal content, found by size, then by their end, then as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ringside.data.folder import twins
from ringside.data.folder.twins import equal_files


def groups(folder: Path, contents: list[bytes | None]) -> list[list[int]]:
    """Write the contents (None: no file) and look for twins."""
    paths = [str(folder / str(i)) for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        if content is not None:
            Path(path).write_bytes(content)
    return equal_files(paths, [len(content or b"") for content in contents])


def test_equal_files_are_grouped(tmp_path: Path) -> None:
    a, b, c = (os.urandom(2000) for _ in range(3))
    assert groups(tmp_path, [a, b, a, c, b, a, a[:-1]]) == [[0, 2, 5], [1, 4]]


@pytest.mark.parametrize("place", [0, 700, 1999])
def test_one_byte_makes_a_difference_wherever_it_is(tmp_path: Path, place: int) -> None:
    first = bytes(2000)
    second = first[:place] + b"x" + first[place + 1 :]
    assert groups(tmp_path, [first, second]) == []


def test_empty_files_are_equal_and_missing_ones_have_no_twin(tmp_path: Path) -> None:
    assert groups(tmp_path, [b"", b"", None, None]) == [[0, 1]]


def test_few_bytes_are_read_of_files_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[str] = []
    content = twins._content
    monkeypatch.setattr(twins, "_content", lambda path: whole.append(path) or content(path))
    same = os.urandom(2000)
    groups(tmp_path, [os.urandom(2000), os.urandom(3000), same, same])
    assert sorted(Path(path).name for path in whole) == ["2", "3"]
