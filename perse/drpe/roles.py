"""Who votes: a type of reader and a description of it (DRPE, section 3.1; the descriptions are in our own words).

Static roles look at what most people agree on; dynamic ones are invented for an article (`inventing`); the manual ones are the baseline of the first
version. Real readers as roles are known by their reviews (`readers`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import ConfigDict, Field

from perse.strict import Strict

Source = Literal["static", "coarse", "fine", "manual", "reader"]


class Role(Strict):
    """A role, and where it comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str = Field(min_length=1)
    description: str = Field(min_length=1)
    source: Source

    @property
    def text(self) -> str:
        """As it is embedded, and shown."""
        return f"{self.type}: {self.description}"


GENERAL_PUBLIC = Role(
    type="General Public",
    description="Reads the news to keep up with a story, and wants to know what is new in it.",
    source="static",
)
CRITIC = Role(
    type="Critic",
    description="Looks at how a summary is written: whether it flows, is clear, and well worded.",
    source="static",
)
NEWS_AUTHOR = Role(
    type="News Author", description="Checks that a summary says what the article says, and nothing else.", source="static"
)

STATIC: tuple[Role, ...] = (GENERAL_PUBLIC, CRITIC, NEWS_AUTHOR)

MANUAL: tuple[Role, ...] = (
    Role(type="Student", description="Goes to school, and would like to learn about the world.", source="manual"),
    Role(type="Business Person", description="Works for a large company, and looks out for opportunities.", source="manual"),
    Role(type="Politician", description="Stands for election in a country of middle size.", source="manual"),
    *(role.model_copy(update={"source": "manual"}) for role in STATIC),
)
"""ManualDRPEScore (first version, section 4.1)."""


def each_once(roles: Iterable[Role]) -> tuple[Role, ...]:
    """Each role in its first place; one that is static is static, whoever else names it."""
    found: dict[str, Role] = {}
    for role in roles:
        if role.text not in found or role.source == "static":
            found[role.text] = role
    return tuple(found.values())
