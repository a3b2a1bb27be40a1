"""From recorded runs to the content of a playbook and the files that go with it.

    with speaking(DEFAULT):
        draft = gather(root, runs, title="Two H200s over sockets")

Drawing charts is no part of the domain: `app.views.playbook_export` does it, and adds them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import ringside
from ringside import command_line, preset_editing, presets, yaml_text
from ringside.compare import ComparedRun, compare
from ringside.doctor import Case, case_of_run, diagnose
from ringside.doctor.walkthrough import walk
from ringside.errors import PlaybookError, nearest
from ringside.estimate import outcome_of
from ringside.hardware import Hardware
from ringside.launch.plan import LaunchPlan, quoted_command
from ringside.playbook.content import (
    KeptData,
    KeptHardware,
    KeptLink,
    KeptRun,
    LeftOut,
    Playbook,
)
from ringside.playbook.recording import Files, cleared_spec, recorded
from ringside.playbook.redaction import Redactor, here, names_in, secrets_in
from ringside.presets import NAME_PATTERN, About, Library, PresetFile
from ringside.run import RunRecord, fold_run, require_spec
from ringside.rundir import RunDir, iter_files
from ringside.spec import RunSpec
from ringside.words import say

MAX_RUNS = 12
MAX_TITLE = 120
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")


@dataclass
class Draft:
    """A playbook without its charts, README and page: content, files by path, and the cases."""

    playbook: Playbook
    files: Files = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    redactor: Redactor = field(default_factory=Redactor)


def gather(
    root: Path, runs: Sequence[RunDir], *, title: str | None = None, chosen: str | None = None
) -> Draft:
    """The playbook of these runs, in their order; the first is what scores are compared with.

    `chosen` is the id of the run whose preset is kept, by default the best. PlaybookError for
    runs of which none can be made.
    """
    records = [fold_run(run) for run in runs]
    _refuse_unfit(records)
    redactor = redactor_of(root, runs)
    compared = compare(root, records)
    best = _chosen(compared.runs, chosen)
    cases = {run.id: case_of_run(run, root) for run in runs}
    kept = tuple(
        _kept_run(record, cases[record.id], one, redactor)
        for record, one in zip(records, compared.runs, strict=True)
    )
    main = next(record for record in records if record.id == best)
    spec = cleared_spec(require_spec(main), redactor)
    files, left = _recorded(runs, redactor)
    name, preset = _preset_of(main, redactor)
    hardware = hardware_of(cases[best], redactor)
    files |= _configurations(name, preset, spec)
    title = _title(title, spec, hardware, redactor)
    playbook = Playbook(
        name=slug(title), title=title, made=round(time.time(), 3), ringside=ringside.__version__,
        chosen=best, preset=name, preset_file=preset, hardware=hardware,
        data=_data_of(main, spec, redactor), runs=kept, left_out=left,
    )  # fmt: skip
    return Draft(playbook=playbook, files=files, cases=cases, redactor=redactor)


def redactor_of(root: Path, runs: Sequence[RunDir]) -> Redactor:
    """What clears the texts of these runs: this machine's and this user's names, and theirs."""
    hosts, users, paths, secrets = list[str](), list[str](), [str(root)], list[str]()
    for run in runs:
        spec, owner = run.read(run.spec, RunSpec), run.read(run.owner, _Host)
        plan = run.read(run.plan, LaunchPlan)
        paths += [str(run.path), *([plan.cwd] if plan is not None else [])]
        if spec is not None:
            paths += [p for p in (spec.data.path, spec.weights, spec.resume_from) if p]
        hosts += [owner.host] if owner is not None else []
        observed = fold_run(run).observed
        secrets += secrets_in(observed.environment if observed is not None else {})
        # `HOST.PID.log`
        hosts += [path.stem.rpartition(".")[0] for path in iter_files(run.nccl, "*.log")]
    users += [name for path in paths for name in names_in(path)]
    known = here()
    # Hosts of the runs first: they get the same numbers wherever the playbook is made.
    return Redactor(
        hosts=[*hosts, *known["hosts"]], users=[*users, *known["users"]],
        paths=[*paths, *known["paths"]], secrets=[*secrets, *known["secrets"]],
    )  # fmt: skip


def slug(title: str) -> str:
    """A title as a name: small letters, digits and hyphens, at most 80."""
    return _NOT_A_NAME.sub("-", title.lower()).strip("-")[:80].strip("-") or "playbook"


def hardware_of(case: Case, redactor: Redactor) -> KeptHardware:
    """The machine of a case by its kinds; nothing that says which one it is."""
    record = case.record
    spec = record.spec if record is not None else None
    observed = record.observed if record is not None else None
    found = _hardware_of_run(record) or (case.machine.hardware if case.machine else Hardware())
    used = [gpu for gpu in found.gpus if spec is None or gpu.index in spec.gpu_ids] or found.gpus
    return KeptHardware(
        device=spec.device if spec is not None else found.device,
        gpus=tuple(gpu.name for gpu in used),
        gpu_memory_bytes=min((gpu.memory_total_bytes for gpu in used), default=None),
        num_cores=found.num_cores,
        memory_bytes=found.memory_bytes,
        driver=found.driver,
        system=redactor.text(found.system) or None,
        links=_links(case),
        backend=observed.backend if observed is not None else None,
        transports=_transports(case),
    )


class _Host(msgspec.Struct, frozen=True):
    host: str = ""


def _refuse_unfit(records: Sequence[RunRecord]) -> None:
    if not records:
        raise PlaybookError(say("playbook.no_runs"))
    if len(records) > MAX_RUNS:
        raise PlaybookError(say("playbook.many_runs", n=len(records), limit=MAX_RUNS))
    if len({record.id for record in records}) < len(records):
        raise PlaybookError(say("playbook.twice"))
    for record in records:
        require_spec(record)
        if not record.final:
            raise PlaybookError(say("playbook.not_over", run=record.name))
        if record.started is None:
            raise PlaybookError(say("playbook.never_trained", run=record.name))


def _chosen(runs: Sequence[ComparedRun], asked: str | None) -> str:
    """The one asked for; else the fastest of those that completed and whose scores did not fall."""
    if asked is not None:
        names = {run.id for run in runs}
        if asked not in names:
            raise PlaybookError(say("playbook.not_among", run=asked, hint=nearest(asked, names)))
        return asked
    fit = [run for run in runs if run.state == "completed" and run.gate.verdict != "worse"]
    return max(fit or runs, key=lambda run: run.samples_per_s or 0.0).id


def _kept_run(record: RunRecord, case: Case, result: ComparedRun, redactor: Redactor) -> KeptRun:
    spec = require_spec(record)
    run = RunDir(Path(record.path))
    plan, observed = run.read(run.plan, LaunchPlan), record.observed
    kept = KeptRun(
        id=record.id,
        model=spec.model,
        strategy=spec.strategy,
        micro_batch=spec.micro_batch,
        accumulation_steps=spec.training.accumulation_steps,
        epochs=spec.epochs,
        seed=spec.seed,
        command=exact_command(cleared_spec(spec, redactor)),
        launch=None if plan is None else _launched(plan, redactor),
        environment=redactor.environment(observed.environment if observed else {}),
        versions=observed.versions if observed is not None else {},
        result=msgspec.structs.replace(result, classes=None),
        diagnosis=diagnose(case),
        points=walk(case),
        outcome=outcome_of(record),
    )
    return redactor.struct(kept)


def _launched(plan: LaunchPlan, redactor: Redactor) -> str:
    """What was executed, with the names of files only."""
    words = [redactor.text(word) for word in plan.argv]
    return quoted_command(
        msgspec.structs.replace(
            plan, argv=words, environment=redactor.environment(plan.environment), cwd=""
        )
    )


def _preset_of(record: RunRecord, redactor: Redactor) -> tuple[str, PresetFile]:
    """What ran, as a preset: its words from the library where they are there, all else as run."""
    spec = require_spec(record)
    known = Library().presets.get(spec.preset)
    name = spec.preset.rpartition(":")[2]
    about = known.about if known is not None else About(
        title=say("playbook.preset_title", preset=name)[:80],
        why=say("playbook.preset_why", model=spec.model, strategy=spec.strategy),
        when=say("playbook.preset_when"),
        devices=(spec.device,),
    )  # fmt: skip
    # A count that the machine or a flag gave belongs to the run, not to the preset.
    is_own = spec.sources.get("accelerate.num_processes", "preset") == "preset"
    count = spec.accelerate.num_processes if is_own else None
    file = PresetFile(
        about=about,
        accelerate=msgspec.structs.replace(spec.accelerate, num_processes=count),
        training=spec.training,
        environment={
            name: value
            for name, value in redactor.environment(spec.environment).items()
            if presets.ENVIRONMENT_PATTERN.fullmatch(name)
        },
    )
    return (name if NAME_PATTERN.fullmatch(name) else "preset"), redactor.struct(file)


def exact_command(spec: RunSpec) -> str:
    """`ringside run ...` for this request, without what was of its machine and its day alone."""
    sources = {key: source for key, source in spec.sources.items() if key != "gpu_ids"}
    anywhere = msgspec.structs.replace(
        spec, sources=sources, weights=None, queue=False, beside=False, time_limit_s=None, retries=0
    )
    return command_line.command(anywhere)


def preset_text(file: PresetFile) -> bytes:
    """The preset's YAML: every setting that is not at its default."""
    return preset_editing.preset_text(file).encode()


