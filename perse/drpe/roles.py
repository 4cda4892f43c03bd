"""Who votes: a type of reader and a description of it (DRPE, section 3.1; the descriptions are in our own words).

Static roles look at what most people agree on; dynamic ones are invented for an article (`inventing`); the manual ones are the baseline of the first
version. Real readers as roles are known by their reviews (`readers`). The paper's static roles read summaries of news; where texts are compared as they are,
such as stories, they want of a text what these want of a summary.
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
"""Of summaries of an article, as published."""

STATIC_OF_TEXTS: tuple[Role, ...] = (
    Role(
        type="General Public",
        description="Reads in their free time, and wants a text that is easy to follow and worth the time.",
        source="static",
    ),
    Role(
        type="Critic",
        description="Looks at how a text is written: whether it flows, is clear, and well worded.",
        source="static",
    ),
    Role(
        type="Author",
        description="Writes such texts, and checks that what a text tells holds together from beginning to end.",
        source="static",
    ),
)
"""Of texts that summarize nothing."""

MANUAL_ALONE: tuple[Role, ...] = (
    Role(type="Student", description="Goes to school, and would like to learn about the world.", source="manual"),
    Role(type="Business Person", description="Works for a large company, and looks out for opportunities.", source="manual"),
    Role(type="Politician", description="Stands for election in a country of middle size.", source="manual"),
)
"""What the manual roles have beside the static ones."""


def static_roles(*, summaries: bool) -> tuple[Role, ...]:
    """Args:
    summaries: whether the texts summarize an article, or are compared as they are.
    """
    return STATIC if summaries else STATIC_OF_TEXTS


def manual_roles(*, summaries: bool) -> tuple[Role, ...]:
    """ManualDRPEScore (first version, section 4.1): six, three of which are the static ones."""
    return (*MANUAL_ALONE, *(role.model_copy(update={"source": "manual"}) for role in static_roles(summaries=summaries)))


def each_once(roles: Iterable[Role]) -> tuple[Role, ...]:
    """Each role in its first place; one that is static is static, whoever else names it."""
    found: dict[str, Role] = {}
    for role in roles:
        if role.text not in found or role.source == "static":
            found[role.text] = role
    return tuple(found.values())
