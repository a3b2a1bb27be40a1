"""Charts: what they say, that they follow the theme, and that everybody can read them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from app.views.charts import palette
from app.views.charts.all_reduce import Healthy, all_reduce_curve
from app.views.charts.drawing import picture
from app.views.charts.scaling import ScalingPoint, scaling_curve
from app.views.charts.selection import figures_of, healthy, scaling_points
from app.views.charts.timeline import timeline
from app.views.charts.topology import topology
from app.views.charts.waterfall import Bar, rank_waterfall, run_waterfall, trace_waterfall
from ringside.doctor import case_of_run
from ringside.events import WindowTimed
from ringside.hardware import Hardware
from ringside.machine import GpuState, Link, Machine
from ringside.measurements import Point, Series, Sweep
from ringside.rank_windows import RankParts
from ringside.run import fold_run
from ringside.trace.facts import Breakdown, Facts, HostFacts, RankFacts
from ringside.trace.lanes import Lane, RankLanes
from ringside.trace.totals import Totals

STYLE = Path(__file__).parents[2] / "app" / "page" / "style.css"
MIB = 2**20


def colours(block):
    """Name -> #rrggbb of one theme of the style sheet."""
    text = re.search(rf"{re.escape(block)} \{{(.*?)\}}", STYLE.read_text(), re.S)[1]
    found = dict(re.findall(r"--rs-([\w-]+): (#[0-9a-f]{3,6})", text))
    return {name: value if len(value) == 7 else "#" + "".join(c * 2 for c in value[1:])
            for name, value in found.items()}  # fmt: skip


def luminance(colour):
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def breakdown(**parts):
    names = ("compute", "exposed_transfer", "exposed_wait", "memory", "data_idle", "host_wait",
             "kernel_wait", "other_idle")  # fmt: skip
    values = {f"{name}_us": float(parts.get(name, 0)) for name in names}
    return Breakdown(wall_us=sum(values.values()), **values)


def rank_facts(rank, num_steps=3, **parts):
    zero = Totals(num_events=0, comm_us=0, overlapped_us=0, compute_us=0, idle_us=0, span_us=0)
    host = HostFacts(**dict.fromkeys(HostFacts.__struct_fields__, 0.0))
    return RankFacts(
        rank=rank, file=f"rank{rank}.json", world_size=2, num_events=9, num_steps=num_steps,
        num_devices=1, num_data_parallel=0, is_cpu_estimate=False, num_collectives=1,
        num_matched=1, totals=zero, transfer_us=0, wait_us=0, hidden_transfer_us=0,
        num_persistent=0, breakdown=breakdown(**parts),
        host=host, steps=(), buckets=(), num_all_reduces=0, all_reduce_bytes=None,
        all_reduce_us=None, reduce_stretch_us=0,
    )  # fmt: skip


def starved():
    """Two counted steps: rank 1 waits 41 % for images, rank 0 for rank 1."""
    return Facts(ranks=(
        rank_facts(0, compute=100_000, exposed_wait=100_000),
        rank_facts(1, compute=118_000, data_idle=82_000),
    ))  # fmt: skip


def window(**changes):
    values = {
        "epoch": 2, "step": 20, "num_steps": 10, "samples_per_s": 100.0, "train_loss": 0.5,
        "learning_rate": 0.1, "step_ms": 100.0, "data_ms": 5.0, "forward_ms": 30.0,
        "backward_ms": 50.0, "optimizer_ms": 10.0, "step_ms_min": 99.0, "data_ms_min": 1.0,
        "backward_ms_min": 45.0,
    }  # fmt: skip
    return WindowTimed(**(values | changes))