def _configurations(name: str, file: PresetFile, spec: RunSpec) -> Files:
    config = presets.accelerate_config(spec.accelerate, spec.num_processes)
    return {
        f"preset/{name}.yaml": preset_text(file),
        "accelerate/accelerate.yaml": yaml_text.dump(config).encode(),
    }


def _recorded(runs: Sequence[RunDir], redactor: Redactor) -> tuple[Files, tuple[LeftOut, ...]]:
    files: Files = {}
    left: list[LeftOut] = []
    for run in runs:
        kept, not_kept = recorded(run, redactor)
        files |= {f"runs/{run.id}/{name}": data for name, data in kept.items()}
        left += [msgspec.structs.replace(one, path=f"runs/{run.id}/{one.path}")
                 for one in not_kept]  # fmt: skip
    return files, tuple(left)


def _data_of(record: RunRecord, spec: RunSpec, redactor: Redactor) -> KeptData:
    started = record.started
    run = RunDir(Path(record.path))
    classes = run.read(run.classes, _Classes)
    return KeptData(
        source=spec.data.source,
        name=redactor.text(spec.data.label),
        title=redactor.text(started.data_title) if started else None,
        fingerprint=started.data_fingerprint if started else None,
        synthetic=bool(started and started.synthetic),
        task=started.task if started else None,
        image_size=spec.data.image_size,
        num_train=started.num_train if started else None,
        num_val=started.num_val if started else None,
        classes=classes.classes if classes is not None else (),
    )


