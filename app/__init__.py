"""Two front ends on the same functions: the page and the `ringside` command."""
