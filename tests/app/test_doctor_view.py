"""The doctor's findings as the page shows them, and the address that fills the form."""

from __future__ import annotations

import re
from html import unescape

import msgspec
import pytest

from app.page.draw.doctor import (
    chart_grid,
    doctor_line,
    machine_card,
    measuring_panel,
    missing_list,
    other_findings,
    six_points,
    traces_card,
    verdict_card,
    with_code,
)
from app.views.charts.figure import Picture
from app.views.consultations import ConsultState
from app.views.doctor import DoctorView, card_of, cards_of, machine_view, points_of
from app.views.measuring import MeasuringState
from ringside.doctor import Diagnosis, Evidence, Finding
from ringside.doctor.ticks import Figure
from ringside.doctor.walkthrough import Point
from ringside.environment_lint import Finding as Variable
from ringside.environment_lint import lint
from ringside.hardware import Hardware
from ringside.machine import GpuState, Machine, Process
from ringside.words import speaking

RUN = "20260102-030401-calm-otter"
BAD = "<script>alert(1)</script>"


def finding(**changes):
    values = {
        "code": "DATA-001", "cause": "data", "severity": "critical", "sentence": "Images are late.",
        "confidence": "high", "refutation": "It stays.",
        "next_step": "Run `ringside data prepare`.", "share_ratio": 0.41, "gain_ratio": 0.5,
        "evidence": (
            Evidence(label="waits", value="40 ms", source=f"/runs/{RUN}/trace/rank1.json"),
        ),
    }  # fmt: skip
    return Finding(**(values | changes))


def view(**changes):
    verdict, *others = cards_of(Diagnosis(verdict=finding(), others=(finding(code="LINK-001"),)))
    values = {
        "verdict": verdict, "others": tuple(others), "missing": (), "points": (), "pictures": (),
        "gaps": (), "machine": None,
    }  # fmt: skip
    return DoctorView(**(values | changes))


def test_a_card_says_how_large_how_sure_and_what_next():
    card = card_of(finding(), RUN)
    assert card.share == "41 % of the step"
    assert card.gain == "Without it the step is at most 50 % shorter: 2.00× at best."
    assert card.confidence == "Confidence: high"
    assert card.evidence == (("waits", "40 ms", "trace/rank1.json"),)
    assert card.apply is None
    html = verdict_card(card)
    assert "width:41.00%" in html
    assert '<code class="rs-code">ringside data prepare</code>' in html
    assert html.index("Images are late.") < html.index("Next step") < html.index("trace/rank1")


def test_what_was_not_measured_is_said_and_draws_no_bar():
    card = card_of(finding(share_ratio=None, gain_ratio=None, confidence="not enough data"))
    assert card.share == "share of the step not measured"
    assert "not measured" in card.gain
    assert card.confidence == "Not enough data to be sure"
    assert "rs-share" not in verdict_card(card)


@pytest.mark.parametrize("ratio", [1.0, 1.3])
def test_a_whole_step_is_no_speed_up_without_end(ratio):
    assert "nearly all" in card_of(finding(gain_ratio=ratio)).gain


def test_apply_is_an_address_with_preset_run_and_settings():
    card = card_of(finding(preset="ddp_bf16", overrides={"bucket_cap_mb": "50"}), RUN)
    assert card.apply == f"./?preset=ddp_bf16&run={RUN}&set=bucket_cap_mb%3D50"
    assert f'href="{card.apply.replace("&", "&amp;")}"' in verdict_card(card)
    assert card_of(finding(overrides={"a": "1"})).apply_label == "Apply these settings"


def test_variables_that_are_the_remedy_are_unset_in_a_shell_and_not_by_the_form(make_spec):
    spec = make_spec("ddp", data="products")
    card = card_of(finding(unset=("NCCL_P2P_DISABLE",)), RUN, spec)
    assert card.apply is None
    assert card.command.startswith("env -u NCCL_P2P_DISABLE ringside run ddp --data=products")
    html = verdict_card(card)
    assert shown_command(html) == card.command
    assert "<details" not in html
    both = card_of(finding(unset=("NCCL_P2P_DISABLE",), preset="ddp"), RUN, spec)
    assert both.apply is None  # half of a remedy is none


