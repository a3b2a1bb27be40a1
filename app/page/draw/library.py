"""The Library page's HTML for presets: the list, one of them, an import, the libraries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from app.page.draw import heading, items, soft, table, with_code
from app.page.draw.pictures import file_link
from app.views.library import PairView, PresetRow, PresetView, SourceView, VersionView
from ringside.adaptation import Adaptation
from ringside.importing import Import
from ringside.preset_editing import Problem
from ringside.words import say

CHANGES = ("line", "key", "action", "note")

# Links, so that each entry can be opened in a tab of its own; a plain press stays on the page.
CHOOSE = """
const show = () => element.querySelectorAll('[data-choose]').forEach((link) => {
  if (link.dataset.choose === props.value) link.setAttribute('aria-current', 'true');
  else link.removeAttribute('aria-current');
});
element.addEventListener('click', (event) => {
  const link = event.target.closest('[data-choose]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  window.history.replaceState(null, '', link.getAttribute('href'));
  props.value = link.dataset.choose;
  show();
  trigger('submit');
  const detail = document.getElementById(props.detail);
  if (detail && detail.getBoundingClientRect().top > window.innerHeight * 0.6)
    detail.scrollIntoView({behavior: 'smooth'});
});
element.addEventListener('input', (event) => {
  if (event.target.type !== 'search') return;
  const words = event.target.value.toLowerCase().split(/\\s+/).filter(Boolean);
  for (const entry of element.querySelectorAll('li')) {
    const text = entry.textContent.toLowerCase();
    entry.hidden = !words.every((word) => text.includes(word));
  }
  const none = element.querySelector('[data-none]');
  if (none) none.hidden = [...element.querySelectorAll('li')].some((entry) => !entry.hidden);
});
watch(['value', 'list'], show);
new MutationObserver(show).observe(element, {childList: true, subtree: true});
show();
"""

# A button inside drawn HTML: its words become the component's value. `change` would come twice,
# once for the value and once for the press (gradio 6.31).
PRESS = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-press]');
  if (!button) return;
  props.value = button.dataset.press;
  trigger('submit');
});
"""


def preset_list(rows: Sequence[PresetRow], faults: Iterable[str]) -> str:
    """All presets below a field that finds some; each name opens its preset."""
    found = "".join(map(_preset_line, rows))
    return search("library.search") + f'<ul class="rs-shelf">{found}</ul>{none_fits()}' + items(
        faults, "rs-list rs-bad"
    )  # fmt: skip


def preset_head(view: PresetView) -> str:
    """Name, origin, checksum, what it is for, and what somebody measured with it."""
    row = view.row
    origin = row.origin if row.is_own else say("library.read_only_of", origin=row.origin)
    tags = (origin, row.devices, say("library.checksum", digits=row.checksum))
    measured = items(row.measured) or soft(say("library.not_measured"))
    words = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in view.words)
    train = f"./?preset={quote(row.name)}"
    return (
        f'<div class="rs-opened"><h2 class="rs-name">{escape(row.title)}</h2>'
        f'<p class="rs-line"><code class="rs-code">{escape(row.name)}</code>'
        f"{''.join(f'<span>{escape(tag)}</span>' for tag in tags)}</p>"
        f'<dl class="rs-about">{words}</dl>'
        f'<h3 class="rs-h3">{escape(say("library.measured"))}</h3>{measured}'
        f"{ways(view.ways, f'{train}&way=')}"
        f'<p class="rs-links"><a class="rs-link-button" href="{train}">'
        f"{escape(say('library.train_with'))}</a>{_files(view)}</p></div>"
    )


def ways(found: Iterable[Adaptation], address: str) -> str:
    """How a preset fits the devices of here, each with a link to the filled form; or nothing."""
    lines = "".join(
        f'<li>{with_code(way.sentence)} <a href="{escape(address + way.kind)}">'
        f"{escape(say('library.take_way'))}</a></li>"
        for way in found
    )
    if not lines:
        return ""
    title = escape(say("library.ways"))
    return f'<h3 class="rs-h3">{title}</h3><ul class="rs-list">{lines}</ul>'


def preset_files(view: PresetView) -> str:
    """Both files, folded, and what Accelerate's cannot hold."""
    beyond = items(view.beyond, "rs-list rs-soft")
    lacks = soft(say("library.beyond")) + beyond if view.beyond else ""
    return (
        _fold(say("library.preset_file"), _code(view.yaml))
        + _fold(say("library.accelerate_file"), _code(view.accelerate_yaml) + lacks)
    )  # fmt: skip


def history(versions: Sequence[VersionView], *, is_own: bool) -> str:
    """All saved versions, the newest first, each with what it changed."""
    lines = "".join(_version(one, is_own=is_own) for one in versions)
    return (
        _fold(
            say("library.history", n=len(versions)), f'<ol class="rs-versions">{lines}</ol>'
        )
    )  # fmt: skip


def pair_table(pairs: Sequence[PairView], first: str, second: str, *, everything: bool) -> str:
    """Settings side by side; those that differ have a sign."""
    if not pairs:
        return soft(say("library.same", first=first, second=second))
    rows = [
        [
            f"<code>{escape(one.name)}</code>",
            f"{_unequal(one) if everything else ''}{escape(one.first)}", escape(one.second),
        ]
        for one in pairs
    ]  # fmt: skip
    columns = (say("library.setting"), first, second)
    return f'<div class="rs-pairs">{table(columns, rows, left=3)}</div>'


