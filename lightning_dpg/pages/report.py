"""What a measurement has found: one value, which is text, a page, JSON and CSV."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lightning_dpg.formats.whole_files import write_whole
from lightning_dpg.metrics.figures import Pictures, plot
from lightning_dpg.pages.charts import inlined
from lightning_dpg.pages.page import Table, render
from lightning_dpg.tables import as_csv, as_data_frame, as_json, strict

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.figure import Figure


class Report(ABC):
    """Result of a measurement; ``str(report)`` is a text for people. Its numbers are not private.

    Attributes:
        title: Heading of its page.
        not_private: Sentence on what was read.
        columns: Columns of the file of numbers and of the DataFrame.
    """

    title: ClassVar[str]
    not_private: ClassVar[str] = "not private: the numbers were computed from the real graph"
    columns: ClassVar[Sequence[str]] = ("name", "value")

    @property
    @abstractmethod
    def values(self) -> dict[str, Any]:
        """All numbers as plain values, by name."""

    @abstractmethod
    def sections(self) -> Sequence[Table]:
        """Return tables for people, in their order."""

    def pictures(self) -> Pictures:
        """Return the pictures by kind; by default there are none."""
        return {}

    def plot(self, kind: str | None = None) -> "Figure":
        """Draw the pictures of a kind.

        Args:
            kind: A kind such as ``"degrees"``; by default the first two. A wrong one is refused with
                the list of all.

        Returns:
            A figure of matplotlib, which a notebook shows and ``savefig`` writes. It is not private.

        Raises:
            CommandError: If the kind is not there.
        """
        return plot(self.pictures(), kind, f"this {type(self).__name__}")

    def records(self) -> Iterable[Sequence[Any]]:
        """Return a row for each number."""
        return _leaves("", self.values)

    def text(self) -> str:
        """Return all tables as text for a terminal, and a reminder that they are not private."""
        lines = [line for table in self.sections() for line in (*table.lines(), "")]
        return "\n".join([*lines, self.not_private])

    def __repr__(self) -> str:
        """Return the text, as ``str`` does."""
        return self.text()

    def to_json(self) -> str:
        """Return all numbers as strict JSON, with null for nan."""
        return as_json(strict(self.values))

    def to_csv(self, path: str | Path) -> None:
        """Write all numbers as a file of a row per number.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self._csv())

    def to_html(self, path: str | Path) -> None:
        """Write one page that works without a network.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self.to_html_text())

    def to_html_text(self) -> str:
        """Return the text of the page of :meth:`to_html`."""
        return render("tables", self._parts())

    def _repr_html_(self) -> str:
        """Show the tables in a notebook, without styles of their own."""
        return render("notebook", self._parts())

    def _parts(self) -> dict[str, Any]:
        """Return what the templates show."""
        parts = {"title": self.title, "warning": self.not_private, "tables": self.sections()}
        parts["pictures"] = inlined(self.pictures())
        return parts | {"csv": self._csv(), "json": self.to_json()}

    def to_dataframe(self) -> Any:
        """Return a row for each number, as a DataFrame of pandas.

        ``to_latex`` of the DataFrame prints a table for a paper.

        Raises:
            CommandError: If pandas is not installed.
        """
        return as_data_frame(self.columns, self.records())

    def _csv(self) -> str:
        return as_csv(self.columns, map(strict, self.records()))


def _leaves(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """Yield each number by its place, such as ``link_stealing.0.release.auc.value``."""
    if isinstance(values, dict | list | tuple):
        items = values.items() if isinstance(values, dict) else enumerate(values)
        for key, value in items:
            yield from _leaves(f"{name}.{key}" if name else str(key), value)
    else:
        yield name, values
