"""Real runs with small fake trainers: the supervisor executes whatever plan.json says."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from ringside.hardware import Hardware
from ringside.identity import RUN_TOKEN, run_processes, wait_until
from ringside.launch.ladder import stop_ladder
from ringside.launch.plan import LaunchPlan
from ringside.records import ExitRecord, read_exit, read_owner
from ringside.rundir import RunDir, create_run_dir
from ringside.spec import AccelerateSettings, DataSpec, RunSpec, TrainingSettings

MakeRun = Callable[[str], RunDir]
PATIENT_S = 60.0  # Only a test that fails waits so long: the cores may be busy.


@pytest.fixture
def spec() -> RunSpec:
    return RunSpec(
        preset="ddp",
        accelerate=AccelerateSettings(distributed_type="MULTI_GPU", num_processes=2),
        training=TrainingSettings(),
        data=DataSpec(source="emoji"),
        global_batch=64,
        num_processes=2,
        device="cpu",
    )


@pytest.fixture
def hardware() -> Hardware:
    return Hardware(num_cores=2)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Every test here runs in a folder with spaces, quotes, a dollar sign and non-ASCII."""
    return tmp_path / 'Lea\'s "runs" $HOME äöü 訓練'


@pytest.fixture
def make_run(root: Path, spec: RunSpec) -> Iterator[MakeRun]:
    """A run whose launcher is the given script; whatever is left of it is ended after the test."""
    made: list[RunDir] = []

    def make(script: str) -> RunDir:
        run = create_run_dir(root)
        made.append(run)
        trainer = run.path / "trainer.py"
        trainer.write_text(dedent(script))
        plan = LaunchPlan(
            argv=[sys.executable, "-u", str(trainer), str(run.path)],
            environment={RUN_TOKEN: run.id},
            cwd=str(run.path),
        )
        run.write(run.plan, plan)
        run.write(run.spec, spec)
        return run

    yield make
    for run in made:
        owner = read_owner(run)
        stop_ladder([owner.process] if owner else [], run.id, step_s=1.0)


@pytest.fixture
def wait_exit() -> Callable[[RunDir], ExitRecord]:
    """Wait for the exit record, and see that nothing of the run is left by then."""

    def wait(run: RunDir) -> ExitRecord:
        assert wait_until(run.exit.exists, PATIENT_S), run.console.read_text()
        assert not run_processes(run.id)
        record = read_exit(run)
        assert record is not None
        return record

    return wait


@pytest.fixture
def wait_console() -> Callable[..., None]:
    """Wait until the run's console holds a text, once or several times.

    Two processes that print a line may mix its text and its line break, so texts are counted.
    """

    def wait(run: RunDir, text: str, times: int = 1) -> None:
        def there() -> bool:
            return run.console.exists() and run.console.read_text().count(text) >= times

        assert wait_until(there, PATIENT_S), run.console.read_text()

    return wait
