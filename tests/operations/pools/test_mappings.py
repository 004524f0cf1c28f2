"""Mappings of columns that a project remembers."""

from celeus.operations.pools.imports import MOST_REMEMBERED, remember_mapping, remembered_mappings
from celeus.operations.runtime.context import Context


async def test_those_used_last_are_kept_and_the_last_one_comes_first(context: Context) -> None:
    for number in range(MOST_REMEMBERED + 2):
        await remember_mapping(context, {f"column {number}": "text"})
    await remember_mapping(context, {"column 7": "answer"})
    found = await remembered_mappings(context)
    assert len(found) == MOST_REMEMBERED
    assert found[0] == {"column 7": "answer"}
    assert {"column 0": "text"} not in found


async def test_a_mapping_of_very_many_columns_is_not_kept(context: Context) -> None:
    await remember_mapping(context, {f"column {number}": "hidden" for number in range(5_000)})
    assert await remembered_mappings(context) == []
