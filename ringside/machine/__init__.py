"""What can be known of this machine without training: GPUs, links, cores, memory, versions.

machine = read_machine(runs_root())
"""

from ringside.machine.facts import GpuState, Link, Machine, Process
from ringside.machine.reading import read_machine
from ringside.machine.torch_report import TorchReport

__all__ = ["GpuState", "Link", "Machine", "Process", "TorchReport", "read_machine"]
