"""Collection pauses while libraries are imported, and goes on afterwards."""

from __future__ import annotations

import gc

import pytest

from ringside.garbage import no_collection


@pytest.fixture(autouse=True)
def _thawed():
    """What this process has frozen before stays frozen; what a test freezes does not."""
    assert gc.isenabled()
    frozen = gc.get_freeze_count()
    yield
    gc.enable()
    if gc.get_freeze_count() > frozen == 0:
        gc.unfreeze()


def test_nothing_is_collected_inside_and_what_came_is_left_out_afterwards():
    before = gc.get_freeze_count()
    with no_collection():
        assert not gc.isenabled()
        stays = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() - before >= len(stays)
    assert not {id(stays), id(stays[0])} & set(map(id, gc.get_objects()))


def test_a_failed_import_leaves_collection_as_it_was():
    before = gc.get_freeze_count()
    with pytest.raises(ImportError), no_collection():
        raise ImportError("no such library")
    assert gc.isenabled()
    assert gc.get_freeze_count() <= before


def test_where_it_is_off_it_stays_off():
    gc.disable()
    before = gc.get_freeze_count()
    with no_collection():
        pass
    assert not gc.isenabled()
    assert gc.get_freeze_count() <= before


def test_the_trainer_collects_when_it_is_loaded():
    import training.train

    assert training.train
    assert gc.isenabled()
