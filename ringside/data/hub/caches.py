"""Where the libraries of Hugging Face keep what they download."""

from __future__ import annotations

import os


def cache_folders() -> tuple[str, ...]:
    """The caches of `datasets` and `huggingface_hub`, without links.

    Their common parent is none of them: it holds the user's token.
    """
    import datasets
    from huggingface_hub import constants

    config = datasets.config
    named = (
        config.HF_DATASETS_CACHE,
        config.DOWNLOADED_DATASETS_PATH,
        config.EXTRACTED_DATASETS_PATH,
        constants.HF_HUB_CACHE,
    )
    return tuple(dict.fromkeys(os.path.realpath(os.path.expanduser(path)) for path in named))
