"""View models: what the page shows, as plain data and finished texts. No gradio in here.

figures   numbers as text, with their unit; missing is a dash
machine   the line in the header
form      from the fields of the launch form to a plan, its files, and a started run
data      what is in a data set, at a glance
desk      what the server keeps of the runs: one reader a run, its baseline, the list
run       one run as the page shows it
step      where the time of a step goes
setup     what was asked for, and what really ran
logs      the logs of a run by rank, read by byte offset
table     runs side by side
"""
