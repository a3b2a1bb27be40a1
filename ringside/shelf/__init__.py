"""The shelf of runs: what people say about them, how one is found, and how one goes.

notes      tags, a note, archived: RUN/notes.json, which any person may write
figures    the four numbers by which runs are sorted
measured   what presets gained in the runs that are there; route: over which way
finding    search, filters and order, the same for the terminal and the page
deleting   the size first, then moved aside in one step and removed
leftovers  processes of runs that have ended

The modules are imported one by one: `ringside list` needs two of them and has to answer at once.
"""
