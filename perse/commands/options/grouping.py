"""A command that takes options together: a parameter that is a dataclass of options becomes its fields.

    @dataclass(frozen=True, kw_only=True)
    class Loading:
        dtype: Dtype = "bfloat16"
        context: Context = None

    @grouped
    def ask(*, judge: JudgeName, loading: Loading) -> None:   # --judge, --dtype, --context
        loading.load(judge)

So what several commands share is declared in one place, and handed on as one value. Typer knows options by a function's signature
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
        command(**_gathered(given, groups))

    names = [option.name for option in options]
    if len(set(names)) < len(names):
        raise TypeError(
            f"{command.__name__} has an option twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}"
        )
    flat.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    flat.__annotations__ = {option.name: option.annotation for option in options}
    return flat


def _gathered(given: Mapping[str, Any], groups: Mapping[str, Any]) -> dict[str, Any]:
    """The command's own arguments: those of a group as one value."""
    taken = {field.name for group in groups.values() for field in fields(group)}
    own = {name: value for name, value in given.items() if name not in taken}
    return own | {name: group(**{one.name: given[one.name] for one in fields(group)}) for name, group in groups.items()}


def _options(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name]
        )


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default


def _keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
