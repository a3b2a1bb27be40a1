"""What the words of the `ringside` command do, one module per kind of work."""
