"""From what was typed to declarations and a catalogue."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from gputier import catalog as catalogs
from gputier.catalog import Catalog
from gputier.cli import console

#: A catalogue older than this is said to be old, days.
OLD_DAYS = 180


def load_catalog(directory: str | None) -> Catalog:
    """The catalogue, with a person's overlay where one is named. Notes its age on stderr."""
    loaded = catalogs.load(Path(directory).expanduser()) if directory else catalogs.load()
    said = age_note(loaded.as_of, today())
    if said:
        console.note(said)
    return loaded


def today() -> datetime.date:
    return datetime.datetime.now(tz=datetime.UTC).date()


def age_note(as_of: str, now: datetime.date) -> str:
    """What to say of a catalogue's date, or nothing. Figures never depend on the clock."""
    newest = datetime.date.fromisoformat(as_of)
    days = (now - newest).days
    if days < 0:
        return (
            f"this machine's clock says {now}, and the catalogue's newest price is of {as_of};"
            " ages count from the catalogue's date"
        )
    if days > OLD_DAYS:
        return (
            f"the catalogue's newest price is of {as_of}, {days} days ago;"
            " `gputier catalog refresh --from FILE…` brings in newer ones"
        )
    return ""


def json_text(document: Mapping[str, object] | Sequence[object]) -> str:
    """A document as it is printed: keys in the schema's order, UTF-8, one line feed at the end."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
