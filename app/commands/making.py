"""Commands that make data."""

from __future__ import annotations

from pathlib import Path


def make(
    out: Path, *, profile: str, num_images: int | None, seed: int, workers: int | None
) -> None:
    """Make synthetic pictures with a progress line."""
    from rich.progress import Progress

    from ringside.data import make_data
    from ringside.words import say

    with Progress(transient=True) as progress:
        task = progress.add_task(say("preparing.making_synthetic", profile=profile), total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        folder = make_data(
            profile, out, num_images=num_images, seed=seed, workers=workers, progress=report
        )
    print(say("preparing.made_synthetic", folder=folder))
