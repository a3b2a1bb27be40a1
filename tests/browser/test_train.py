"""The Train page of a machine with two GPUs that are not there: nothing is trained here."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

from ringside.hardware import Gpu, Hardware
from ringside.measurements.store import FOLDER
from ringside.records import write_owner
from ringside.request import RunRequest, resolve
from ringside.rundir import RunDir
from tests.browser.conftest import Site

pytestmark = pytest.mark.browser

# The last launch takes until somebody says go; two devices do twice as much in a step.
WORKER = """
import pathlib, sys, time
from app.views import measuring_worker
from ringside.hardware import Gpu, Hardware
from ringside.launch import step_bench
from ringside.measurements import Arm, StepTiming
from ringside.measurements.store import key_of_spec

def measure(spec, hardware, **_):
    while spec.preset == "fsdp" and not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.1)
    arm = Arm(name="many", num_processes=spec.num_processes, step_ms=(20.0,) * 5,
              memory_bytes=21_200_000_000)
    return StepTiming(t=time.time(), key=key_of_spec(spec), spec=spec, device_name="NVIDIA H200",
                      arm=arm)

step_bench.measure_step = measure
measuring_worker.read_hardware = Hardware
sys.exit(measuring_worker.main())
"""
# Somebody else computes on GPU 1; the machine is read where the page reads it.
SERVE = (
    f"WORKER = {WORKER!r}\n"
    + """
import pathlib, sys
import app.page.settings as settings
from app.page import serve
from app.views import gpus
from ringside.hardware import Gpu, Hardware
from ringside.machine import GpuState, Process

def hardware():
    cards = tuple(Gpu(index=i, name="NVIDIA H200", uuid=f"GPU-{i}", memory_total_bytes=141 * 10**9,
                      memory_used_bytes=10**9, compute_capability=(9, 0)) for i in range(2))
    return Hardware(gpus=cards, num_cores=16, versions={"torch": "2.11.0+cu130"})

def states(_):
    kim = Process(pid=4711, name="python", user="kim", memory_bytes=38 * 10**9)
    return tuple(GpuState(index=i, name="NVIDIA H200", memory_used_bytes=10**9,
                          memory_total_bytes=141 * 10**9, processes=(kim,) if i else ())
                 for i in range(2))

make = settings.PageSettings.__init__
settings.PageSettings.__init__ = lambda *given, **named: make(
    *given, **{"hardware": hardware()} | named
)
gpus.states_now = states

