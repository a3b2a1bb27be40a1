"""The doctor on runs whose cause is known: every verdict has to be right.

    python benchmarks/known_causes.py ../shared/lab/h200x2 --traces ../shared/traces

LAB holds one folder per transport with traces of both ranks (NAME.rankR.json.gz), NCCL's logs
(nccl.rankR.log.gz) and a sweep of the all-reduce (sweep.json); its README says how each run was
made. The doctor gets these files and no name, as from `ringside trace FILE… --nccl LOG…`, and the
sweep; a run whose files are not there counts as wrong. The wanted verdicts below come from that
README, and from each transport: over NVLink and host memory the exchange is short, over sockets it
is not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ringside.doctor import Case, Diagnosis, case_of_files, diagnose
from ringside.doctor.figures import gradient_bytes, transport_of
from ringside.errors import TraceError
from ringside.measurements import Point, Series, Sweep
from ringside.measurements.sweep import Dtype

GRADIENTS = 94_851_728  # bytes of a ResNet-50 with 100 classes in fp32

Bytes = tuple[float, float]
WHOLE, HALF = (0.98, 1.02), (0.49, 0.51)


@dataclass(frozen=True, kw_only=True)
class Known:
    """The cause that has to be the verdict, and what else has to be so.

    `also`: causes that have to be among the other findings. `not_`: causes that must be neither.
    `sent`: gradient bytes an optimizer step, as a share of those in fp32.
    """

    cause: str
    also: tuple[str, ...] = ()
    not_: tuple[str, ...] = ()
    sent: Bytes | None = WHOLE


LAB = {
    "one/ddp": Known(cause="launch", not_=("link", "late_rank"), sent=None),
    "one/ddp_bs256": Known(cause="compute", not_=("link", "late_rank", "launch"), sent=None),
    "nvlink/ddp": Known(cause="launch", not_=("link",)),
    "nvlink/ddp_bs256": Known(cause="compute", not_=("link",)),
    "nvlink/hook_bf16": Known(cause="launch", not_=("link",), sent=HALF),
    "nvlink/unused": Known(cause="unused_parameters", not_=("link",)),
    "nvlink/item": Known(cause="host_sync", not_=("link",)),
    "nvlink/data_starved": Known(cause="data", not_=("link", "late_rank")),
    "nvlink/unbucketed": Known(cause="unbucketed"),
    "shm/ddp": Known(cause="launch", also=("environment",), not_=("link",)),
    "shm/fp32": Known(cause="launch", also=("environment",), not_=("link",)),
    "socket/ddp": Known(cause="link", also=("environment",)),
    "socket/fp32": Known(cause="link", also=("environment",)),
    "socket/hook_bf16": Known(cause="link", also=("environment",), sent=HALF),
    # The all-reduce of every fourth micro-step: a quarter of the traffic per image, 13 % exposed.
    "socket/accum4": Known(cause="launch", also=("link", "environment")),
    "socket/ddp_bs256": Known(cause="compute", also=("environment",)),
}
# Traces of other people, of which the README or the research names what holds them back.
PUBLIC = {
    "ddp_resnet50_2xa100": "launch",
    "unbucketed_2xv100": "unbucketed",
    "resnet50_v100_workers0": "data",
    "resnet50_v100_workers4": "compute",
    "single_gpu_v100_ns": "compute",
    "edge_cpu_only_rank34": "unexplained",
    "edge_cupti_only": "unexplained",
}


ABSENT = "its files are not there"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table; `wrong` says what is, empty where nothing is."""

    place: str
    name: str
    known: Known | None
    case: Case = field(default_factory=Case)
    diagnosis: Diagnosis = field(default_factory=lambda: diagnose(Case()))
    wrong: str


