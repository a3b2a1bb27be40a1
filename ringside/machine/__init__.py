"""What can be known of this machine without training: GPUs, links, cores, memory, versions.

machine = read_machine()
"""

from ringside.machine.facts import GpuState, Link, Machine, Process

__all__ = ["GpuState", "Link", "Machine", "Process"]
