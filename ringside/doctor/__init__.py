"""Says what holds a run or a machine back, how sure that is, and what to try.

case = case_of_run(run, root)
diagnosis = diagnose(case)
"""

from ringside.doctor.case import Case
from ringside.doctor.diagnosis import all_checks, diagnose
from ringside.doctor.findings import Diagnosis, Evidence, Finding
from ringside.doctor.gathering import case_of_files, case_of_run

__all__ = [
    "Case", "Diagnosis", "Evidence", "Finding", "all_checks", "case_of_files", "case_of_run",
    "diagnose",
]  # fmt: skip
