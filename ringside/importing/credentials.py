"""Finds what must not be shared: tokens, keys and passwords. A preset goes from hand to hand.

Patterns follow what the issuers document (Hugging Face `hf_`, AWS `AKIA`/`ASIA`, GitHub `ghp_` and
its kin, Slack `xox?-`, Google `AIza`, JSON Web Tokens, PEM keys).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ringside.errors import PresetError
from ringside.importing.outcome import leaves, shown
from ringside.words import say
from ringside.yaml_text import FaultError

_SHAPES = (
    ("Hugging Face", re.compile(r"\bhf_[A-Za-z0-9]{16,}")),
    ("AWS", re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("GitHub", re.compile(r"\b(gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,})")),
    ("OpenAI", re.compile(r"\bsk-[A-Za-z0-9_-]{20,}")),
    ("Slack", re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}")),
    ("Google", re.compile(r"\bAIza[0-9A-Za-z_-]{35}")),
    ("JWT", re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}")),
    ("PEM", re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY")),
    ("URL", re.compile(r"://[^/\s:@]{1,200}:[^/\s@]{1,200}@")),
)
_NAMES = re.compile(
    r"(^|[_.\- ])(token|password|passwd|passphrase|secret|credentials?|"
    r"(api|access|private|secret|auth)[_-]?key)([_.\- ]|$)",
    re.IGNORECASE,
)


def refuse_credentials(text: str, value: Any) -> None:
    """PresetError that names the line or the key, never the secret; comments are searched too."""
    for number, line in enumerate(text.splitlines(), start=1):
        for issuer, shape in _SHAPES:
            if shape.search(line):
                sentence = say("importing.refused_secret", line=number, issuer=issuer)
                raise FaultError(sentence, reason=sentence, line=number)
    for key, inner in _pairs("", value):
        filled = isinstance(inner, str | int | float) and not isinstance(inner, bool)
        if filled and str(inner).strip() and _NAMES.search(key):
            raise PresetError(say("importing.refused_secret_key", name=shown(key)))


def _pairs(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(dotted key, value), into lists as well."""
    for leaf, inner in leaves(key, value):
        if isinstance(inner, list):
            for item in inner:
                yield from _pairs(leaf, item)
        else:
            yield leaf, inner
