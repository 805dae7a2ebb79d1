"""Keys of the objects that commands print, as the tables of ``docs/commands.md`` have them."""

import json
import re
from pathlib import Path

PAGE = (Path(__file__).parent.parent / "docs" / "commands.md").read_text(encoding="utf-8")
FIT = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])


def keys_of(entry):
    """Keys in the row of an object or of a list, without what it has in other cases."""
    (row,) = re.findall(rf"^\| {re.escape(entry)} \| (.*) \|$", PAGE, re.MULTILINE)
    return re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", row.partition(";")[0]))


def nested_keys(entry, name):
    """Keys in the brackets behind a key of such a row."""
    (row,) = re.findall(rf"^\| {re.escape(entry)} \| (.*) \|$", PAGE, re.MULTILINE)
    return re.findall(r"`(\w+)`", re.search(rf"`{name}` \((.*?)\)", row)[1])
