"""What may be typed after `ringside`: each command with its arguments and flags, by topic.

What the commands do stands in `app.commands`, which is imported once one of them is called.
`register(app)` of a module adds its commands in the order of the help.
"""