def sweep(us_per_mib=100.0, transport="NET/Socket", **environment):
    sizes = [16 << 10, MIB, 16 * MIB, 64 * MIB, 256 * MIB]
    points = tuple(
        Point(num_bytes=n, median_us=50 + us_per_mib * n / MIB, p90_us=0, repeats=5) for n in sizes
    )
    base = {"operation": "all_reduce", "dtype": "fp32", "backend": "nccl", "num_ranks": 2,
            "points": points, "transport": transport}  # fmt: skip
    series = [Series(**base)]
    if environment:
        series.append(Series(**base, environment=environment))
    return Sweep(t=0, key="k", device_name="NVIDIA H200", num_ranks=2, series=tuple(series))


def machine(*links, num=3):
    gpus = tuple(GpuState(index=i, name="NVIDIA H200") for i in range(num))
    return Machine(t=1.0, hardware=Hardware(), gpus=gpus, links=links)


def rank_lanes(rank, **lanes):
    found = tuple(
        Lane(name=name, total_us=sum(b - a for a, b in lanes.get(name, ())),
             spans=tuple(lanes.get(name, ())))
        for name in ("compute", "transfer", "wait", "data", "idle")
    )  # fmt: skip
    return RankLanes(rank=rank, step="ProfilerStep#1", wall_us=1000, lanes=found)


EVERY = {
    "waterfall": lambda: trace_waterfall(starved()),
    "timeline": lambda: timeline((rank_lanes(0, compute=[(0, 500)], wait=[(500, 1000)]),
                                  rank_lanes(1, data=[(0, 500)], compute=[(500, 1000)]))),
    "all-reduce": lambda: all_reduce_curve(
        sweep(NCCL_ALGO="Ring"), (5 * MIB, 25 * MIB), Healthy(8e9, 9e9, "sockets", "src")),
    "scaling": lambda: scaling_curve([ScalingPoint(2, 1.5, "calm-otter"), ScalingPoint(4, 3.0)]),
    "topology": lambda: topology(machine(Link(a=0, b=1, kind="nvlink", num_nvlinks=4),
                                         Link(a=0, b=2, kind="sys"))),
}  # fmt: skip


def test_the_colours_are_those_of_the_style_sheet():
    light = colours(":root")
    mixed = {"backward", "other-2", "other-3", "card"}  # worked out there, or white twice
    for colour, name in palette.VARIABLES.items():
        if name not in mixed:
            assert light[name] == colour, name
    assert len(set(palette.VARIABLES.values())) == len(palette.VARIABLES)


@pytest.mark.parametrize("block", [":root", ".dark"])
def test_words_can_be_read_on_every_colour(block):
    theme = colours(block)
    for text in ("ink", "soft", "accent"):
        assert contrast(theme[text], theme["card"]) >= 4.5, text
    for fill in ("compute", "transfer", "data"):
        assert contrast(theme["on-colour"], theme[fill]) >= 3, fill  # bold, beside its word
    for fill in ("wait", "optimizer", "other"):
        assert contrast(palette.ON_LIGHT, theme[fill]) >= 4, fill


@pytest.mark.parametrize("name", EVERY)
def test_every_chart_is_drawn_for_page_and_file(name):
    drawn = picture(EVERY[name]())
    assert drawn.name == name
    assert drawn.png.startswith(b"\x89PNG")
    for svg in (drawn.wide, drawn.narrow, drawn.svg):
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        words = {child.get("id"): child.text for child in root if child.get("id")}
        assert [words[key] for key in root.get("aria-labelledby").split()] == [
            drawn.headline, drawn.description,
        ]  # fmt: skip
    assert "http" not in re.sub(r"xmlns(:\w+)?=\"[^\"]+\"", "", drawn.wide)
    assert {colour.lower() for colour in re.findall("#[0-9a-f]{6}", drawn.wide)} <= {
        palette.ON_LIGHT
    }
    assert "var(--" not in drawn.svg
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (drawn.wide, drawn.narrow)]
    assert not ids[0] & ids[1]
    width = [float(ElementTree.fromstring(svg).get("width")) for svg in (drawn.wide, drawn.narrow)]
    assert width[0] <= 680
    assert width[1] <= 345
    assert all(len(row) == len(drawn.columns) for row in drawn.rows)


