"""Every training setting with its default and its meaning, as a page: what `perse train --settings` prints, and the docs.

There is one source, the line below each field of `TrainConfig`; nothing is written twice.
"""

from __future__ import annotations

from perse.settings.config import described
from perse.settings.training import TrainConfig

COMMAND = "perse train --settings > docs/training-settings.md"
"""What writes the page of the docs anew."""

HEAD = f"""# Settings of training

Each is changed in a recipe (configs/train), or on the command line as `section.name=value`, as in `train.learning_rate=3e-4`.
A setting without a default must be given. This page is printed by `perse train --settings` and written by

```
{COMMAND}
```
"""


def settings_page() -> str:
    """The page as Markdown: a table for each section, settings in the order of the code."""
    parts = [HEAD]
    for each in described(TrainConfig):
        section = each.name if "." not in each.name else None
        if section and each.takes.startswith("a section"):
            default = f" By default {each.default}." if each.default else ""
            parts.append(
                f"\n## {section}\n\n{each.meaning}{default}\n\n| setting | takes | default | meaning |\n|---|---|---|---|\n"
            )
        elif section:
            default = f" By default `{each.default}`." if each.default else ""
            parts.append(f"\n## {section}\n\n{each.meaning} Takes {each.takes}.{default}\n")
        else:
            default = f"`{each.default}`" if each.default else ""
            parts.append(f"| `{each.name}` | {each.takes} | {default} | {each.meaning} |\n")
    return "".join(parts)
