"""How network interfaces are laid over the cards of an AWS instance type.

A layout is written `card(s):device:kind` joined by `;`, where cards are a number, a range or a
list and kind is interface, efa or efa-only: `0:0:interface;0:1:efa-only;1-3:0:efa-only`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gputier.catalog.tables import Row, Source, records

KINDS = ("interface", "efa", "efa-only")
_PART = re.compile(r"([0-9,\-]+):([0-9]+):([a-z-]+)")
#: "100", "350/400" (card 0 first), "0:100 ENA;odd:400 EFA;…".
_CARD_ZERO = re.compile(r"(?:0:)?(\d+)")


class Interface(NamedTuple):
    """One network interface: its card, its device index on that card, and what it carries.

    `interface` is plain (IP), `efa-only` carries the fabric without an address, `efa` both.
    """

    card: int
    device: int
    kind: str


class CardLayout(NamedTuple):
    """How a type is laid out for its fabric: every EFA card, and one address in all, so that no
    routing by source address has to be set up on the machine. `ip_gbps` is what card 0 carries."""

    instance_type: str
    cards: int
    fabric: tuple[Interface, ...]
    ip_gbps: float | None
    source: str
    as_of: str
    confidence: str


def parse_layout(text: str) -> tuple[Interface, ...]:
    """The interfaces of a layout, by card and device. Raises `ValueError` for another grammar, and
    for two interfaces in one place."""
    found = sorted(one for part in text.split(";") for one in _interfaces(part, text))
    places = [(one.card, one.device) for one in found]
    if len(set(places)) < len(places):
        raise ValueError(f"`{text}` puts two interfaces in one place")
    return tuple(found)


def _interfaces(part: str, text: str) -> Iterator[Interface]:
    match = _PART.fullmatch(part)
    if match is None or match[3] not in KINDS:
        raise ValueError(f"`{part}` in `{text}` is not card:device:kind")
    for cards in match[1].split(","):
        first, _, last = cards.partition("-")
        for card in range(int(first), int(last or first) + 1):
            yield Interface(card, int(match[2]), match[3])


def card_layouts(source: Source) -> dict[str, CardLayout]:
    """The layouts by instance type. Raises InvalidInput for a malformed row."""
    return {one.instance_type: one for one in records(source.tables["aws_network"], _layout)}


def _layout(row: Row) -> CardLayout:
    cards, figure = row.whole("network_cards"), _CARD_ZERO.match(row.text("gbps_per_card_api"))
    if cards is None:
        raise ValueError("network_cards is empty")
    return CardLayout(
        row.text("instance_type"),
        cards,
        parse_layout(row.text("layout_save_ips")),
        float(figure[1]) if figure else None,
        row.text("source"),
        row.text("as_of"),
        row.text("confidence"),
    )
