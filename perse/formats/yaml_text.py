"""YAML that a person or a stranger wrote, read in one place: plain values only, and one sentence about bad YAML.

Anchors and aliases are refused: a few lines of them stand for more values than any memory holds, and no setting needs them. So is a
key that is given twice, of which YAML would keep the last. Dates are texts, since no setting is one and a folder may be called 2026-11-23.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from perse.errors import BadInput
from perse.formats.plain_files import refuse_endless, refuse_larger

DEEPEST = 50
"""Lists and mappings within each other; the deepest settings of ours have 3."""
LONGEST_NUMBER = 100
"""Characters."""
LARGEST = 1 << 20
"""Bytes of a file; those of ours have some KB, and a megabyte takes seconds to read."""
_DATE = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012  # as its base class has it
        first: [(tag, pattern) for tag, pattern in known if tag != _DATE]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _refused("aliases (*name) are not read; write the value out", event.start_mark)
        if self.depth > DEEPEST:
            raise _refused(f"lists or mappings are nested more than {DEEPEST} deep", event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def flatten_mapping(self, node: Any) -> None:
        seen: set[object] = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in seen:
                raise _refused(f"'{key.value}' is given twice; keep one", key.start_mark)
            seen.add(name)
        super().flatten_mapping(node)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            if node.tag == "tag:yaml.org,2002:int" and len(str(node.value)) > LONGEST_NUMBER:
                raise ValueError
            return super().construct_object(node, deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError):
            value = str(node.value)
            shown = value if len(value) <= 40 else value[:37] + "..."
            raise _refused(f"'{shown}' is no {node.tag.rpartition(':')[2]}", node.start_mark) from None


def parsed(text: str) -> Any:
    """The value of one YAML document.

    Raises:
        ValueError: it is not YAML, or has aliases or is nested too deeply; the message says why and, of more lines than one, in which.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None and "\n" in text.strip() else ""
        raise ValueError(where + " ".join(str(error.problem or error.context or "not YAML").split())) from None
    except (ArithmeticError, ValueError):  # of chr(), in the scanner
        raise ValueError("an escape (\\U...) stands for no character") from None
    except yaml.YAMLError as error:  # a character that YAML does not have
        raise ValueError(" ".join(str(error).split())) from None


def read_yaml(file: Path) -> Any:
    """What a YAML file holds.

    Raises:
        BadInput: it cannot be read; the message names the line.
    """
    try:
        refuse_endless(file)
        refuse_larger(file, file.stat().st_size, most=LARGEST, remedy="give a file of settings")
        return parsed(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{file} cannot be read ({error.strerror or error}); give a file that you may read") from None
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8; save it as UTF-8") from None
    except ValueError as error:
        raise BadInput(f"{file} is not YAML ({error}); correct it") from None


def _refused(why: str, mark: Any) -> ConstructorError:
    return ConstructorError(None, None, why, mark)