def test_the_waterfall_says_who_loses_what():
    figure = trace_waterfall(starved())
    assert figure.headline == "Rank 1 spends 41 % of its step waiting for images."
    # Two of three steps are counted: 100 ms each.
    assert figure.rows[1][0] == "rank 1"
    assert figure.rows[1][1] == "59.0 ms · 59 %"
    assert figure.rows[1][-1] == "100.0 ms"
    assert "images 41 %" in picture(figure).description
    quick = Facts(ranks=(rank_facts(0, compute=95, exposed_transfer=5),))
    assert trace_waterfall(quick).headline == (
        "Rank 0 works in 95 % of its step; no single loss is large."
    )


def test_images_come_before_what_follows_from_them():
    facts = Facts(ranks=(rank_facts(1, compute=20, data_idle=30, host_wait=50),))
    assert "30 % of its step waiting for images" in trace_waterfall(facts).headline


def test_without_traces_the_runs_own_clocks_tell():
    assert run_waterfall([]) is None
    slow = [window(epoch=1, data_ms=90.0), window(data_ms=40.0, num_steps=30), window()]
    figure = run_waterfall(slow)
    # (30 · 40 + 10 · 5) / 40 of 100 ms, the first epoch left out.
    assert "31 % of its step waiting for images" in figure.headline
    assert figure.rows[0][-1] == "100.0 ms"
    # Nobody can tell work from the exchange in backward, so none of it is called work.
    assert run_waterfall([window()]).headline == "The longest part of a step is backward, 45 %."


def rank_parts(rank, **changes):
    """A step of 100 ms, 5 of them in no part."""
    values = {"data_ms": 1.0, "forward_ms": 30.0, "backward_ms": 60.0, "optimizer_ms": 4.0,
              "host_ms": 50.0}  # fmt: skip
    return RankParts(rank=rank, num_steps=20, step_ms=100.0, **(values | changes))


def test_without_traces_each_rank_has_its_bar_and_the_late_one_its_name():
    late = rank_parts(1, data_ms=41.0, backward_ms=20.0)
    figure = rank_waterfall([rank_parts(0), late, rank_parts(2)])
    assert figure.headline == "Rank 1 waits 40.0 ms a step longer for images than the others do."
    assert [row[0] for row in figure.rows] == ["rank 0", "rank 1", "rank 2"]
    assert figure.rows[1][1] == "41.0 ms · 41 %"
    assert {row[-1] for row in figure.rows} == {"100.0 ms"}
    assert picture(figure).png.startswith(b"\x89PNG")
    slow_host = rank_waterfall([rank_parts(0, host_ms=90.0), rank_parts(1)])
    assert slow_host.headline == "Rank 0 issues its work 40.0 ms a step later than the others do."


def test_ranks_that_are_alike_have_no_late_one():
    figure = rank_waterfall([rank_parts(0), rank_parts(1)])
    assert figure.headline.startswith("No rank keeps the others waiting. The longest part is backw")
    starved = [rank_parts(rank, data_ms=31.0, backward_ms=30.0) for rank in (0, 1)]
    assert "31 % of its step waiting for images" in rank_waterfall(starved).headline
    assert rank_waterfall([rank_parts(0)]) is None


def test_the_ranks_of_a_run_fill_the_chart(runs, runs_root):
    run = runs.add("calm-otter", epochs=3, ended="completed")
    for rank in (0, 1):
        line = {"t": 1.0, "epoch": 2, "step": 9, "num_steps": 5, "step_ms": 100.0,
                "data_ms": 45.0 * rank, "forward_ms": 20.0, "backward_ms": 70.0 - 45.0 * rank,
                "optimizer_ms": 5.0}  # fmt: skip
        (run.ranks / f"rank{rank}.jsonl").write_text(json.dumps(line) + "\n")
    case = case_of_run(run, runs_root)
    waterfall = next(one for one in figures_of(case, runs_root) if one.name == "waterfall")
    assert waterfall.headline.startswith("Rank 1 waits 45.0 ms a step longer for images")
    assert len(waterfall.rows) == 2


