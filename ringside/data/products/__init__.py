"""Synthetic catalogue pictures: drawn by rule, so that any number in any size needs no download."""
