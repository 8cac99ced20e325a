"""Names that only the catalogue and the model table know, asked while a declaration is checked.

This layer knows neither. Whoever reads a file for a person passes somebody who does, so that an
unknown GPU is reported beside a misspelt field, in one go, with the place of the very item:

    with known.asking(KnownNames(catalog)):
        declarations = resolve("prod", Path.cwd())
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from gputier.workload.ml import Model


class Unknown(NamedTuple):
    """What is wrong with a name, as the words after it, and the way out."""

    after: str
    hint: str


class Names(Protocol):
    """Says of a name what is wrong with it, or nothing."""

    def gpu(self, name: str) -> Unknown | None: ...

    def region(self, cloud: str, name: str) -> Unknown | None: ...

    def instance_type(self, name: str) -> Unknown | None: ...

    def model(self, model: Model) -> Iterable[tuple[str, Unknown]]:
        """Per field of the model that names something nobody knows."""
        ...


_names: ContextVar[Names | None] = ContextVar("gputier_known_names", default=None)


@contextmanager
def asking(names: Names) -> Generator[None]:
    """Inside, declarations are checked against these names as well."""
    token = _names.set(names)
    try:
        yield
    finally:
        _names.reset(token)


def asked() -> Names | None:
    """Who can be asked here; None in a program that brings its own check."""
    return _names.get()
