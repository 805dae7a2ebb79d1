"""Roles of reStructuredText in Markdown: formulas as MathML, names of classes as links.

MathML needs no script and no font from the network: browsers draw it themselves.
"""

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

_ROLE = r":(math|class|func|meth|attr|data|exc|mod):`([^`]+)`"
# Before backticks (190) and escapes (180), which would read the text of a role.
_PRIORITY = 195


class RoleExtension(Extension):  # type: ignore[misc]  # Markdown ships no types
    """Markdown with roles, such as ``:math:`` and ``:class:``.

    Args:
        anchors: Heading of each name that has one, by the name without its module.
    """

    def __init__(self, anchors: Mapping[str, str]) -> None:
        super().__init__()
        self.anchors = anchors

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the pattern."""
        md.inlinePatterns.register(_Role(md, self.anchors), "role", _PRIORITY)


class _Role(InlineProcessor):  # type: ignore[misc]  # Markdown ships no types
    """Replaces one role.

    Args:
        md: The converter.
        anchors: Heading of each name that has one.
    """

    def __init__(self, md: Markdown, anchors: Mapping[str, str]) -> None:
        super().__init__(_ROLE, md)
        self.anchors = anchors

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element | str, int, int]:
        """Formula, or name in code that links to its heading."""
        role, text = m.group(1), " ".join(m.group(2).split())
        if role == "math":
            return self.md.htmlStash.store(formula(text)), m.start(0), m.end(0)
        return named(text.removeprefix("~"), self.anchors), m.start(0), m.end(0)


def formula(text: str) -> str:
    """A formula of TeX as MathML."""
    # A bar of a norm or a size stands close to its content; browsers space it like a relation.
    return re.sub(
        r"<mo([^>]*)>(&#x0007C;|&#x02016;)", r'<mo lspace="0" rspace="0"\1>\2', convert(text)
    )


def named(text: str, anchors: Mapping[str, str]) -> Element:
    """A name in code, with a link where it has a heading.

    Args:
        text: Name, with or without its module.
        anchors: Heading of each name that has one.
    """
    short = text.rpartition(".")[2]
    code = Element("code")
    code.text = AtomicString(short)  # underscores are no emphasis
    if short not in anchors:
        return code
    link = Element("autoref", {"identifier": anchors[short]})
    link.append(code)
    return link
