"""Looks at every picture of a data set before a run does."""
