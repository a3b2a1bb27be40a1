"""The doctor's findings as the page shows them: cards, points, the machine; finished texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from app.views import figures
from app.views.charts.figure import Picture
from ringside.doctor import Diagnosis, Finding
from ringside.doctor.applying import command_for
from ringside.doctor.walkthrough import Point
from ringside.environment_lint import in_words
from ringside.machine import GpuState, Machine
from ringside.samples import reason_told
from ringside.spec import RunSpec
from ringside.words import catalogue, say


@dataclass(frozen=True)
class Card:
    """One finding. `share_ratio` from 0 to 1 is drawn as a bar; None: not measured.

    `evidence` are (label, value, source); `apply` is the address that fills the form, `command`
    what does the same, or what the form cannot do, in a shell.
    """

    code: str
    severity: str
    severity_word: str
    sentence: str
    share: str
    share_ratio: float | None
    gain: str
    confidence: str
    evidence: tuple[tuple[str, str, str], ...]
    refutation: str
    next_step: str
    apply: str | None = None
    apply_label: str = ""
    command: str | None = None


@dataclass(frozen=True)
class PointView:
    """One point of the walk-through; `measured` are (label, value or None, source or how)."""

    number: int
    title: str
    claim: str
    truth: str
    measured: tuple[tuple[str, str | None, str], ...]
    state: str
    state_word: str


@dataclass(frozen=True)
class MachineView:
    """The machine: one line a GPU, facts of the host, variables that are set, what failed."""

    gpus: tuple[tuple[str, ...], ...]
    host: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str, str], ...]
    problems: tuple[str, ...]
    looked: str


@dataclass(frozen=True)
class DoctorView:
    """Everything of one visit to the doctor."""

    verdict: Card
    others: tuple[Card, ...]
    missing: tuple[str, ...]
    points: tuple[PointView, ...]
    pictures: tuple[Picture, ...]
    gaps: tuple[str, ...]
    machine: MachineView | None
    traces: tuple[tuple[str, str], ...] = ()


GPU_COLUMNS = ("gpu", "memory", "busy", "clock", "link", "users")


def cards_of(
    diagnosis: Diagnosis, run_id: str | None = None, spec: RunSpec | None = None
) -> tuple[Card, ...]:
    """The verdict, then all other findings."""
    return tuple(card_of(found, run_id, spec) for found in (diagnosis.verdict, *diagnosis.others))


def card_of(finding: Finding, run_id: str | None = None, spec: RunSpec | None = None) -> Card:
    """A finding in words; `spec` is what the run was asked for."""
    share = finding.share_ratio
    return Card(
        code=finding.code,
        severity=finding.severity,
        severity_word=say(f"consult.{finding.severity}"),
        sentence=finding.sentence,
        share=say("consult.no_share") if share is None
        else say("consult.share", share=figures.percent(share)),
        share_ratio=None if share is None else min(1.0, max(0.0, share)),
        gain=_gain(finding.gain_ratio),
        confidence=say(f"consult.sure_{finding.confidence.replace(' ', '_')}"),
        evidence=tuple(
            (one.label, one.value, _source(one.source, run_id)) for one in finding.evidence
        ),
        refutation=finding.refutation,
        next_step=finding.next_step,
        apply=_address(finding, run_id),
        apply_label=say("consult.apply", preset=finding.preset) if finding.preset else
        say("consult.apply_settings"),
        command=command_for(finding, spec),
    )  # fmt: skip


def _source(source: str, run_id: str | None) -> str:
    """A word for where it was measured; a file of the run by its place in the run's folder."""
    short = source.rpartition(f"/{run_id}/")[2]
    return catalogue().get(f"evidence_source.{short.replace(' ', '_')}", short)


def _gain(ratio: float | None) -> str:
    """An upper bound: a step shorter by this share is faster by 1 / (1 - share)."""
    if ratio is None:
        return say("consult.no_gain")
    if ratio >= 1:
        return say("consult.gain_unbounded")
    faster = figures.ratio(1 / (1 - max(0.0, ratio)))
    return say("consult.gain", share=figures.percent(ratio), faster=faster)