def test_an_empty_bar_divides_by_nothing():
    assert Bar("rank 0", "Rank 0", {"compute": 0.0}).share("compute") == 0


def test_the_timeline_says_who_waits_for_whom():
    assert (
        EVERY["timeline"]().headline
        == "Rank 0 waits 50 % of its step; rank 1 is the one it waits for."
    )
    even = timeline((rank_lanes(0, transfer=[(0, 300)]), rank_lanes(1, transfer=[(0, 250)])))
    assert even.headline.startswith("Data cross for 30 % of the step on rank 0")


def test_rates_of_one_decade_have_figures_at_their_axis():
    svg = picture(all_reduce_curve(sweep(2.0), (16,))).svg  # 0.3 to 520 GB/s
    assert {"1", "10", "100"} <= set(re.findall(r">([^<>]+)</text>", svg))
    (series,) = sweep().series
    points = tuple(replace(point, median_us=point.num_bytes / 2500) for point in series.points)
    narrow = replace(sweep(), series=(replace(series, points=points),))
    svg = picture(all_reduce_curve(narrow, (16,))).svg  # 2.5 GB/s throughout: 1.9 to 4.75
    assert {"2", "3"} <= set(re.findall(r">([^<>]+)</text>", svg))


def test_the_curve_marks_the_buckets_and_judges_by_large_messages():
    # 2(n-1)/n = 1, so 100 µs per MiB are 10.5 GB/s.
    figure = all_reduce_curve(sweep(), (16 * MIB, 16 * MIB), Healthy(12e9, 20e9, "PCIe", "who"))
    assert figure.headline == (
        "The 2 gradient buckets of this model need 3.3 ms a step. "
        "At 10 GB/s the link is slower than healthy PCIe (12 GB/s to 20 GB/s)."
    )
    assert figure.rows[1] == ("1.0 MB", "150 µs", "7 GB/s")
    assert "who" in figure.description
    assert all_reduce_curve(sweep(), (16,)).headline == "The link reaches 10 GB/s."
    empty = Sweep(t=0, key="k", device_name="x", num_ranks=2)
    assert all_reduce_curve(empty) is None


def test_the_healthy_range_is_that_of_the_way_the_bytes_went():
    found = healthy(sweep(), machine())
    assert found.transport == "TCP sockets"
    assert found.low < found.high
    joined = machine(Link(a=0, b=1, kind="nvlink"))
    assert healthy(sweep(transport="P2P/CUMEM"), joined).transport == "NVLink"
    assert healthy(sweep(transport=None), joined) is None


def test_scaling_compares_what_differs_in_devices_only(runs, runs_root):
    runs.add("calm-otter", preset="single", epochs=3, epoch_time_s=2.0, ended="completed")
    run = runs.add("pale-fox", epochs=3, epoch_time_s=1.25, ended="completed")
    runs.add("odd-gecko", epochs=3, epoch_time_s=0.1, ended="completed", model="resnet50")
    (point,) = scaling_points(runs_root, fold_run(run))
    assert (point.num_devices, point.run) == (2, "pale-fox")
    assert point.speedup == pytest.approx(1.6)
    assert (
        scaling_curve([point]).headline == "2 devices give 1.60×: each works at 80 % of one alone."
    )
    assert scaling_curve([ScalingPoint(1, 1.0, "one")]) is None


def test_the_matrix_names_the_slow_pairs():
    figure = EVERY["topology"]()
    assert figure.headline == "Only 1 of 2 pairs are joined by: NVLink. The others: across sockets."
    assert figure.rows[0] == ("GPU 0", "·", "NVLink ×4", "across sockets")
    assert figure.rows[1][3] == "unknown"
    refused = topology(machine(Link(a=0, b=1, kind="phb", p2p=False)))
    assert refused.headline.startswith("1 of 1 pairs may not read")
    assert topology(machine(num=1)) is None
