"""The documents of the built-in presets: a page each, and their table with links."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ringside.preset_differences import settings
from ringside.presets import Preset, accelerate_text, beyond_accelerate


def page(preset: Preset) -> str:
    """`docs/presets/NAME.md`: what a person reads before choosing it."""
    about, name = preset.about, preset.name
    rows = [
        f"| `{key}` | {_cell(value)} |"
        for key, value in settings(preset.file).items()
        if _is_given(preset, key)
    ]
    beyond = beyond_accelerate(preset)
    left = f"\nIt cannot hold: {', '.join(f'`{one}`' for one in beyond)}.\n" if beyond else ""
    return f"""# `{name}`

{about.title}. {about.why}

| | |
| --- | --- |
| when | {about.when} |
| limits | {about.limits or "–"} |
| devices | {", ".join(about.devices)} |
| author | {about.author or "–"} |

## Settings

Those that the file states; all others are at [their default](../run-directory.md#specjson).

| setting | value |
| --- | --- |
{chr(10).join(rows)}

## Accelerate's file

`ringside presets export {name} --accelerate` writes it.

```yaml
{accelerate_text(preset).rstrip()}
```
{left}
## Run it

```
ringside run {name} --data emoji
ringside presets diff {name} single
ringside presets clone {name} my_{name}
```
"""


def table(presets: Iterable[Preset], folder: str) -> str:
    """The presets as a Markdown table whose names lead to their pages in `folder`."""
    rows = ["| preset | what it does | devices |", "| --- | --- | --- |"]
    for preset in presets:
        link = f"[`{preset.name}`]({folder}/{preset.name}.md)"
        rows.append(f"| {link} | {preset.about.why} | {', '.join(preset.about.devices)} |")
    return "\n".join(rows)


def _is_given(preset: Preset, key: str) -> bool:
    dotted = f"accelerate.fsdp_config.{key}" if key.startswith("fsdp_") else key
    return dotted in preset.given


def _cell(value: object) -> str:
    return f"`{value}`" if isinstance(value, str) else json.dumps(value)
