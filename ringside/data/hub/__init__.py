"""Data sets of the Hugging Face Hub: their names, their columns, their pictures in Arrow files."""