def problem_list(problems: Sequence[Problem]) -> str:
    """What is wrong with the text, with its line; or that nothing is."""
    if not problems:
        return f'<p class="rs-soft rs-fine" role="status">✓ {escape(say("library.fine"))}</p>'
    lines = "".join(f"<li>{_at(one)}{with_code(one.sentence)}</li>" for one in problems)
    return f'<ul class="rs-list rs-bad" role="alert">{lines}</ul>'


def _at(one: Problem) -> str:
    return f"<b>{escape(say('library.line', n=one.line))}</b> " if one.line else ""


def import_report(found: Import, adapted: Sequence[Adaptation]) -> str:
    """What became of every key, what to know, and how the preset fits this machine."""
    if found.refused is not None:
        title = escape(say("library.refused"))
        return f'<p class="rs-bad" role="alert"><b>{title}</b> {with_code(found.refused)}</p>'
    columns = [say(f"library.change_{name}") for name in CHANGES]
    rows = [
        [escape(str(one.line or "")), f"<code>{escape(one.key)}</code>",
         escape(say(f"library.action_{one.action}")), with_code(one.note)]
        for one in found.changes
    ]  # fmt: skip
    shown = table(columns, rows, left=4) if rows else soft(say("library.is_preset"))
    fits = items(way.sentence for way in adapted)
    return (
        heading(say("library.report"), say(f"library.kind_{found.kind}"))
        + f'<div class="rs-pairs">{shown}</div>'
        + items(found.warnings, "rs-list rs-warned")
        + (f'<h3 class="rs-h3">{escape(say("library.ways"))}</h3>{fits}' if fits else "")
        + _fold(say("library.becomes"), _code(found.text.decode("utf-8-sig", "replace")))
    )


def source_table(sources: Sequence[SourceView]) -> str:
    """Every library, how many presets it has, and why one cannot be read."""
    columns = [say(f"library.source_{name}") for name in ("name", "place", "presets")]
    rows = [
        [_library(one), f"<code>{escape(one.place)}</code>{_fault(one)}", str(one.num_presets)]
        for one in sources
    ]
    return (
        f'{heading(say("library.sources"))}<div class="rs-pairs">{table(columns, rows, left=2)}'
        f"</div>{soft(say('library.how_to_add'))}"
    )


def _preset_line(row: PresetRow) -> str:
    name = escape(row.name)
    origin = row.origin if row.is_own else say("library.read_only_of", origin=row.origin)
    tags = (origin, *([row.author] if row.author else []), row.devices, row.checksum)
    line = "".join(f"<span>{escape(tag)}</span>" for tag in tags)
    measured = f"<em>{escape(row.measured[0])}</em>" if row.measured else ""
    return (
        f'<li><a href="library?preset={quote(row.name)}" data-choose="{name}">'
        f"<b>{escape(row.title)}</b> <code>{name}</code>"
        f'<span class="rs-line">{line}</span>{measured}</a></li>'
    )


def search(key: str) -> str:
    """The field above a list; typing hides what does not fit (`CHOOSE`)."""
    word = escape(say(key))
    return (
        f'<input type="search" class="rs-search" aria-label="{word}" placeholder="{word}" '
        f'title="{escape(say("library.search_help"))}">'
    )


def none_fits() -> str:
    """What stands there when nothing fits."""
    return f'<p class="rs-soft" data-none hidden>{escape(say("library.none_fits"))}</p>'


def _files(view: PresetView) -> str:
    """Links that save both files."""
    name = view.row.name.rpartition(":")[2]
    files = (
        (f"{name}.yaml", view.yaml, "library.save_preset"),
        (f"{name}.accelerate.yaml", view.accelerate_yaml, "library.save_accelerate"),
    )
    return "".join(
        file_link(file, "application/yaml", text.encode(), say(key)) for file, text, key in files
    )


def _version(one: VersionView, *, is_own: bool) -> str:
    end = ""
    if one.is_present:
        end = f'<span class="rs-badge">{escape(say("library.present"))}</span>'
    elif is_own:
        end = (
            f'<button type="button" class="rs-button" data-press="{escape(one.checksum)}">'
            f"{escape(say('library.bring_back'))}</button>"
        )
    changed = ""
    if one.changed:
        lines = "\n".join(one.changed)
        changed = f'<pre class="rs-frames">{escape(lines)}</pre>'
    return (
        f'<li><div class="rs-line"><span>{escape(one.saved)}</span>'
        f"<span><code>{escape(one.checksum[:12])}</code></span></div>{end}{changed}</li>"
    )


def _unequal(one: PairView) -> str:
    if not one.differs:
        return ""
    word = escape(say("library.differs"))
    return f'<span title="{word}" role="img" aria-label="{word}">≠</span> '


def _library(one: SourceView) -> str:
    """A team's by the name that stands before its presets."""
    return escape(one.prefix if one.origin == "team" else say(f"origin.{one.origin}"))


def _fault(one: SourceView) -> str:
    return f'<small class="rs-bad">{escape(one.fault)}</small>' if one.fault else ""


def _fold(summary: str, content: str) -> str:
    return f'<details class="rs-setup"><summary>{escape(summary)}</summary>{content}</details>'


def _code(text: str) -> str:
    return f'<pre class="rs-frames" tabindex="0">{escape(text)}</pre>'
