"""What every declared model shares: closed, frozen, and never speaking pydantic's words.

`Spec` is the base of all models here. Whatever way one is made (`Workload(...)`,
`Workload.model_validate(...)`, inside another model, by a reader) a mistake ends as
`errors.InvalidInput` carrying every problem at once, or, inside `collected()`, as a
`pydantic.ValidationError` whose lines are all complaints of ours, for a reader that knows the
file's positions. That is done by one wrap validator and not by an overridden `__init__`:
pydantic-core runs it on every path, and only the outermost model translates.

Checks that span fields are a model's `cross_checks`. When a field of that model is broken they
still run, on what is left, and those that read a broken field are passed over: so one run reports
all there is to say.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, NoReturn, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from gputier import errors
from gputier.workload import problems
from gputier.workload.complaints import TYPE, complaint, shown, unknown_field, unread_field
from gputier.workload.shapes import as_map

T = TypeVar("T", bound="Spec")

_MOST_GUESSES = 20
"""How many unknown fields of one model get a guess at what was meant; a guess takes 0.1 ms."""

_inside: ContextVar[bool] = ContextVar("gputier_inside_validation", default=False)


class Clash(NamedTuple):
    """Something wrong between fields: where to point, what to say, which fields were read."""

    loc: tuple[str | int, ...]
    complaint: PydanticCustomError
    reads: tuple[str, ...]


@contextmanager
def collected() -> Generator[None]:
    """Inside, a broken model raises pydantic's exception, for the caller to translate."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


class Spec(BaseModel):
    """A closed, frozen model of plain values."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )

    LATER: ClassVar[frozenset[str]] = frozenset()
    """Fields of the design that no release reads yet."""

    ORDERED: ClassVar[frozenset[str]] = frozenset()
    """Lists whose order means something."""

    @classmethod
    def prepared(cls, data: dict[str, Any]) -> dict[str, Any]:
        """The written fields after shorthand was spelt out. Must accept anything as a value."""
        return data

    def cross_checks(self) -> Iterator[Clash]:
        """What is wrong between fields that are each right."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _speak_plainly(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, cls):
            return handler(data)
        if _inside.get():
            return _checked(cls, data, handler)
        try:
            with collected():
                return _checked(cls, data, handler)
        except ValidationError as error:
            raise errors.InvalidInput(problems.translate(error, data)) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """As `model_validate`; text that is no JSON is `InvalidInput` too."""
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            if _inside.get():
                raise
            raise errors.InvalidInput(problems.translate(error, None)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):  # pydantic keeps its own book-keeping and private attributes there
            super().__setattr__(name, value)
        else:
            _refuse_change(self, name)

    def __delattr__(self, name: str) -> None:
        _refuse_change(self, name)


def _refuse_change(model: Spec, name: str) -> NoReturn:
    kind = type(model).__name__
    raise errors.InvalidInput(
        errors.Problem(name, f"a {kind} cannot be changed after it was made", f"make a new {kind}")
    )


def _checked(cls: type[T], data: object, handler: ModelWrapValidatorHandler[T]) -> T:
    written = as_map(data)
    if written is None:
        raise _failed(cls, [_line((), complaint(f" must be a map of fields, not {shown(data)}"))])
    known = cls.model_fields
    lines: list[InitErrorDetails] = []
    fields: dict[str, Any] = {}
    for key, value in written.items():
        if key not in known:
            lines.append(_line((str(key),), _no_field(cls, key, guess=len(lines) < _MOST_GUESSES)))
        elif value is not None:  # `gpu:` with nothing below it declares nothing
            fields[key] = value
    fields = cls.prepared(fields)
    try:
        made = handler(fields)
    except ValidationError as error:
        lines += [_in_our_words(line) for line in error.errors(include_url=False)]
        broken = {loc[0] for line in lines if (loc := line.get("loc"))}
        made = _whole_part(fields, broken, handler)
        clashes = made.cross_checks() if made else ()
        lines += [_line(c.loc, c.complaint) for c in clashes if not broken.intersection(c.reads)]
        raise _failed(cls, lines) from None
    lines += [_line(clash.loc, clash.complaint) for clash in made.cross_checks()]
    if lines:
        raise _failed(cls, lines)
    return made


def _no_field(cls: type[Spec], key: object, *, guess: bool) -> PydanticCustomError:
    if isinstance(key, str) and key in cls.LATER:
        return unread_field(key)
    if not guess:
        return unknown_field(key, ())
    below = [f"{name}.{key}" for name, inner in _parts(cls) if key in inner.model_fields]
    return unknown_field(key, cls.model_fields, below)


def _parts(cls: type[Spec]) -> Iterator[tuple[str, type[Spec]]]:
    """The models that fields of this one hold, by the fields' names."""
    for name, field in cls.model_fields.items():
        waiting: list[Any] = [field.annotation]
        while waiting:
            annotation = waiting.pop()
            if isinstance(annotation, type) and issubclass(annotation, Spec):
                yield name, annotation
            waiting += get_args(annotation)


def _whole_part(
    fields: dict[str, Any], broken: set[str | int], handler: ModelWrapValidatorHandler[T]
) -> T | None:
    """The model made of the fields that are right; None when a required one is not."""
    try:
        return handler({k: v for k, v in fields.items() if k not in broken})
    except ValidationError:
        return None


def _line(loc: tuple[str | int, ...], error: PydanticCustomError) -> InitErrorDetails:
    return InitErrorDetails(type=error, loc=loc, input=None)


def _in_our_words(line: Any) -> InitErrorDetails:
    context = line.get("ctx", {})
    if line["type"] == TYPE:
        error = PydanticCustomError(TYPE, "{before}{after}", context)
    else:
        error = problems.of_pydantic(line["type"], line.get("input"))
    return _line(line["loc"], error)


def _failed(cls: type[Spec], lines: list[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data(cls.__name__, lines, hide_input=True)
