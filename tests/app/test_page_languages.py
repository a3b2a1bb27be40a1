"""Which language a visitor gets, and pages that are whole in it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.context import LocalContext

from app.audit import audited
from app.entry import choose_language
from app.page import PageSettings, build
from app.page.frame import acts, careful, quiet
from app.page.languages import COOKIE, Languages, language_for, language_switch
from app.views.kept_form import kept_form
from app.views.listing import ListRow
from ringside.errors import RingsideError
from ringside.words import DEFAULT, languages, say, speak, speaking, spoken

CJK = re.compile(r"[\u4e00-\u9fff]")
PAGE = b'<!doctype html><html\n\tlang="en"><head><title>x</title></head><body></body></html>'


def asking(cookie: str | None = None, accept: str | None = None) -> Any:
    return SimpleNamespace(
        headers={"accept-language": accept} if accept else {},
        cookies={COOKIE: cookie} if cookie else {},
    )


@pytest.mark.parametrize(
    ("cookie", "accept", "language"),
    [
        (None, None, "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, "de-DE,de;q=0.9,zh;q=0.5,en;q=0.4", "zh"),
        (None, "en;q=0.3,zh;q=0.7", "zh"),
        (None, "zh;q=0,en", "en"),
        (None, "fr,de", "en"),
        (None, "zh;q=nonsense,;;,=", "en"),
        ("en", "zh-CN", "en"),
        ("zh", "en-US", "zh"),
        ("../../etc/passwd", "zh", "zh"),
    ],
)
def test_the_cookie_comes_first_then_the_browser(cookie, accept, language):
    assert language_for(asking(cookie, accept)) == language


def test_without_a_wish_it_is_the_servers_language():
    with speaking("zh"):
        assert language_for(asking(accept="fr")) == "zh"


def ask(
    path: str, query: str = "", *, method: str = "GET", kind: bytes = b"text/html",
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes, list[str]]:  # fmt: skip
    """What `Languages` answers before an application that notes the language it was asked in."""
    seen, sent = [], []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(spoken())
        length = str(len(PAGE)).encode()
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-type", kind), (b"content-length", length)]})  # fmt: skip
        await send({"type": "http.response.body", "body": PAGE[:30], "more_body": True})
        await send({"type": "http.response.body", "body": PAGE[30:]})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "query_string": query.encode(),
        "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
        "server": ("localhost", 80), "scheme": "http",
    }  # fmt: skip
    asyncio.run(Languages(application)(scope, None, send))  # type: ignore[arg-type]
    start, *bodies = sent
    found = {key.decode(): value.decode() for key, value in start["headers"]}
    return start["status"], found, b"".join(part.get("body", b"") for part in bodies), seen


def test_a_page_begins_in_the_visitors_language():
    status, headers, body, seen = ask("/runs", "run=x", headers={"accept-language": "zh-CN"})
    assert (status, seen) == (200, ["zh"])
    assert b'lang="zh-CN"' in body
    assert b'lang="en"' not in body
    # Gradio's own words follow the browser's language, so it is told before any other script.
    assert body.index(b"navigator") < body.index(b"<title>")
    assert headers["content-length"] == str(len(body))
    assert headers["content-language"] == "zh-CN"
    assert "Accept-Language" in headers["vary"]


def test_what_is_no_page_is_sent_on_as_it_is():
    _, headers, body, seen = ask("/x", kind=b"application/json", headers={"cookie": f"{COOKIE}=zh"})
    assert (body, seen) == (PAGE, ["zh"])
    assert "content-language" not in headers


@pytest.mark.parametrize(
    ("path", "query", "place"),
    [
        ("/", "lang=zh", "./"),
        ("/runs", "lang=zh", "runs"),
        ("/runs", "run=a%26b&lang=zh&x=1", "runs?run=a%26b&x=1"),
    ],
)
def test_a_wish_in_the_address_is_remembered_and_gone(path, query, place):
    status, headers, _, seen = ask(path, query)
    assert (status, seen) == (303, [])
    assert headers["location"] == place
    assert headers["set-cookie"].startswith(f"{COOKIE}=zh;")


def test_a_wish_for_an_unknown_language_changes_nothing_but_the_address():
    status, headers, _, _ = ask("/runs", "lang=klingon%0d%0aset-cookie:x&run=y")
    assert status == 303
    assert headers["location"] == "runs?run=y"
    assert "set-cookie" not in headers


def test_only_pages_are_redirected():
    assert ask("/gradio_api/info", "lang=zh")[0] == 200
    assert ask("/runs", "lang=zh", method="POST")[0] == 200


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(PageSettings(tmp_path_factory.mktemp("runs")))


def shown(config: Any) -> list[tuple[str, str]]:
    """(id, text) of every label, help text, button and choice of the components."""
    found = []
    for part in config["components"]:
        props = part["props"]
        texts = [props.get(name) for name in ("label", "info", "placeholder")]
        if part["type"] == "button":
            texts.append(props["value"])
        if props.get("elem_id") != "field-model":
            texts += [name for name, _ in props.get("choices") or ()]
        found += [(props.get("elem_id"), text) for text in texts if isinstance(text, str)]
    return found


def test_pages_have_the_same_components_in_every_language(site):
    configs = []
    for language in languages():
        with speaking(language):
            configs.append(site.config)
    first, *others = configs
    for other in others:
        assert [part["id"] for part in other["components"]] == [
            p["id"] for p in first["components"]
        ]
        for name in ("dependencies", "layout", "page"):
            assert other[name] == first[name]
        assert len(shown(other)) == len(shown(first))


def test_no_label_of_a_page_is_left_in_english(site):
    with speaking("zh"):
        texts = shown(site.config)
    assert len(texts) > 60
    english = {text for _, text in shown(site.config)}
    typed = {"fp32", "fp16", "bf16", "2h30m"}
    typed |= {text for _, text in texts if "/" in text or "=" in text}  # examples to type
    left = [(place, text) for place, text in texts
            if text in english and not CJK.search(text) and text not in typed]  # fmt: skip
    assert left == []


def test_headings_are_in_the_language_too(site):
    with speaking("zh"):
        html = json.dumps(site.config, default=str, ensure_ascii=False)
    assert say("train.lead", "zh") in html
    assert say("train.lead", "en") not in html


def test_the_switch_marks_the_language_and_names_each_in_its_own():
    with speaking("zh"):
        html = language_switch()
    assert re.search('data-language="zh"[^>]*aria-pressed="true"', html)
    assert re.search('data-language="en"[^>]*aria-pressed="false"', html)
    assert 'lang="zh-CN"' in html
    assert "中文" in html


@pytest.mark.parametrize("wrap", [careful, quiet, acts("try")])
def test_handlers_speak_to_whoever_asks(wrap):
    token = LocalContext.request.set(asking("zh"))  # type: ignore[arg-type]
    try:
        assert wrap(lambda: {"said": say("state.failed")})() == {"said": "失败"}
    finally:
        LocalContext.request.reset(token)
    assert spoken() == DEFAULT


def test_a_refusal_is_told_in_the_visitors_language_and_logged_in_english(monkeypatch, caplog):
    told = []
    monkeypatch.setattr(gr, "Warning", lambda text, **_: told.append(text))

    @acts("start")
    def refuse() -> None:
        raise RingsideError(say("occupied.by_one", names="amber-fox", first="amber-fox"))

    token = LocalContext.request.set(asking("zh"))  # type: ignore[arg-type]
    try:
        with caplog.at_level(logging.INFO, "ringside.audit"):
            refuse()
    finally:
        LocalContext.request.reset(token)
    assert CJK.search(told[0])
    assert "amber-fox uses the devices" in caplog.text
    assert not CJK.search(caplog.text)


def test_the_audit_is_english_where_the_handler_says_it_by_itself(caplog):
    with (
        caplog.at_level(logging.INFO, "ringside.audit"),
        speaking("zh"),
        pytest.raises(RingsideError),
        audited("stop"),
    ):
        raise RingsideError(say("page.stale"))
    assert "reload it" in caplog.text


@pytest.mark.parametrize(
    ("words", "environment", "language"),
    [
        (["list"], {"RINGSIDE_LANGUAGE": "zh"}, "zh"),
        (["list", "--json"], {"RINGSIDE_LANGUAGE": "zh"}, "en"),
        (["show", "x"], {"LANG": "zh_CN.UTF-8"}, "zh"),
        (["show", "x"], {"RINGSIDE_LANGUAGE": "xx", "LANG": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_a_command_speaks_to_people_and_programs_get_english(words, environment, language, capsys):
    try:
        choose_language(words, environment)
        assert spoken() == language
    finally:
        speak(DEFAULT)
    assert ("RINGSIDE_LANGUAGE=xx" in capsys.readouterr().err) == ("xx" in environment.values())


def test_a_form_travels_in_an_address():
    values = {"preset": "fsdp", "epochs": 7, "batch": 0, "gpus": [0, 1], "retry": False, "seed": 0}
    query = [
        ("run", "x"),
        ("form", json.dumps(values | {"folder": "", "model": None, "token": "t"})),
    ]
    names = {*values, "folder", "model"}
    assert kept_form(query, names, {"batch"}) == {
        "preset": "fsdp", "epochs": 7, "gpus": [0, 1], "retry": False, "seed": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '"x"', "[" * 100_000, '{"a": {"b": 1}}', '{"a": [[1]]}', "NaN"]
)
def test_nonsense_in_the_address_fills_nothing(text):
    assert kept_form([("form", text)], {"a"}, set()) == {}


def test_a_line_of_the_list_is_kept_as_data_not_as_words(write_run, make_spec, root):
    """What the server keeps of a run that has ended must not be in its first viewer's language."""
    from app.views.desk import Desk

    write_run(make_spec("single"), "20261130-000000-amber-fox")
    desk = Desk(root)

    def progress() -> str:
        (row,) = desk.rows()
        assert isinstance(row, ListRow)
        return row.progress

    assert progress() == say("run.epochs_done", n=3, total=3)
    with speaking("zh"):
        assert progress() == say("run.epochs_done", "zh", n=3, total=3)


def test_a_playbook_is_english_and_its_refusal_is_not(root):
    """It is made in English, so what refuses it is told anew to whoever asked."""
    from app.views.playbook_export import export_playbook

    with speaking("zh"):
        for runs in ([], ["20261130-000000-amber-fox"] * 2):
            with pytest.raises(RingsideError) as caught:
                export_playbook(root, runs)
            assert CJK.search(str(caught.value))
