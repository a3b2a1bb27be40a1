"""What a team keeps of its runs: preset, environment, evidence, verdicts and scores, as one zip.

content      playbook.json as structs
redaction    what may leave the machine
recording    the files of a run that are taken along
traces       a trace without stacks and paths
gathering    from runs to content and files
tables       its tables as text
readme       README.md
archive      reading zips of strangers, writing ours
store        your own folder and the team's: list, find, import, remove
differences  two playbooks, only what differs
replay       the command for this machine

The format is described in `docs/playbook.md`. The modules are imported one by one.
"""
