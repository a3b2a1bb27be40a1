"""The domain of Ringside: what a preset, a run and a comparison are. Needs neither torch nor gradio."""

__version__ = "0.1.0"
