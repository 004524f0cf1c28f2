"""Limits on the requests of a key, and on those of an address with keys that do not work."""

from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

from celeus.errors import RateLimited, Refusal, Unauthenticated
from celeus.operations.runtime.caller_cache import Caller
from celeus.operations.runtime.context import Context

SHARES_PER_MINUTE = 600
"""Reports and badges shown to one address."""
SUBSCRIBER_BITS = 64
"""Leading bits of an IPv6 address that name a subscriber, who has all addresses with them."""


async def limit(context: Context, caller: Caller) -> None:
    """Count a request of the caller's key; refuse it beyond the limit."""
    await _count(
        context, f"key/{caller.key_id}", context.settings.requests_per_minute, "of this key"
    )


async def limit_failures(context: Context, scope: Scope, refusal: Refusal) -> Refusal:
    """Return the refusal for a caller: beyond the limit no longer whether the key works.

    Only failures are counted and refused by it: whoever shares an address with a guesser, as
    behind a proxy, is let in by a key that works.
    """
    if isinstance(refusal, Unauthenticated):
        most = context.settings.failed_keys_per_minute
        try:
            await _count(context, f"address/{_origin(scope)}", most, "without a key that works")
        except RateLimited as limited:
            return limited
    return refusal


async def limit_share(context: Context, scope: Scope, *, failed: bool = False) -> None:
    """Count a request by a link, of its address; one that ``failed`` as with a wrong key."""
    if failed:
        most, name = context.settings.failed_keys_per_minute, "address"
    else:
        most, name = SHARES_PER_MINUTE, "share"
    await _count(context, f"{name}/{_origin(scope)}", most, "by links")


async def _count(context: Context, name: str, most: int, what: str) -> None:
    wait = await context.rates.count(name, most) if most else None
    if wait is not None:
        raise RateLimited(
            f"There were too many requests {what}.",
            rule=f"at most {most} a minute",
            retry_after=wait,
            policy=name.partition("/")[0],
            quota=most,
        )


def _origin(scope: Scope) -> str:
    client = scope.get("client")
    if client is None:
        return "local"
    try:
        address = ip_address(client[0])
    except ValueError:
        # A name given by a proxy or a test
        return str(client[0])[:64]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> SUBSCRIBER_BITS << SUBSCRIBER_BITS))
    return str(address)
