"""The page: the only folder that imports gradio.

environment  what Gradio may learn from it: nothing
server       address, port, and what stands in front
roles        what a viewer gets
site         all pages in one application
skipping     what is skipped costs nothing and keeps its properties
train        three choices and one button
runs         the list, and one run live
compare      runs side by side
doctor       what holds a run back, and the check of the machine
library      presets and playbooks of the team
frame        what every page has
draw         HTML for what is read, not filled in
"""

from app.page import environment as environment  # first: it is read when Gradio is imported
from ringside.garbage import no_collection

with no_collection():
    from app.page.server import Server, open_server, serve
    from app.page.settings import PageSettings
    from app.page.site import build

__all__ = ["PageSettings", "Server", "build", "open_server", "serve"]
