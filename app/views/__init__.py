"""View models: what the page shows, as plain data and finished texts. No gradio in here.

figures   numbers as text, with their unit; missing is a dash
machine   the line in the header
fields    the fields of the launch form as a request
form      from a request to a plan, its files, and a started run
data      what is in a data set, at a glance
check     a check of every picture as the page shows it; checks keeps those under way and done,
          check_worker is their process, check_messages what it says
child     a process that works for the page and ends with it
trials    a checkpoint tried on pictures; guesses asks the model, samples takes validation pictures
          through sample_worker
desk      what the server keeps of the runs: one reader a run, its baseline, the list
run       one run as the page shows it
step      where the time of a step goes
setup     what was asked for, and what really ran
counts    what a run counted, in sentences
logs      the logs of a run by rank, read by byte offset
table     runs side by side
charts    charts of what has ended: definitions, SVG and PNG
doctor    findings, points and the machine, finished; consultations keeps the visits, doctor_worker
          is their process, doctor_messages what it says
measuring the measurement under way; measuring_worker is its process
estimates what each strategy is predicted to give
prefill   an address that fills the form
"""
