"""The audit: one line for each thing somebody did, whatever came of it, and no line forged."""

from __future__ import annotations

import logging

import gradio as gr
import pytest
from gradio.context import LocalContext

from app.audit import about, audited, log, refused, to_standard_error
from app.page.frame import acts
from ringside.errors import RunDirError


@pytest.fixture
def lines(caplog):
    """The lines so far."""
    caplog.set_level(logging.INFO, logger="ringside.audit")
    return lambda: [record.getMessage() for record in caplog.records]


def test_one_line_says_who_what_and_how_it_ended(lines):
    with audited("stop", "lea", "10.0.0.7"):
        about("20260101-000000-calm-fox")
    with audited("start"):
        about(None, "")
    assert lines() == [
        "audit who=lea from=10.0.0.7 what=stop about=20260101-000000-calm-fox outcome=done",
        "audit who=local what=start outcome=done",
    ]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RunDirError("No such run."), '"No such run."'),
        (ZeroDivisionError(), '"broke: ZeroDivisionError"'),
    ],
)
def test_what_failed_has_its_line_and_goes_on(lines, error, outcome):
    with pytest.raises(type(error)), audited("delete"):
        raise error
    assert lines() == [f"audit who=local what=delete outcome={outcome}"]


def test_nothing_that_was_typed_can_look_like_a_line(lines):
    with audited("delete", 'eve" outcome=done\n2026-01-01 audit who=root'):
        about("x\r\ny\x1b[2J", "z" * 1000)
    (line,) = lines()
    assert "\n" not in line
    assert "\r" not in line
    assert "\x1b" not in line
    assert len(line) < 600
    assert r"eve\" outcome=done\n2026" in line


def test_outside_of_a_line_nothing_is_noted(lines):
    about("x")
    refused("y")
    assert lines() == []


def test_a_handler_that_acts_is_calm_and_on_record(lines, monkeypatch):
    told = []
    monkeypatch.setattr(gr, "Warning", lambda text, **_: told.append(text))

    @acts("stop")
    def handler(run):
        about(run)
        raise RunDirError("It is over.")

    class Request:
        username = "lea"
        client = type("Client", (), {"host": "10.0.0.7"})()

    token = LocalContext.request.set(Request())
    try:
        assert handler("r1") == gr.skip()
    finally:
        LocalContext.request.reset(token)
    assert told == ["It is over."]
    assert lines() == ['audit who=lea from=10.0.0.7 what=stop about=r1 outcome="It is over."']


def test_the_server_s_log_is_standard_error_once(monkeypatch, capsys):
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "level", log.level)
    to_standard_error()
    to_standard_error()
    with audited("stop"):
        pass
    out, err = capsys.readouterr()
    assert (out, err.count("what=stop")) == ("", 1)
    assert err.startswith("20")