# The worker is the real one but for the launches.
from app.views import measuring
measuring.WORKER = (sys.executable, "-c", WORKER, sys.argv[1] + ".go")
serve(runs_root=pathlib.Path(sys.argv[1]), port=int(sys.argv[2]))
"""
)
GPUS = Hardware(
    gpus=tuple(
        Gpu(index=i, name="NVIDIA H200", uuid=f"GPU-{i}", memory_total_bytes=141 * 10**9,
            memory_used_bytes=10**9, compute_capability=(9, 0))
        for i in range(2)
    ),
    num_cores=16,
)  # fmt: skip


class GpuSite(Site):
    """A server on a machine that has GPUs."""

    script = SERVE


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    served = GpuSite(tmp_path_factory.mktemp("gpus") / "runs")
    served.root.mkdir()
    served.start()
    yield served
    served.kill()


@pytest.fixture(scope="module")
def held(site: Site) -> Iterator[RunDir]:
    """A run of this process that holds GPU 0."""
    run = RunDir(site.root / "20260102-030405-amber-fox")
    for folder in (run.path, run.ranks, run.requests):
        folder.mkdir(parents=True)
    asked = RunRequest(
        preset="single", data="products:ci", model="resnet18", epochs=7, gpus=(0,), seed=5,
        overrides={"optimizer": "sgd", "mixed_precision": "bf16"}, time_limit_s=5400,
    )  # fmt: skip
    run.write(run.spec, resolve(asked, GPUS))
    write_owner(run, "supervisor")
    yield run
    run.exit.write_text("{}")


def test_a_gpu_is_chosen_by_number_and_a_warning_is_accepted_first(open_tab):
    tab = open_tab()
    tab.get_by_text("GPU 1 · NVIDIA H200 · 141.0 GB · used by python (kim), 38.0 GB").click()
    tab.wait_for_selector("#plan >> text=/1 process on GPU 1/")
    assert not tab.locator("#field-processes").is_visible()
    warning = tab.locator("#field-accepted [data-code=gpus]")
    warning.wait_for()
    assert "Warning · GPUs" in warning.inner_text()
    tab.locator("#start").click()
    tab.get_by_text("Mend it, or choose to start anyway").first.wait_for()
    warning.get_by_label("Start anyway: GPUs").focus()
    tab.keyboard.press("Space")
    tab.locator("#field-accepted .rs-h2", has_text="to decide").wait_for(state="detached")
    assert warning.locator("input").is_checked()


def test_strategies_are_timed_and_their_cards_say_so(open_tab, site, artefacts):
    tab = open_tab()
    tab.wait_for_selector("#timing-cost >> text=/6 launches, 2 of them one device .* about 2 min/")
    tab.locator("#time-presets").click()
    tab.wait_for_selector("#timing >> text=/6 of 6: fsdp, 2 devices, 128 images each; .* left/")
    assert not tab.locator("#time-presets").is_enabled()
    other = open_tab(width=390, dark=True)  # it belongs to the server, not to the tab
    other.locator("#stop-timing").wait_for()
    assert other.evaluate("document.documentElement.scrollWidth") <= 390
    site.root.with_name("runs.go").touch()
    tab.wait_for_selector("#timing >> text=/4 strategies timed; ddp_accum4 is the fastest/")
    card = tab.locator("label:has(input[value=ddp])")
    measured = "measured here: 2.00× · 20.0 ms a step · 12,800 images/s · 21.2 GB"
    card.locator(".rs-estimate", has_text=measured).wait_for()
    tab.locator("#stop-timing").wait_for(state="hidden")
    assert tab.locator("#time-presets").is_enabled()
    tab.screenshot(path=artefacts / "train-timed-light-1280.png", full_page=True)
    tab.locator("#field-batch input").fill("64")
    card.locator(".rs-estimate", has_text=re.compile("^$")).wait_for(state="attached")
    other.locator("label:has(input[value=ddp]) .rs-estimate", has_text=measured).wait_for()
    shutil.rmtree(site.root / FOLDER)


def test_who_holds_a_gpu_is_said_and_waiting_is_the_default(open_tab, held):
    tab = open_tab()
    tab.wait_for_selector("#field-gpus >> text=/GPU 0 .* used by amber-fox/")
    tab.locator("#field-gpus input").first.check()
    busy = tab.locator("#field-when-busy")
    busy.wait_for()
    assert "amber-fox (GPU 0)" in busy.inner_text()
    assert tab.get_by_label("Wait in the queue").is_checked()
    tab.get_by_label("Start beside them").check()
    tab.locator("#field-accepted [data-code=beside]").wait_for()


def test_a_run_fills_every_field_and_the_difference_tells_it(open_tab, held):
    tab = open_tab(f"/?run={held.id}")
    tab.wait_for_selector("#plan >> text=/1 process on GPU 0, one device, bf16/")
    values = {
        "epochs": "7", "seed": "5", "time-limit": "1h30m", "overrides": "training.optimizer=sgd",
    }  # fmt: skip
    for name, value in values.items():
        assert tab.locator(f"#field-{name} :is(input, textarea)").input_value() == value
    assert tab.locator("#field-precision input").input_value() == "bf16"
    assert tab.locator("#field-gpus input").first.is_checked()
    row = tab.locator("#difference tr", has_text="mixed precision")
    assert row.first.locator("td").all_inner_texts()[1:] == ["no", "bf16", "bf16"]
    tab.locator("#preview").click()
    tab.wait_for_selector("#preview-terminal >> text=--gpus 0")
    assert "CUDA_VISIBLE_DEVICES" in tab.locator("#preview-environment").inner_text()


def test_what_the_form_cannot_show_is_said(open_tab, site):
    run = RunDir(site.root / "20260103-030405-grey-goose")
    run.path.mkdir()
    run.write(run.spec, resolve(RunRequest(preset="ddp", data="products:ci"), Hardware()))
    tab = open_tab(f"/?run={run.id}")
    tab.locator("#notice li").first.wait_for()
    assert "CPU" in tab.locator("#notice").inner_text()
    run.spec.unlink()


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (390, True)], ids=["wide-light", "narrow-dark"]
)
def test_the_page_with_gpus_fits(open_tab, artefacts, held, width, dark):
    tab = open_tab(f"/?run={held.id}", width=width, dark=dark)
    tab.wait_for_selector("#plan >> text=/1 process on GPU 0/")
    tab.locator("#preview").click()
    tab.wait_for_selector("#preview-terminal >> text=--gpus 0")
    theme = "dark" if dark else "light"
    tab.screenshot(path=artefacts / f"train-gpus-{theme}-{width}.png", full_page=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