def test_beside_the_button_the_command_is_folded(make_spec):
    card = card_of(finding(preset="ddp_bf16"), RUN, make_spec("ddp", data="a 'b' <c>"))
    html = verdict_card(card)
    folded = html.partition("<details")[2].partition("</details>")[0]
    assert shown_command(folded) == card.command
    assert "rs-command" not in verdict_card(card_of(finding(), RUN, make_spec("ddp")))


def shown_command(html):
    found = re.search(r'<code class="rs-command">(.*?)</code>', html)[1]
    return unescape(re.sub("</?span>", "", found))


def test_six_figures_are_in_sight_and_the_others_are_folded():
    many = tuple(Evidence(label=f"figure {i}", value="1", source="x") for i in range(9))
    html = verdict_card(card_of(finding(evidence=many)))
    shown, _, folded = html.partition("<details")
    assert [f"figure {i}" in shown for i in range(9)] == [True] * 6 + [False] * 3
    assert "All figures (3 more)" in folded
    assert all(f"figure {i}" in folded for i in (6, 7, 8))
    assert "<details" not in verdict_card(card_of(finding(evidence=many[:6])))


def test_other_findings_are_folded():
    assert other_findings(()) == ""
    html = other_findings(view().others)
    assert html.startswith("<details")
    assert "Also found: 1" in html


def test_a_point_has_a_word_beside_its_sign():
    point = Point(
        number=3, name="overlap", title="Overlap", claim="said", truth="true", state="attention",
        figures=(Figure(label="overlap", value="23 %", source=f"/x/{RUN}/trace/rank0.json"),
                 Figure(label="exposed", value=None, how="record a trace: `ringside profile`")),
    )  # fmt: skip
    (shown,) = points_of([point], RUN)
    assert shown.measured[0] == ("overlap", "23 %", "trace/rank0.json")
    html = six_points([shown])
    assert '<span aria-hidden="true">▲</span> look here' in html
    assert "exposed – " in html  # missing is a dash, with the way to get it
    assert '<code class="rs-code">ringside profile</code>' in html


def test_the_machine_shows_what_is_known_and_who_else_is_there():
    gpu = GpuState(
        index=0, name="NVIDIA H200", memory_used_bytes=10**9, memory_total_bytes=15 * 10**10,
        utilisation_ratio=0.5, sm_clock_mhz=1200, max_sm_clock_mhz=1980,
        throttle_reasons=("too hot",), pcie_generation=3, max_pcie_generation=5, pcie_width=16,
        max_pcie_width=16,
        processes=(Process(pid=4, name="python", user="ann"), Process(pid=5, is_ours=True)),
    )  # fmt: skip
    variable = Variable(name="NCCL_P2P_DISABLE", value="1", level="handicap", about="No P2P.")
    shown = machine_view(
        Machine(t=1.0, hardware=Hardware(), gpus=(gpu, GpuState(index=1, name="?")), num_cores=8,
                shm_total_bytes=64 * 10**6, shm_free_bytes=60 * 10**6, variables=(variable,),
                problems=("NVML is old.",))
    )  # fmt: skip
    assert shown.gpus[0] == (
        "0 · NVIDIA H200", "1.0 GB / 150.0 GB", "50 %", "1200 / 1980 MHz (too hot)",
        "gen 3 x16 of 5 x16 (at rest)", "python (ann)",
    )  # fmt: skip
    assert shown.gpus[1][2:] == ("–", "–", "–", "nobody")
    assert ("/dev/shm", "60.0 MB free of 64.0 MB") in shown.host
    html = machine_card(shown)
    assert "NCCL_P2P_DISABLE=1" in html
    assert "NVML is old." in html


