"""The page of people and keys, where administrators invite, remove and give roles."""

from fastapi import Response

from celeus.web.pages import AdministersPage, page_router

router = page_router()


@router.get("/people")
async def people(view: AdministersPage) -> Response:
    """The frame; lists and changes come by the interface any program uses."""
    return view.page("people.html", own_key=view.caller.key_id)
