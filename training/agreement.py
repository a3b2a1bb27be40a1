"""What all ranks must have alike before they train, though each finds it out for itself.

Machines may hold other files under the same path, and a name on the Hub may mean another commit a
second later.
"""

from __future__ import annotations

import msgspec

from ringside.errors import SetupError
from ringside.spec import RunSpec
from ringside.words import say
from training.control import Control

OF_ONE_MACHINE = {"gpu_ids", "sources"}


def require_same_data(control: Control, fingerprint: str) -> None:
    """SetupError on all ranks when one has opened other data. A collective of the side group."""
    found: list[str] = control.share(control.collect(fingerprint))
    for rank, other in enumerate(found):
        if other != found[0]:
            raise SetupError(
                say("refused.other_data", rank=rank, fingerprint=other, first=found[0])
            )


def other_request(specs: list[RunSpec]) -> SetupError | None:
    """A refusal when a rank was asked for another run than rank 0; `specs` are in their order.

    A set of the Hub may be named alike and pinned to another commit: rank 0's is the run's.
    """
    for rank, spec in enumerate(specs):
        own = msgspec.structs.replace(
            spec, data=msgspec.structs.replace(spec.data, revision=specs[0].data.revision)
        )
        for name in RunSpec.__struct_fields__:
            asked, wanted = getattr(own, name), getattr(specs[0], name)
            if name not in OF_ONE_MACHINE and asked != wanted:
                return SetupError(
                    f"Rank {rank} was asked for {name} {asked} and rank 0 for {wanted}; launch "
                    "all machines with the same command and the same presets."
                )
    return None
