"""Says what holds a run or a machine back, how sure that is, and what to try.

case = case_of_run(run, root)
diagnosis = diagnose(case)
"""

from ringside.doctor.case import Case
from ringside.doctor.findings import Diagnosis, Evidence, Finding

__all__ = ["Case", "Diagnosis", "Evidence", "Finding"]