def _address(finding: Finding, run_id: str | None) -> str | None:
    """Where the form is filled with what helps; None when there is nothing to fill in, or when
    variables are to be unset, which no form can do."""
    if finding.unset or (finding.preset is None and not finding.overrides):
        return None
    query = [("preset", finding.preset)] if finding.preset else []
    query += [("run", run_id)] if run_id else []
    query += [("set", f"{key}={value}") for key, value in finding.overrides.items()]
    return f"./?{urlencode(query)}"


def points_of(points: Iterable[Point], run_id: str | None = None) -> tuple[PointView, ...]:
    """The walk-through in words."""
    return tuple(
        PointView(
            point.number, point.title, point.claim, point.truth,
            tuple(
                (one.label, one.value, _source(one.source or one.how or "", run_id))
                for one in point.figures
            ),
            point.state, say(f"consult.{point.state}"),
        )
        for point in points
    )  # fmt: skip


def machine_view(machine: Machine) -> MachineView:
    """The machine in lines; what could not be read is a dash."""
    return MachineView(
        gpus=tuple(_gpu(gpu) for gpu in machine.gpus),
        host=tuple(_host(machine)),
        variables=tuple((one.name, one.value, in_words(one).about) for one in machine.variables),
        problems=machine.problems,
        looked=say("consult.looked", when=figures.clock(machine.t)) if machine.t else "",
    )


def _gpu(gpu: GpuState) -> tuple[str, ...]:
    memory = f"{figures.size(gpu.memory_used_bytes)} / {figures.size(gpu.memory_total_bytes)}"
    clock = figures.DASH
    if gpu.sm_clock_mhz is not None:
        clock = f"{gpu.sm_clock_mhz} / {gpu.max_sm_clock_mhz or figures.DASH} MHz"
    users = ", ".join(
        say("consult.user", name=one.name or one.pid, user=one.user or figures.DASH)
        for one in gpu.processes
        if not one.is_ours
    )
    if gpu.throttle_reasons:
        reasons = ", ".join(map(reason_told, gpu.throttle_reasons))
        clock = say("consult.clock_held", clock=clock, reasons=reasons)
    return (
        f"{gpu.index} · {gpu.name}",
        memory,
        figures.percent(gpu.utilisation_ratio),
        clock,
        _pcie(gpu),
        users or say("consult.nobody"),
    )


def _pcie(gpu: GpuState) -> str:
    if gpu.pcie_generation is None or gpu.pcie_width is None:
        return figures.DASH
    loaded = "" if gpu.is_pcie_loaded else f" ({say('consult.at_rest')})"
    best = f"{gpu.max_pcie_generation or figures.DASH} x{gpu.max_pcie_width or figures.DASH}"
    return say("consult.pcie", now=f"{gpu.pcie_generation} x{gpu.pcie_width}", best=best) + loaded


def _host(machine: Machine) -> Iterator[tuple[str, str]]:
    values = {
        "cores": figures.count(machine.num_cores),
        "omp": None if machine.omp_num_threads is None else figures.count(machine.omp_num_threads),
        "load": None if machine.load_average is None else f"{machine.load_average:.1f}",
        "shm": _of(machine.shm_free_bytes, machine.shm_total_bytes),
        "disk": None if machine.disk_free_bytes is None else figures.size(machine.disk_free_bytes),
        "cuda": machine.torch_cuda,
        "nccl": machine.nccl,
        "torch": machine.hardware.versions.get("torch"),
    }
    for name, value in values.items():
        if value is not None:
            yield say(f"consult.host_{name}"), value


def _of(free: int | None, total: int | None) -> str | None:
    if free is None or total is None:
        return None
    return say("consult.free_of", free=figures.size(free), total=figures.size(total))
