"""The shipped emoji picture set and the script that builds it."""
