"""Charts of finished views: one definition for the page, for files and for reports; no gradio.

waterfall    where a step goes, per rank
timeline     one step in lanes
all_reduce   bandwidth by message size
scaling      speed-up by number of devices
curves       losses and scores of several runs
topology     which way GPUs reach each other
palette      the colours, as in the style sheet
figure       a chart before and after it is drawn
drawing      SVG and PNG from it
"""
