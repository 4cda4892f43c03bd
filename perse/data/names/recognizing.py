"""Recognizes the names in a text, which could give the work away.

Two ways, one result. A trained spaCy pipeline (`en_core_web_sm` or any other) knows names by its training. The default,
"rules", needs no download: spaCy's English tokenizer and sentence splitter, and rules of ours over capitals, titles, first
names and a gazetteer. The rules read one text at a time, so a text's names do not depend on what else is read. They lean
towards finding too much: a name missed gives the work away, a word too many costs a needless replacement.

How well the rules do, against names listed by hand and spelled exactly alike: on 12 unseen film plots
they found 125 of 131 people and places (95%), 114 of them as what they are, and 116 of the 127 people and places that they
named were ones (91%). Those plots then suggested a few corrections (127 of 131, 121 of 130). On the 12 plots that the rules
were written by: 85 of 85, and 85 of 87.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from perse.bounded import first_line
from perse.data.names.capitals import Kind, Name, by_rules, distinct
from perse.data.names.fictional import TITLES
from perse.errors import BadInput
from perse.files.runlog import file_digest
from perse.installing import install

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["Kind", "Name", "Recognizer", "rules_files", "splitter", "version_of"]


@dataclass(frozen=True)
class Recognizer:
    """Finds names; made by `load`. `name` is the method; `digest` changes with everything that affects the result."""

    name: str
    digest: str
    _find: Callable[[Sequence[str]], list[list[Name]]] = field(repr=False, compare=False)

    @classmethod
    def load(cls, name: str = "rules") -> Recognizer:
        """The recognizer called `name`: "rules", or a spaCy pipeline by its package's name or its folder.

        Raises:
            BadInput: spaCy or the pipeline is not installed, or the pipeline finds no names.
        """
        spacy_version = version_of("spacy")
        if name == "rules":
            told = f"rules (spacy {spacy_version})"
            return cls(told, _digest(told), partial(by_rules, splitter()))
        nlp = _trained(name)
        told = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']} (spacy {spacy_version})"
        return cls(told, _digest(told, folder=nlp.path), partial(_by_training, nlp))

    def names(self, texts: Sequence[str]) -> list[list[Name]]:
        """The distinct names of each text, in the order in which they first occur; capitals tell no two names apart."""
        return self._find(texts)


def version_of(package: str) -> str:
    """The installed version of a library of the data extra. Raises BadInput, with the remedy, where it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise BadInput(f"the library {package} is not installed; {install('data')}") from None


def splitter() -> Language:
    """spaCy's English tokenizer and sentence splitter: no model, nothing to download."""
    version_of("spacy")
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.max_length = 100_000_000  # characters; spaCy's own limit is for models, whose memory grows with the text
    return nlp


def rules_files() -> list[Path]:
    """The source files that the rules consist of: their digests say more than a version that somebody must remember to raise."""
    return [Path(__file__).with_name(name) for name in ("capitals.py", "fictional.py", "recognizing.py")]


def _digest(told: str, *, folder: Path | None = None) -> str:
    """sha256 of what decides the names: of a pipeline every file, since its version says nothing of an edit."""
    files = rules_files()
    if folder is not None:
        files += sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return hashlib.sha256(json.dumps([told, *map(file_digest, files)]).encode()).hexdigest()


# --- a trained pipeline

_LABELS: dict[str, Kind] = {
    **dict.fromkeys(("PERSON", "PER"), "person"),
    **dict.fromkeys(("GPE", "LOC", "FAC"), "place"),
    **dict.fromkeys(("ORG", "WORK_OF_ART", "PRODUCT", "EVENT", "MISC"), "other"),
}


def _trained(name: str) -> Language:
    version_of("spacy")
    import spacy

    try:
        nlp = spacy.load(name, disable=["tagger", "parser", "attribute_ruler", "lemmatizer"])  # names need none of these
    except Exception as error:  # noqa: BLE001  # spaCy and its dependencies raise anything for a damaged file
        if "[E050]" in str(error):  # spaCy's code for: no such package, folder or link
            package = name if re.fullmatch(r"[a-z]{2,3}(_[a-z0-9]+)+", name) else "en_core_web_sm"
            raise BadInput(
                f"--ner {name}: no installed spaCy pipeline and no folder has that name; "
                f"python -m spacy download {package}, or give --ner rules"
            ) from None
        raise BadInput(
            f"--ner {name}: spaCy cannot load it ({first_line(error)}); give another pipeline, or --ner rules"
        ) from None
    if not any("doc.ents" in nlp.get_pipe_meta(step).assigns for step in nlp.pipe_names):
        steps = ", ".join(nlp.pipe_names) or "nothing"
        raise BadInput(f"--ner {name}: no step of this pipeline finds names (it has {steps}); give another, or --ner rules")
    return nlp


def _by_training(nlp: Language, texts: Sequence[str]) -> list[list[Name]]:
    return [distinct(_entities(doc)) for doc in nlp.pipe(texts)]


def _entities(doc: Doc) -> Iterator[Name]:
    """The named entities, cut to the name itself; nationalities, dates and numbers are not names."""
    for entity in doc.ents:
        kind = _LABELS.get(entity.label_)
        words = re.sub(r"['\u2019]s?$", "", entity.text.strip()).split()
        while words and words[0].rstrip(".").casefold() in (TITLES if kind == "person" else ("the",)):
            words = words[1:]
        if kind is not None and words:
            yield Name(" ".join(words), kind)
