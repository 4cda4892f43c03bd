"""Settings of a program: typed, read from YAML, changed by `key=value`, refused in plain words.

A recipe is a YAML file of configs/KIND (packaged with perse); overrides are dotted keys, as in `train.learning_rate=3e-4`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import AfterValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from perse.addresses import is_address
from perse.errors import BadInput
from perse.formats.yaml_text import parsed, read_yaml
from perse.strict import Strict


class Section(Strict):
    """A group of settings. A field that is another `Section` is written as `section.field`; the line below a field says what it
    means, here and to the user (`described`)."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)
    number_as_text: ClassVar[bool] = True


def _local(path: str | None) -> str | None:
    """A path as it was given. What stands in an address may be a password, so none of it is repeated.

    Raises:
        PydanticCustomError: it is an address, or nothing that can be a path.
    """
    if path and is_address(path):
        raise PydanticCustomError(_NO_PATH, "is an address, expected a path on this machine; give a file or a folder here")
    if path and "\0" in path:
        raise PydanticCustomError(_NO_PATH, "holds a NUL character, which no path can; give a path without it")
    return path


LOCAL = AfterValidator(_local)
"""Of a setting that is a path: `Annotated[str, LOCAL]`."""

_NO_PATH = "no_path"

Settings = TypeVar("Settings", bound=Section)


def load_settings(kind: type[Settings], path: str | Path, overrides: Sequence[str], *, recipes: dict[str, Path]) -> Settings:
    """The file at `path` (or the recipe of that name) with `key=value` overrides.

    Raises:
        BadInput: every problem at once: unknown keys with the nearest right name, wrong values, missing keys.
    """
    file = named_recipe(path, recipes)
    settings = read_yaml(file)
    if not isinstance(settings, dict):
        raise BadInput(f"{file} holds no settings; expected {', '.join(kind.model_fields)}")
    for override in overrides:
        _override(settings, override, kind)
    problems = [_unknown(key, kind) for key in _dotted(settings) if not _is_known(key, kind)]
    if problems:
        raise BadInput("; ".join(problems))
    for name, field in kind.model_fields.items():  # so that missing fields in them are named
        if field.is_required() and _section(field.annotation):
            settings.setdefault(name, {})
    try:
        return kind.model_validate(settings)
    except ValidationError as error:
        raise BadInput(f"{file}: " + "; ".join(_problem(e, kind) for e in error.errors(include_url=False))) from None


def packaged_recipes(kind: str) -> dict[str, Path]:
    """The recipes of configs/`kind` by name: inside an installed perse, or beside it in a checkout."""
    inside = Path(str(files("perse"))) / "configs" / kind
    beside = Path(str(files("perse"))).parent / "configs" / kind
    folder = inside if inside.is_dir() else beside
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def known_keys(kind: type[Section]) -> tuple[str, ...]:
    """Every setting's dotted name, sections included."""
    names: list[str] = []
    for name, field in kind.model_fields.items():
        section = _section(field.annotation)
        names += [name, *(f"{name}.{inner}" for inner in section.model_fields)] if section else [name]
    return tuple(names)


@dataclass(frozen=True)
class Described:
    """A setting to be read by a person: its dotted name, what it may be, what it is by default (nothing where it must be
    given), and what it means."""

    name: str
    takes: str
    default: str
    meaning: str


def described(kind: type[Section]) -> Iterator[Described]:
    """Every setting of `kind`, a section before what is in it."""
    for name, field in kind.model_fields.items():
        inner, takes = _section(field.annotation), _takes(field.annotation)
        default = "" if field.is_required() else _as_yaml(field.get_default(call_default_factory=True))
        yield Described(name, takes, default, " ".join((field.description or "").split()))
        for each in described(inner) if inner else ():
            yield replace(each, name=f"{name}.{each.name}")


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "null"}


def _takes(annotation: Any) -> str:
    """A type in words; choices by their own names."""
    if get_origin(annotation) is Literal:
        return " or ".join(map(str, get_args(annotation)))
    if get_origin(annotation) is tuple:
        return f"a list of {_entry(annotation)}"
    if get_origin(annotation) is Annotated:  # inside a union, where pydantic leaves it
        return _takes(get_args(annotation)[0])
    if get_origin(annotation) is dict:
        return "a mapping"
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "a section"
    if annotation in _WORDS:
        return _WORDS[annotation]
    return " or ".join(_takes(each) for each in get_args(annotation))


