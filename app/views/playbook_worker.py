"""Makes one playbook: `python -m app.views.playbook_worker`.

Reads one `Order` as a line of JSON, writes one line, where the playbook is or why there is none,
and ends. Traces are large and charts need a renderer, so the page's server holds neither.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from app.views.child import end_with_the_page, give_way, tell_the_page
from app.views.playbook_export import Made, Order, export_playbook
from ringside.errors import RingsideError
from ringside.words import speak


def main() -> int:
    """0 when there is a playbook or a sentence, 130 when it was stopped."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    speak(order.language)
    give_way()
    end_with_the_page()
    try:
        path = export_playbook(
            Path(order.root), order.run_ids, title=order.title, chosen=order.chosen
        )
        made = Made(path=str(path))
    except RingsideError as error:
        made = Made(refusal=str(error))
    except KeyboardInterrupt:
        return 130
    tell_the_page(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