def main() -> int:
    """Print both tables; 1 when a verdict is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lab", nargs="?", type=Path, default=Path("../shared/lab/h200x2"))
    parser.add_argument("--traces", type=Path, help="the folder of other people's traces")
    given = parser.parse_args()
    for folder in filter(None, (given.lab, given.traces)):
        if not folder.is_dir():
            print(f"There is no folder {folder}.", file=sys.stderr)
            return 2
    rows = list(lab_rows(given.lab))
    if given.traces is not None:
        rows += public_rows(given.traces)
    print_table(rows)
    wrong = [row for row in rows if row.wrong]
    print(f"\n{len(rows) - len(wrong)} of {len(rows)} right")
    return 1 if wrong else 0


def lab_rows(lab: Path) -> Iterator[Row]:
    """Every run of the lab; wrong is one without a wanted verdict, and one without its files."""
    absent = dict(LAB)
    for folder in sorted(path for path in lab.iterdir() if path.is_dir()):
        for name in sorted({path.name.split(".")[0] for path in folder.glob("*.rank*.json.gz")}):
            case = lab_case(folder, name)
            diagnosis = diagnose(case)
            known = LAB.get(f"{folder.name}/{name}")
            absent.pop(f"{folder.name}/{name}", None)
            wrong = judged(case, diagnosis, known) if known else "nobody said what is right"
            yield Row(
                place=folder.name, name=name, known=known, case=case, diagnosis=diagnosis,
                wrong=wrong,
            )  # fmt: skip
    for path, known in absent.items():
        place, _, name = path.partition("/")
        yield Row(place=place, name=name, known=known, wrong=ABSENT)


def lab_case(folder: Path, name: str) -> Case:
    """What the doctor gets of a run: traces, logs and the sweep of the same transport."""
    case = case_of_files(
        sorted(folder.glob(f"{name}.rank*.json.gz")), sorted(folder.glob("nccl.rank*.log.gz"))
    )
    path = folder / "sweep.json"
    return replace(case, sweep=sweep_of(path, transport_of(case))) if path.exists() else case


def sweep_of(path: Path, transport: str | None) -> Sweep:
    """The lab's medians as a sweep of two ranks; how far the repeats spread it does not say."""
    kinds: dict[str, Dtype] = {"torch.float32": "fp32", "torch.bfloat16": "bf16"}
    points: dict[Dtype, list[Point]] = {}
    for one in json.loads(path.read_text(encoding="utf-8")):
        point = Point(
            num_bytes=one["kib"] * 1024, median_us=1000 * one["ms"], p90_us=1000 * one["ms"],
            repeats=1,
        )  # fmt: skip
        points.setdefault(kinds[one["dtype"]], []).append(point)
    series = tuple(
        Series(
            operation="all_reduce", dtype=dtype, backend="nccl", num_ranks=2,
            points=tuple(sorted(found, key=lambda one: one.num_bytes)), transport=transport,
        )
        for dtype, found in points.items()
    )  # fmt: skip
    return Sweep(t=0.0, key="lab", device_name="NVIDIA H200", num_ranks=2, series=series)


def public_rows(folder: Path) -> Iterator[Row]:
    """Other people's traces, one file each."""
    for name, cause in PUBLIC.items():
        path, known = folder / f"{name}.json.gz", Known(cause=cause, sent=None)
        if not path.exists():
            yield Row(place="public", name=name, known=known, wrong=ABSENT)
            continue
        case = case_of_files([path])
        diagnosis = diagnose(case)
        wrong = judged(case, diagnosis, known)
        yield Row(
            place="public", name=name, known=known, case=case, diagnosis=diagnosis, wrong=wrong
        )


def judged(case: Case, diagnosis: Diagnosis, known: Known) -> str:
    """What is wrong with a diagnosis; empty where it is as it has to be."""
    first = diagnosis.verdict.cause
    others = {one.cause for one in diagnosis.others}
    faults = [] if first == known.cause else [f"{first} instead of {known.cause}"]
    faults += [f"{cause} is missing" for cause in known.also if cause not in others]
    serious = {one.cause for one in diagnosis.others if one.severity != "note"} | {first}
    faults += [f"{cause} is blamed" for cause in known.not_ if cause in serious]
    if known.sent is not None:
        sent = (gradient_bytes(case) or 0) / GRADIENTS
        if not known.sent[0] <= sent <= known.sent[1]:
            faults.append(f"{sent:.0%} of the gradient bytes")
    return "; ".join(faults)


def print_table(rows: list[Row]) -> None:
    """Markdown, for the file of results."""
    print(
        "| transport | run | wanted | verdict | share | confidence | sentence | MB a step | "
        "evidence | also | |"
    )
    print("| --- | --- | --- | --- | ---: | --- | --- | ---: | --- | --- | --- |")
    for row in rows:
        first = row.diagnosis.verdict
        share = "" if first.share_ratio is None else f"{first.share_ratio:.0%}"
        evidence = "; ".join(f"{one.label} {one.value}" for one in first.evidence[:4])
        also = ", ".join(f"{one.code}" for one in row.diagnosis.others)
        sent = (gradient_bytes(row.case) or 0) / 1e6
        wanted = row.known.cause if row.known else "-"
        right = f"WRONG: {row.wrong}" if row.wrong else "right"
        print(
            f"| {row.place} | {row.name} | {wanted} | {first.cause} ({first.code}) | {share} | "
            f"{first.confidence} | {short(first.sentence, row.case)} | {sent:.1f} | "
            f"{evidence} | {also} | {right} |"
        )


def short(sentence: str, case: Case) -> str:
    """The sentence with the names of the files without their folders."""
    for rank in case.facts.ranks if case.facts is not None else ():
        sentence = sentence.replace(rank.file, Path(rank.file).name)
    return sentence


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TraceError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
