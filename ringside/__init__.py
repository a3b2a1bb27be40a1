"""The domain of Ringside: what a preset, a run and a comparison are. Needs no torch, no gradio."""

__version__ = "0.1.0"
