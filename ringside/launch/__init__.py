"""Starting, owning, stopping and clearing up the processes of a run on this machine.

plan        what is executed: argv, environment delta, working folder
local       create a run directory and start its supervisor
supervisor  the detached process that owns one run and writes its exit record
verdict     from exit code, requests and logs to one final state and one sentence
inquest     the first cause of a failure
deaths      how the ranks died, as the launcher reported it
blame       who kept the others waiting, from the ranks' marks
evidence    the last collective, the last checkpoint, the files that say more
stall       a run in which no rank comes on any more
memory_kills  whether the kernel ended a process for lack of memory
ladder      request, SIGTERM, SIGKILL, and proof that nothing is left
stop        ask a run to stop and wait for its end
occupied    runs beside which nothing can be measured
claims      which runs of this machine hold its devices, and which wait for them
queue       whose turn it is to start, and who stands in the way
queue_order the order where a person changed it, and the pause
turn        a waiting run's own look at the queue
retry       another try of a run that failed for a reason that may pass
supervisor_log  what went wrong where nobody was there to be told
locks       one starter and one reconciler at a time
reconcile   close the books of runs whose owner is gone
probing     measure this machine, a model or a request in processes of their own
probe       one such launch, from its folder to its result, and its end
"""
