"""The catalogue's and the model table's answers to "is there such a name?"."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.catalog import Catalog
from gputier.errors import InvalidInput, spelling_hint
from gputier.sizing import known as models
from gputier.workload import Model
from gputier.workload.known import Unknown


class KnownModels:
    """Implements `gputier.workload.known.Names` for models alone: sizing selects nothing, and
    answers whatever GPU or region is named."""

    def gpu(self, name: str) -> Unknown | None:
        del name
        return None

    def region(self, cloud: str, name: str) -> Unknown | None:
        del cloud, name
        return None

    def instance_type(self, name: str) -> Unknown | None:
        del name
        return None

    def model(self, model: Model) -> Iterator[tuple[str, Unknown]]:
        """Names and files that sizing cannot read."""
        try:
            models.resolve(model)
        except InvalidInput as error:
            for problem in error.problems:
                field = problem.path.rpartition(".")[2] or "name"
                yield field, Unknown(f": {problem.message}", problem.hint)


class KnownNames(KnownModels):
    """The same over a catalogue as well."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def gpu(self, name: str) -> Unknown | None:
        """GPU models, every variant of a bare name."""
        if self._catalog.match_gpus(name):
            return None
        hint = spelling_hint(
            name, self._catalog.gpus, otherwise="`gputier catalog gpus` lists the models"
        )
        return Unknown(f" names `{name}`, which is not a GPU model in the catalogue", hint)

    def region(self, cloud: str, name: str) -> Unknown | None:
        """Regions that a price or an offering names."""
        known = self._catalog.regions(cloud)
        if name in known:
            return None
        owners = [c for c in ("aws", "gcp", "azure") if name in self._catalog.regions(c)]
        if owners and owners[0] != cloud:
            hint = f"`{name}` is a region of {owners[0]}"
        else:
            otherwise = f"`gputier catalog regions {cloud}` lists them"
            hint = spelling_hint(name, known, otherwise=otherwise)
        return Unknown(f" names `{name}`, which is not a region of {cloud} we know", hint)

    def instance_type(self, name: str) -> Unknown | None:
        """Instance types of any cloud."""
        if self._catalog.find_type(name):
            return None
        names = [type_name for _cloud, type_name in self._catalog.types]
        hint = spelling_hint(name, names, otherwise="see `gputier catalog`")
        return Unknown(f" is `{name}`, which is not an instance type in the catalogue", hint)
