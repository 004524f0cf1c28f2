"""Addresses webhooks may lead to: public ones, and internal ones that the operator names.

A name is looked up once, and what was found is what is connected to: a name that leads elsewhere a
moment later leads nowhere. Names are looked up by the machine's own resolver, so that decimal,
octal and shortened forms of an address come out as what they mean.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Self

import httpx2
from anyio import CapacityLimiter, fail_after, to_thread

from celeus.errors import InvalidValue

LONGEST_URL = 2_000
LAST_PORT = 65_535
LOOKUPS_AT_ONCE = 64
"""Threads of their own: a name server that says nothing keeps nothing else waiting."""
CHECKS_AT_ONCE = 16
"""Look-ups for whoever makes or changes a webhook, beside those of deliveries."""
LOOKUP_SECONDS = 5.0

_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")
_SPECIAL: tuple[IPv4Network | IPv6Network, ...] = (
    # IETF assignments, of which Python knows two parts, and what Azure tells its machines
    IPv4Network("192.0.0.0/24"),
    IPv4Network("168.63.129.16/32"),
    # Relays of 6to4; then 6to4 itself and Teredo, which hold an IPv4 address, and documentation
    IPv4Network("192.88.99.0/24"),
    IPv6Network("2002::/16"),
    IPv6Network("2001::/32"),
    IPv6Network("3fff::/20"),
)
"""Networks that Python 3.11 calls global but in which no server has its address."""

Address = IPv4Address | IPv6Address


class AddressRefused(Exception):
    """The address is not one that webhooks may lead to, or there is none; its text says so."""


def is_public(address: Address) -> bool:
    """Return whether an address is one of the public internet, of a single host."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST:
            return False
    special = address.is_multicast or address.is_reserved or address.is_link_local
    return address.is_global and not special and not any(address in network for network in _SPECIAL)


@dataclass(frozen=True, slots=True)
class Guard:
    """Check of addresses: public ones pass, and the internal hosts and networks that are named.

    ``plain``: `http://` is let through, too.
    """

    hosts: frozenset[str] = frozenset()
    networks: Sequence[IPv4Network | IPv6Network] = ()
    plain: bool = False
    _lookups: CapacityLimiter = field(
        default_factory=lambda: CapacityLimiter(LOOKUPS_AT_ONCE), compare=False
    )
    _checks: CapacityLimiter = field(
        default_factory=lambda: CapacityLimiter(CHECKS_AT_ONCE), compare=False
    )

    @classmethod
    def of(cls, internal: str | None, *, plain: bool) -> Self:
        """The guard of the operator's settings: names and networks, separated by spaces."""
        hosts, networks = set(), []
        for entry in (internal or "").split():
            try:
                networks.append(ip_network(entry))
            except ValueError:
                hosts.add(entry.lower())
        return cls(frozenset(hosts), tuple(networks), plain)

    def url(self, given: str) -> httpx2.URL:
        """The address that somebody gave; refuses what no webhook may have."""
        schemes = ("https", "http") if self.plain else ("https",)
        rule = (
            f"an address {' or '.join(f'{name}://' for name in schemes)} with a host, no password"
        )
        try:
            url = httpx2.URL(given)
            port = url.port
        except (httpx2.InvalidURL, ValueError, TypeError):
            url, port = httpx2.URL(), None
        wrong = url.scheme not in schemes or not url.host or bool(url.userinfo)
        wrong |= port is not None and not 1 <= port <= LAST_PORT
        if wrong or len(given) > LONGEST_URL or not given.isascii() or not given.isprintable():
            raise InvalidValue(
                "A webhook cannot lead to this address.", field="url", rule=rule, value=given
            )
        return url

    async def check(self, given: str) -> None:
        """Refuse an address that leads inside, or nowhere."""
        url = self.url(given)
        try:
            await self.addresses(url, self._checks)
        except AddressRefused as refused:
            raise InvalidValue(
                f"A webhook cannot lead to this address: {refused}.",
                field="url",
                rule="an address of the public internet, or one that the operator lets through",
                value=given,
            ) from refused

    async def addresses(self, url: httpx2.URL, places: CapacityLimiter | None = None) -> list[str]:
        """The addresses to connect to, in order of preference; all of them are allowed.

        A look-up takes one of the ``places``, by default those of deliveries.
        """
        places = places or self._lookups
        try:
            with fail_after(LOOKUP_SECONDS):
                found = await to_thread.run_sync(
                    _looked_up, url.host, limiter=places, abandon_on_cancel=True
                )
        except TimeoutError as error:
            raise AddressRefused("its host cannot be looked up in time") from error
        except (OSError, UnicodeError) as error:
            raise AddressRefused("its host cannot be looked up") from error
        if not found:
            raise AddressRefused("its host has no address")
        if url.host.lower() not in self.hosts and not all(map(self._allows, found)):
            # Which one is not told: who asks need not know what names mean inside
            raise AddressRefused("its host is not on the public internet")
        return [str(address) for address in found]

    def _allows(self, address: Address) -> bool:
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        inside = any(
            candidate in network
            for candidate in (address, mapped)
            for network in self.networks
            if candidate is not None and candidate.version == network.version
        )
        return inside or is_public(address)


def _looked_up(host: str) -> list[Address]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # A scope behind % is one of this machine, and no address of the internet has any
    if any("%" in str(info[4][0]) for info in found):
        return []
    return list(dict.fromkeys(ip_address(info[4][0]) for info in found))
