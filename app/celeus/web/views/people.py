"""The page of people and keys, where administrators invite, remove and give roles."""

from fastapi import Response

from celeus.web.pages import AdministersPage, page_router

router = page_router()


@router.get("/people")
async def people(view: AdministersPage) -> Response:
    """Show the page, which loads lists and sends changes by the routes of the interface."""
    return view.page("people.html", own_key=view.caller.key_id)
