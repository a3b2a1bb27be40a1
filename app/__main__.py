"""`python -m app` is the `ringside` command, for a checkout that is not installed."""

from app.entry import main

main()
