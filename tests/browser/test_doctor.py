"""The Doctor in Chromium: a verdict with its evidence, charts, the check of this machine."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import time
from pathlib import Path

import pytest
from PIL import Image

from ringside.hardware import read_hardware
from ringside.measurements import Description, Gradient, StepProfile
from ringside.measurements.store import FOLDER, Store, key_of_model
from ringside.request import RunRequest, resolve

pytestmark = pytest.mark.browser

STARVED, SINGLE = "20260102-030402-calm-otter", "20260102-030401-amber-fox"
ON_SOCKETS = "20260102-030400-pale-gecko"
STEP_US = 100_000


def trace(rank, *, late_us):
    """Three steps: images for `late_us`, 30 ms of compute, an all-reduce that ends at 90 ms."""
    events = []

    def add(name, at, duration, category, **args):
        lane = {"pid": 0, "tid": 7} if category == "kernel" else {"pid": 9, "tid": 9}
        events.append({"ph": "X", "cat": category, "name": name, "ts": 1e6 + at, "dur": duration,
                       "args": args, **lane})  # fmt: skip

    def kernel(name, at, duration, **args):
        correlation = len(events)
        add("cudaLaunchKernel", at, 5, "cuda_runtime", correlation=correlation)
        add(name, at, duration, "kernel", device=0, stream=7, correlation=correlation, **args)

    for number in range(3):
        at = number * STEP_US
        add(f"ProfilerStep#{number}", at, STEP_US, "user_annotation")
        if late_us:
            add("data", at, late_us, "user_annotation")
        for part in range(100):
            kernel("gemm", at + late_us + 300 * part, 295)
        start = at + late_us + 30_000
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, at + 90_000 - start, **{
            "Collective name": "allreduce", "In msg nelems": 5_000_000, "dtype": "Float",
            "Group size": 2, "Process Group Name": "0",
        })  # fmt: skip
    info = {"backend": "nccl", "rank": rank, "world_size": 2}
    return gzip.compress(json.dumps({"distributedInfo": info, "traceEvents": events}).encode())


@pytest.fixture
def starved(site, root, write_run, make_spec):
    """A run of two ranks whose second one waits 40 ms a step for images, and its baseline."""
    if not (site.root / STARVED).exists():
        for preset, run_id in (("single", SINGLE), ("ddp", STARVED)):
            run = write_run(make_spec(preset, data="products", model="resnet10t"), run_id)
            if preset == "ddp":
                run.trace.mkdir()
                for rank, late_us in ((0, 0), (1, 40_000)):
                    file = run.trace / f"rank{rank}.json.gz"
                    file.write_bytes(trace(rank, late_us=late_us))
            shutil.copytree(root / run_id, site.root / run_id)
    return site.root / STARVED


@pytest.fixture
def on_sockets(site, root, write_run, make_spec):
    """Two GPUs of one host that talk over sockets, because variables shut the faster ways."""
    run = write_run(make_spec("ddp", data="products", device="cuda", gpu_ids=(0, 1)), ON_SOCKETS)
    first, *lines = run.events.read_text().splitlines()
    started = json.loads(first)
    forced = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
    started["observed"] |= {"environment": forced, "backend": "nccl", "device_name": "NVIDIA H200"}
    run.events.write_text("\n".join([json.dumps(started), *lines, ""]))
    said = ["NCCL version 2.28.9+cuda13.0"]
    said += [f"{name} set by environment to {value}" for name, value in forced.items()]
    run.trace.mkdir()
    run.nccl.mkdir()
    for rank in (0, 1):
        (run.trace / f"rank{rank}.json.gz").write_bytes(trace(rank, late_us=0))
        way = f"Channel 00/0 : {rank}[{rank}] -> {1 - rank}[{1 - rank}] [send] via NET/Socket/0"
        end = (f"comm 0x7f{rank} rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} "
               f"busId {rank + 1}000 commId 0xabc - Init COMPLETE")  # fmt: skip
        log = "".join(f"vm:{rank}:1 [{rank}] NCCL INFO {text}\n" for text in (*said, way, end))
        (run.nccl / f"vm.{rank}.log").write_text(log)
    shutil.copytree(run.path, site.root / ON_SOCKETS)
    yield site.root / ON_SOCKETS
    shutil.rmtree(site.root / ON_SOCKETS)


@pytest.fixture
def open_doctor(open_tab):
    """Open the page of a run and wait for its charts; an error in the console fails the test."""
    errors = []

    def open_page(query="", **details):
        tab = open_tab(f"/doctor{query}", **details)
        tab.on("console", lambda said: said.type == "error" and errors.append(said.text))
        tab.locator("#charts figure").first.wait_for(timeout=60_000)
        return tab

    yield open_page
    assert errors == []


def test_the_newest_finished_run_gets_a_verdict(open_doctor, starved):
    tab = open_doctor()
    verdict = tab.locator("#verdict").inner_text()
    assert "DATA-001" in verdict
    assert "Rank 1 waits 40 ms a step for images" in verdict
    assert "What would prove this wrong" in verdict
    assert "trace/rank1.json.gz" in verdict
    assert str(starved) not in tab.content()
    chart = tab.locator("#chart-waterfall")
    assert "Rank 1 spends 40 % of its step waiting for images." in chart.inner_text()
    assert chart.locator("svg[role=img]:visible").count() == 1
    assert tab.locator("#chart-timeline figcaption").inner_text().startswith("Rank 0 waits")
    assert tab.locator("#points li").count() == 6
    chart.locator("summary").click()
    # What one loses to images, the other loses to waiting.
    assert chart.locator("td >> text=/40.0 ms · 40 %/").count() == 2


def test_variables_that_hold_a_run_back_are_unset_by_a_command(open_doctor, on_sockets):
    tab = open_doctor(f"?run={ON_SOCKETS}")
    verdict = tab.locator("#verdict")
    command = verdict.locator(".rs-command:visible")
    words = "env -u NCCL_P2P_DISABLE -u NCCL_SHM_DISABLE ringside run ddp --data=products"
    assert command.inner_text().startswith(words)
    assert words in verdict.inner_text()
    assert verdict.locator("a.rs-link-button").count() == 0
    command.click()  # one press takes all of it
    taken = tab.evaluate("getSelection().toString()")
    assert taken.strip() == command.inner_text().strip()
    assert "\n" not in taken.strip()
    narrow = open_doctor(f"?run={ON_SOCKETS}", width=390)
    card, *inside = (
        narrow.locator(f"#verdict {place}").first.bounding_box()
        for place in (".rs-finding", ".rs-command", ".rs-evidence table", "h1")
    )
    for box in inside:
        assert box["x"] + box["width"] <= card["x"] + card["width"] + 1 <= 390
    machine = narrow.locator("#machine-card").bounding_box()
    measure = narrow.locator("#measure-run").bounding_box()
    assert measure["x"] + measure["width"] < machine["x"] + machine["width"]


def test_a_chart_and_the_traces_can_be_taken_away(open_doctor, starved):
    tab = open_doctor(f"?run={STARVED}")
    with tab.expect_download() as download:
        tab.locator("#chart-waterfall a >> text=PNG").click()
    assert download.value.suggested_filename == "ringside-waterfall-calm-otter.png"
    with open(download.value.path(), "rb") as stream:
        assert stream.read(4) == b"\x89PNG"
    tab.locator("#take-traces").click()
    link = tab.locator("#trace-files a[href*='rank1.json.gz']").first
    link.wait_for()
    found = tab.request.get(link.get_attribute("href"))
    assert found.ok
    assert gzip.decompress(found.body()) == gzip.decompress(
        (starved / "trace" / "rank1.json.gz").read_bytes()
    )


def test_the_experiment_asks_first(open_doctor, starved):
    tab = open_doctor(f"?run={STARVED}")
    tab.locator("#measure-run").click()
    tab.wait_for_selector("#confirm >> text=/occupies the devices/")
    tab.locator("#not-now").click()
    tab.locator("#confirm").wait_for(state="hidden")
    assert not (starved.parent / FOLDER).exists()


def test_a_run_of_one_device_has_no_exchange_to_take_away(open_tab, starved):
    tab = open_tab(f"/doctor?run={SINGLE}")
    tab.wait_for_selector("#verdict h1", timeout=60_000)
    assert not tab.locator("#measure-run").is_visible()
    assert tab.locator("#charts").inner_text().startswith("No timeline")


def test_the_page_of_the_run_has_its_verdict(open_tab, starved):
    tab = open_tab(f"/runs?run={STARVED}")
    line = tab.locator("#doctor-line p")
    line.wait_for(timeout=60_000)
    assert "waits 40 ms a step for images" in line.inner_text()
    line.locator("a").click()
    tab.wait_for_url(f"**/doctor?run={STARVED}")


def test_apply_fills_the_form_and_starts_nothing(open_tab, site, starved):
    tab = open_tab(f"/?preset=ddp_bf16&run={STARVED}&set=bucket_cap_mb%3D50")
    tab.wait_for_selector("#plan >> text=bf16")
    tab.wait_for_selector("#plan >> text=/global batch 128/")
    assert tab.locator("input[value=ddp_bf16]").is_checked()
    assert tab.locator("#field-model input").input_value() == "resnet10t"
    assert tab.locator("#field-overrides textarea").input_value() == "training.bucket_cap_mb=50"
    assert len(site.runs()) == 2
    tab = open_tab("/?preset=ddp_bf16")  # the empty numbers stay empty
    tab.wait_for_selector("#plan [role=status] >> text=bf16")
    tab.wait_for_timeout(1000)
    assert tab.locator("#start").is_enabled()
    tab = open_tab("/?preset=no-such-thing")
    tab.wait_for_selector("text=/no preset .no-such-thing/i")


def test_cards_say_what_is_predicted_and_keep_the_focus(open_tab, site, starved):
    hardware = read_hardware()
    spec = resolve(RunRequest(preset="single", data="emoji", model="resnet50"), hardware)
    gradients = tuple(
        Gradient(name=f"p{i}", num_elements=200_000, ready_us=1000.0 * i) for i in range(50)
    )
    profiles = tuple(
        StepProfile(batch=n, step_us=(n * 3000.0,) * 5, forward_us=n * 1000.0, host_us=500.0,
                    backward_us=n * 1900.0, optimizer_us=n * 100.0, gradients=gradients)
        for n in (32, 64)
    )  # fmt: skip
    store = Store(site.root)
    path = store.save(
        Description(
            t=time.time(), key=key_of_model(spec), model="resnet50", num_classes=10, image_size=64,
            precision="no", compile=False, channels_last=True, optimizer="adamw",
            device_name="cpu", num_parameters=10**7, parameter_bytes=4 * 10**7, buffer_bytes=0,
            optimizer_state_bytes=8 * 10**7, profiles=profiles,
        )
    )  # fmt: skip
    try:
        tab = open_tab("/?preset=single")
        card = tab.locator("label:has(input[value=single])")
        card.locator(".rs-estimate >> text=/predicted: 1.00×/").wait_for()
        tab.locator("input[value=ddp]").focus()
        for name in ("ddp_bf16", "ddp_accum4"):
            tab.keyboard.press("ArrowDown")
            tab.wait_for_function(f"document.activeElement.value === '{name}'")
            tab.wait_for_timeout(300)
        assert tab.locator("input[value=ddp_accum4]").is_checked()
        assert "predicted" in card.inner_text()
    finally:
        path.unlink()
        path.parent.rmdir()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits(open_doctor, artefacts, starved, width, dark):
    tab = open_doctor(f"?run={STARVED}", width=width, dark=dark)
    theme = "dark" if dark else "light"
    tab.wait_for_timeout(300)
    tab.screenshot(path=artefacts / f"doctor-{theme}-{width}.png", full_page=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    shown = "wide" if width > 1000 else "narrow"
    assert tab.locator(f"#chart-waterfall .rs-{shown}").is_visible()
    # The colours follow the theme.
    fill = tab.evaluate("getComputedStyle(document.querySelector('#chart-timeline svg text')).fill")
    assert fill == ("rgb(154, 166, 181)" if dark else "rgb(91, 101, 115)")


def test_pictures_of_the_page_for_the_documents(chromium, site, starved, tmp_path):
    path = Path(__file__).parents[2] / "docs" / "screenshots.py"
    found = importlib.util.spec_from_file_location("screenshots", path)
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    pages = script.addresses(site.root, "calm-otter", ["amber-fox", "calm-otter"])
    assert pages["compare"] == f"/compare?runs={SINGLE}%2C{STARVED}"
    (file,) = script.take(chromium, site.url, pages, tmp_path / "out", ["doctor-dark-390"])
    assert file == tmp_path / "out" / "doctor-dark-390.png"
    with Image.open(file) as picture:
        assert (picture.format, picture.width) == ("PNG", 390)


def test_a_check_of_the_machine_goes_on_without_the_tab(open_tab, site):
    tab = open_tab("/doctor?run=")
    tab.wait_for_selector("#machine >> text=/Not checked yet/")
    tab.locator("#check-machine").click()
    tab.wait_for_selector("#measuring progress")
    assert not tab.locator("#check-machine").is_enabled()
    tab.reload()
    tab.wait_for_selector("#measuring progress")  # it belongs to the server, not to the tab
    tab.locator("#stop-measuring").click()
    tab.wait_for_selector("#measuring >> text=/stopped before its end/", timeout=30_000)
    assert tab.locator("#check-machine").is_enabled()
    assert not list(site.root.glob(f"{FOLDER}/sweep-*"))
