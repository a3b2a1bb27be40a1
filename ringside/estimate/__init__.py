"""Predicts step time, memory and speed-up of a preset from measurements, before it runs."""