class _Classes(msgspec.Struct, frozen=True):
    classes: tuple[str, ...] = ()


def _title(asked: str | None, spec: RunSpec, hardware: KeptHardware, redactor: Redactor) -> str:
    text = " ".join((asked or "").split())
    if len(text) > MAX_TITLE:
        raise PlaybookError(say("playbook.long_title", n=len(text), limit=MAX_TITLE))
    usual = say("playbook.usual_title", model=spec.model, preset=spec.preset.rpartition(":")[2],
                hardware=hardware.label)  # fmt: skip
    return redactor.text("".join(filter(str.isprintable, text)) or usual)


def _hardware_of_run(record: RunRecord | None) -> Hardware | None:
    if record is None:
        return None
    run = RunDir(Path(record.path))
    return run.read(run.hardware, Hardware)


def _links(case: Case) -> tuple[KeptLink, ...]:
    if case.machine is None:
        return ()
    return tuple(
        KeptLink(a=link.a, b=link.b, kind=link.kind, num_nvlinks=link.num_nvlinks, p2p=link.p2p)
        for link in case.machine.links
    )


def _transports(case: Case) -> tuple[str, ...]:
    """What NCCL's log says that channels go through, as `NET/Socket`; most of them first."""
    if case.nccl is None:
        return ()
    counts: dict[str, int] = {}
    for edge in case.nccl.edges:
        counts[edge.name] = counts.get(edge.name, 0) + 1
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))
