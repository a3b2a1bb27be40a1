"""What `training.probe` measures, each in processes of its own and without a profiler.

sweep     how long collectives of each size take
trials    the same, with other variables, in one fresh process group each
arms      a step as it is, without its reduction, without its input
describe  what one device does in a step, part by part
bench     the parts of a session that a step needs, without its files
blocks    free-running steps in blocks, timed on the slowest rank
"""
