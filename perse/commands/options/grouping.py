"""A command that takes options together: a parameter that is a dataclass of options becomes its fields.

    @dataclass(frozen=True, kw_only=True)
    class Loading:
        dtype: Dtype = "bfloat16"
        context: Context = None

    @grouped
    def ask(*, judge: JudgeName, loading: Loading) -> None:   # --judge, --dtype, --context
        loading.load(judge)

A group may hold others. So what several commands share is declared in one place, and handed on as one value. Typer knows options by a function's signature
alone, which is what `grouped` gives it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with every parameter that is a dataclass replaced by the dataclass's fields, in their place.

    Raises:
        TypeError: two of the options would have one name.
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)}
    options = [
        option
        for name, parameter in signature.parameters.items()
        for option in (_options(groups[name]) if name in groups else (_keyword(parameter),))
    ]

    @functools.wraps(command)
    def flat(**given: Any) -> None:
        made = {name: _made(group, given) for name, group in groups.items()}
        command(**{name: made[name] if name in made else given[name] for name in signature.parameters})

    names = [option.name for option in options]
    if len(set(names)) < len(names):
        raise TypeError(
            f"{command.__name__} has an option twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}"
        )
    flat.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    flat.__annotations__ = {option.name: option.annotation for option in options}
    return flat


def _options(group: Any) -> Iterator[inspect.Parameter]:
    for field, annotation in _fields(group):
        if is_dataclass(annotation):
            yield from _options(annotation)
        else:
            keyword = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(field.name, keyword, default=_default(field), annotation=annotation)


def _made(group: Any, given: Mapping[str, Any]) -> Any:
    """The group of what was given for its options."""
    return group(
        **{
            field.name: _made(annotation, given) if is_dataclass(annotation) else given[field.name]
            for field, annotation in _fields(group)
        }
    )


def _fields(group: Any) -> Iterator[tuple[Field[Any], Any]]:
    """The fields with their annotations, which are text in a module that postpones them."""
    hints = get_type_hints(group, include_extras=True)
    return ((field, hints[field.name]) for field in fields(group))


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default


def _keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