def _entry(listed: Any) -> str:
    each = get_args(listed)[0]
    return f"{{{', '.join(each.model_fields)}}}" if _section(each) else _takes(each)


def _as_yaml(value: Any) -> str:
    if isinstance(value, Section):
        return "as below"
    if isinstance(value, tuple):
        value = list(value)
    return str(yaml.safe_dump(value, default_flow_style=True)).removesuffix("...\n").strip()


def _section(annotation: Any) -> type[Section] | None:
    candidates = (annotation,) if get_origin(annotation) is tuple else (annotation, *get_args(annotation))
    return next((kind for kind in candidates if isinstance(kind, type) and issubclass(kind, Section)), None)


def _is_known(key: str, kind: type[Section]) -> bool:
    if key in known_keys(kind):
        return True
    field = kind.model_fields.get(key.partition(".")[0])  # a mapping has keys of the user's own
    return field is not None and get_origin(field.annotation) is dict


def named_recipe(path: str | Path, recipes: dict[str, Path]) -> Path:
    """The file at `path`, or the recipe of that name.

    Raises:
        BadInput: there is neither.
    """
    given = Path(path)
    if given.is_file():
        return given
    name = given.name.removesuffix(".yaml")
    if name in recipes and (len(given.parts) == 1 or given.parts[:2] == ("configs", recipes[name].parent.name)):
        return recipes[name]
    raise BadInput(f"there is no config file {given}; packaged recipes are {', '.join(sorted(recipes))}")


def _override(settings: dict[str, Any], override: str, kind: type[Section]) -> None:
    key, equals, value = override.partition("=")
    if not equals:
        raise BadInput(f"'{override}' is no setting; write key=value, as in {next(iter(known_keys(kind)))}=...")
    if not _is_known(key, kind):
        raise BadInput(_unknown(key, kind))
    try:
        found = parsed(value)
    except ValueError:  # text, which its setting may take or not
        found = value
    if isinstance(found, dict) and not value.lstrip().startswith("{"):
        found = value  # text with a colon, such as an address, and no mapping
    section, _, name = key.partition(".")
    if not name:
        settings[section] = found
        return
    inner = settings.get(section)
    settings[section] = {**(inner if isinstance(inner, dict) else {}), name: found}


def _dotted(settings: dict[str, Any]) -> Iterator[str]:
    for section, inner in settings.items():
        yield str(section)
        if isinstance(inner, dict):
            yield from (f"{section}.{name}" for name in inner)


def _unknown(key: str, kind: type[Section]) -> str:
    known = known_keys(kind)
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5) or [
        name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]
    ]
    hint = f"did you mean '{near[0]}'?" if near else f"settings are {', '.join(known)}"
    return f"there is no setting '{key}'; {hint}"


def _problem(error: Any, kind: type[Section]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"setting '{where}' is missing; give {where}=..."
    if error["type"] in ("tuple_type", "model_type") and (listed := _list_at(error["loc"], kind)):
        return f"{where}: found {_shortened(error['input'])}, expected {listed}"
    if error["type"] == "extra_forbidden" and (listed := _list_at(error["loc"][:-1], kind)):
        return f"there is no setting '{where}'; expected {listed}"
    if error["type"] == _NO_PATH:
        return f"{where} {error['msg']}"
    message = error["msg"].removeprefix("Value error, ")
    if (
        where and error["type"] == "value_error" and isinstance(error["input"], Mapping)
    ):  # of a whole section, which says what it found
        return f"{where}: {message}"
    return f"{where}: {message[0].lower()}{message[1:]}, found {_shortened(error['input'])}" if where else message


def _list_at(place: Sequence[str | int], kind: type[Section]) -> str | None:
    """In words, what the list is that stands at `place` such as (data, mix), or its entry, as at (data, mix, 0)."""
    names = [part for part in place if isinstance(part, str)]
    inner: Any = kind
    for name in names:
        section = _section(inner)
        if section is None or name not in section.model_fields:
            return None
        inner = section.model_fields[name].annotation
    if get_origin(inner) is not tuple:
        return None
    return _takes(inner) if len(names) == len(place) else _entry(inner)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