def test_the_machine_is_kept_in_english_and_shown_in_the_language_that_is_spoken():
    """Variables and what slows a GPU are data; each visitor reads them in their own words."""
    gpu = GpuState(index=0, name="NVIDIA H200", throttle_reasons=("power cap", "too hot"))
    machine = Machine(
        t=1.0, hardware=Hardware(), gpus=(gpu,), variables=lint({"NCCL_P2P_DISABLE": "1"})
    )
    assert "NVLink or PCIe" in machine_view(machine).variables[0][2]
    with speaking("zh"):
        shown = machine_view(machine)
    assert shown.variables[0] == (
        "NCCL_P2P_DISABLE", "1", "设为 1 时，同一主机上的 GPU 不能经 NVLink 或 PCIe 互相读取显存。",
    )  # fmt: skip
    assert shown.gpus[0][3] == "–（功耗上限, too hot）"


def test_a_machine_that_only_a_run_noted_was_not_looked_at():
    assert "Not checked yet" in machine_card(machine_view(Machine(t=0.0, hardware=Hardware())))
    assert "Not checked yet" in machine_card(None)


def test_charts_can_be_taken_away_and_read_as_a_table():
    picture = Picture("waterfall", "Step", "Rank 1 waits.", "d", ("", "x"), (("rank 0", "1 ms"),),
                      wide="<svg>wide</svg>", narrow="<svg>narrow</svg>", svg="<svg/>",
                      png=b"\x89PNG")  # fmt: skip
    html = chart_grid(
        view(pictures=(picture,), gaps=("No curve: `ringside doctor`.",)), "calm-otter"
    )
    assert 'download="ringside-waterfall-calm-otter.svg" href="data:image/svg+xml;base64,' in html
    assert (
        'download="ringside-waterfall-calm-otter.png" href="data:image/png;base64,iVBORw==' in html
    )
    assert "<td" in html
    assert '<code class="rs-code">ringside doctor</code>' in html


@pytest.mark.parametrize(("num", "columns"), [(0, [0]), (1, [1, 0]), (3, [2, 1]), (4, [2, 2])])
def test_charts_stand_in_two_columns_and_what_is_missing_after_them(num, columns):
    picture = Picture("a", "b", "c", "d", ("",), (("x",),), "w", "n", "s", b"\x00")
    html = chart_grid(view(pictures=(picture,) * num, gaps=("No curve.",)), "calm-otter")
    stacks = html.split('<div class="rs-figure-stack">')[1:]
    assert [stack.count("<figure") for stack in stacks] == columns
    assert [("No curve." in stack) for stack in stacks] == [False] * (len(stacks) - 1) + [True]


def test_traces_come_with_a_link_that_a_person_clicks():
    html = traces_card(view(traces=(("rank0.json.gz", "1.2 MB"),)), "calm-otter")
    assert re.search(r'<a href="https://ui.perfetto.dev" target="_blank" rel="noopener', html)
    assert "ringside profile calm-otter" in traces_card(view(), "calm-otter")


def test_the_page_of_a_run_has_one_sentence_and_a_link():
    assert doctor_line(ConsultState("running"), RUN) == ""
    html = doctor_line(ConsultState("done", view()), RUN)
    assert "Images are late." in html
    assert f'href="doctor?run={RUN}"' in html


def test_a_measurement_shows_its_last_line():
    assert measuring_panel(MeasuringState()) == ""
    state = MeasuringState("running", line="32 MiB", started_t=0.0)
    assert "32 MiB" in measuring_panel(state)
    assert 'role="alert"' in measuring_panel(MeasuringState("failed", line="No."))


def test_everything_from_outside_is_escaped():
    bad = finding(
        sentence=BAD, next_step=f"`{BAD}`", refutation=BAD, preset="a&b", overrides={BAD: '"'},
        evidence=(Evidence(label=BAD, value=BAD, source=BAD),),
    )  # fmt: skip
    html = verdict_card(card_of(bad)) + other_findings([card_of(bad)]) + with_code(BAD)
    html += missing_list(view(missing=(BAD,)))
    html += traces_card(view(traces=((BAD, BAD),)), BAD)
    assert "<script" not in html
    assert "preset=a%26b" in html


def test_a_view_travels_between_processes():
    whole = view(pictures=(Picture("a", "b", "c", "d", ("",), (("x",),), "w", "n", "s", b"\x00"),))
    assert msgspec.json.decode(msgspec.json.encode(whole), type=DoctorView) == whole
