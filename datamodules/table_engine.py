"""An engine that holds tables: it runs SQL where the data are and returns Arrow batches."""

import difflib
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.node_names import GraphFormatError

ASCII_SPACES = "".join(chr(code) for code in range(128) if chr(code).isspace())
SPACES = ASCII_SPACES + "\u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000"
SPACES += "".join(chr(code) for code in range(0x2000, 0x200B))
_MISSING_TABLE = r"does not exist|TABLE_OR_VIEW_NOT_FOUND|not exist.*relation"
_MISSING_COLUMN = (
    r'column "?([^"]+?)"? does not exist|Referenced column "([^"]+)" not found|'
    r"UNRESOLVED_COLUMN.*? with name (\S+) cannot be resolved"
)
_OF_ONE_ROW = frozenset(
    {
        *("Where", "Paren", "And", "Or", "Not", "Xor", "EQ", "NEQ", "GT", "GTE", "LT", "LTE"),
        *("NullSafeEQ", "NullSafeNEQ", "Is", "In", "Between", "Any", "All", "Tuple", "Array"),
        *("Like", "ILike", "SimilarTo", "RegexpLike", "RegexpILike", "Glob", "Escape"),
        *("Column", "Identifier", "Dot", "Bracket", "Literal", "Boolean", "Null", "Var"),
        *("JSONExtract", "JSONExtractScalar", "JSONPath", "JSONPathRoot", "JSONPathKey"),
        *("JSONPathSubscript", "StructExtract", "ArrayContains", "ArraySize"),
        *("Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "Pow", "Neg", "BitwiseAnd", "BitwiseOr"),
        *("BitwiseXor", "BitwiseNot", "BitwiseLeftShift", "BitwiseRightShift"),
        *("Abs", "Ceil", "Floor", "Round", "Trunc", "Sign", "Sqrt", "Exp", "Ln", "Log"),
        *("Cast", "TryCast", "DataType", "DataTypeParam", "ToChar", "ToNumber"),
        *("Case", "If", "Coalesce", "Nullif", "Greatest", "Least"),
        *("DPipe", "Concat", "ConcatWs", "Lower", "Upper", "Trim", "Length", "Left", "Right"),
        *("Substring", "StrPosition", "StartsWith", "EndsWith", "Contains", "Replace", "Reverse"),
        *("Split", "SplitPart", "RegexpExtract", "RegexpReplace", "Pad", "Repeat", "Initcap"),
        *("MD5", "SHA", "SHA2", "Unicode", "Chr", "Ascii"),
        *("Extract", "Interval", "IntervalSpan", "AtTimeZone", "Date", "Time", "Timestamp"),
        *("Year", "Quarter", "Month", "Week", "WeekOfYear", "Day", "DayOfMonth", "DayOfWeek"),
        *("DayOfYear", "Hour", "Minute", "Second", "LastDay", "TsOrDsToDate", "TsOrDsAdd"),
        *("TsOrDsDiff", "DateTrunc", "TimestampTrunc", "DateAdd", "DateSub", "DateDiff"),
        *("TimestampAdd", "TimestampSub", "TimestampDiff", "StrToDate", "StrToTime", "TimeToStr"),
        *("StrToUnix", "TimeToUnix", "UnixToTime", "DateFromParts", "TimestampFromParts"),
        *("CurrentDate", "CurrentTime", "CurrentTimestamp", "Localtimestamp"),
    }
)
"""Classes of sqlglot whose value follows from one row; no other part is accepted."""
_LOST = (
    r"server closed the connection|terminating connection|connection is lost|not open|Py4JNetwork"
)


class TableEngine(ABC):
    """A connection that only reads, with named queries that other queries can refer to.

    Attributes:
        dialect: Name of the SQL dialect for Ibis.
        grammar: Name of the dialect for sqlglot, if it is another one.
        group: First group of a regular expression in its replacement.
        failures: Classes of the engine's errors.
        order: Suffix of text that makes it compare by code points.
        is_cluster: Whether several machines compute, and results are in memory as a whole.
        is_within_process: Whether the engine computes in this process, so that rows come at no cost.
        spaces: Characters around a text id that are no part of it, as in files.
        origin: Place that errors name, without a password.
        relation: The only relation of a source without tables, such as a file, in SQL; else None.
        known_columns: Names of the columns seen so far, for an error.
    """

    dialect: ClassVar[str]
    grammar: ClassVar[str | None] = None
    group: ClassVar[str] = r"\1"
    order: ClassVar[str] = ""
    is_cluster: ClassVar[bool] = False
    is_within_process: ClassVar[bool] = False
    spaces: ClassVar[str] = SPACES
    failures: tuple[type[Exception], ...] = ()

    def __init__(self, origin: str, relation: str | None = None) -> None:
        self.origin = origin
        self.relation = relation
        self.known_columns: list[str] = []
        self._queries: dict[str, str] = {}
        self._mark = uuid.uuid4().hex[:12]

    @abstractmethod
    def _batches(self, sql: str) -> Iterator[Any]:
        """Run a query; return batches of Arrow."""

    @abstractmethod
    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Put public columns into a temporary table: whole numbers, or text as objects."""

    @abstractmethod
    def tables(self) -> list[str]:
        """Return the names of the tables."""

    def _own_name(self, name: str) -> str:
        """Return a name that neither the user nor another engine gives."""
        return f"lightning_dpg_{self._mark}_{name}"

    def define(self, name: str, sql: str, *, keep: bool = False) -> None:
        """Give a query a name; ``keep`` says that its rows are needed several times."""
        self._queries[name] = f"({sql})"

    def expect(self, num_rows: int) -> None:  # noqa: B027  # servers have nothing to adapt
        """Adapt to the number of rows of a table, if the engine runs in this process."""

    def complete(self, sql: str) -> str:
        """Put the named queries in front of a query."""
        own = ", ".join(f"{name} AS {query}" for name, query in self._queries.items())
        if not own:
            return sql
        is_more = sql.startswith("WITH ")
        return f"WITH {own}, {sql[5:]}" if is_more else f"WITH {own} {sql}"

    def batches(self, sql: str) -> Iterator[Any]:
        """Run a query; return batches of Arrow, and name the place of a failure."""
        with self._explained():
            yield from self._batches(self.complete(sql))

    def row(self, sql: str) -> list[Any]:
        """Return the only row of a query."""
        (only_row,) = (row for batch in self.batches(sql) for row in batch.to_pylist())
        return list(only_row.values())

    def arrow(self, sql: str) -> Any:
        """Return all rows of a query as a table of Arrow."""
        import pyarrow  # of the extra 'tables'

        return pyarrow.Table.from_batches(self.batches(sql))

    def numbers(self, sql: str, count: int) -> NDArray[np.int64]:
        """Return ``count`` rows of whole numbers of a query, shape ``(count, columns)``."""
        place, rows = 0, np.empty((count, 0), dtype=np.int64)
        for batch in self.batches(sql):
            if not rows.shape[1]:
                rows = np.empty((count, batch.num_columns), dtype=np.int64)
            for column in range(batch.num_columns):
                values = batch.column(column).to_numpy(zero_copy_only=False)
                rows[place : place + batch.num_rows, column] = values
            place += batch.num_rows
        if place != count:
            raise GraphFormatError(
                f"{self.origin}: the table changed while it was read\nread it again"
            )
        return rows

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an engine's error into one that names the place."""
        try:
            yield
        except self.failures as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        text = " ".join(str(error).split())
        if re.search(r"permission denied|not authorized", text, re.IGNORECASE):
            match = re.search(r"permission denied[\w ]*", text, re.IGNORECASE)
            reason = match[0] if match else "permission denied"
            right = "make temporary tables (GRANT TEMPORARY)"
            if "temporary" not in reason:
                right = "read (GRANT SELECT)"
            raise GraphFormatError(
                f"{self.origin}: {reason}\nask its owner for the right to {right}"
            ) from None
        column = re.search(_MISSING_COLUMN, text)
        if column is not None and self.known_columns:
            name = next(filter(None, column.groups())).strip("`")
            raise GraphFormatError(
                f"{self.origin}: no column {name!r}\n{nearest(name, self.known_columns)}"
            ) from None
        if re.search(_LOST, text):
            raise GraphFormatError(
                f"{self.origin}: the connection ended while the table was read\nread it again"
            ) from None
        text = re.split(r" LINE \d+:| Query was:|;? \[SQL| SQLSTATE:", text)[0]
        raise GraphFormatError(f"{self.origin}: {text[:200]}") from None

    def columns(self, relation: str, name: str | None) -> dict[str, str]:
        """Return the columns of a relation and their types in Arrow.

        Args:
            relation: The relation in SQL.
            name: Name of the table for an error.
        """
        try:
            batches = list(self._batches(f"SELECT * FROM {relation} LIMIT 1"))
        except self.failures as error:
            text = str(error)
            if name is not None and re.search(_MISSING_TABLE, text):
                raise GraphFormatError(self._unknown_table(name)) from None
            self._refuse(error)
        (schema,) = {batch.schema for batch in batches[:1]} or {None}
        if schema is None:
            place = self.origin if name is None else f"{self.origin}: table {name!r}"
            raise GraphFormatError(f"{place}: no rows\nexpected rows of node ids")
        self.known_columns += schema.names
        return {field.name: str(field.type) for field in schema}

    def _unknown_table(self, name: str) -> str:
        tables = self.tables()
        near = difflib.get_close_matches(name, tables, n=3) or tables[:5]
        hint = (
            f"did you mean {' or '.join(near)}?" if near else "it holds no table that you may read"
        )
        return f"{self.origin}: no table {name!r}\n{hint}"

    @property
    def _grammar(self) -> str:
        return self.grammar or self.dialect

    def table(self, name: str) -> str:
        """Return the quoted name of a table."""
        import sqlglot  # of the extra 'tables'

        try:
            return sqlglot.exp.to_table(name, dialect=self._grammar).sql(
                self._grammar, identify=True
            )
        except sqlglot.errors.SqlglotError:
            raise GraphFormatError(f"table {name!r} is no name of a table") from None

    def column(self, name: str) -> str:
        """Return the quoted name of a column."""
        import sqlglot

        return sqlglot.exp.column(name, quoted=True).sql(self._grammar)

    def predicate(self, text: str, relation: str) -> str:
        """Check that a condition is one expression that decides on each row by this row alone.

        One edge would otherwise decide on others, and the sensitivities of all counts would be
        larger than those that are booked.

        Args:
            text: The condition.
            relation: The relation of the rows in SQL.
        """
        import sqlglot
        from sqlglot import exp

        try:
            parsed = sqlglot.parse(f"SELECT 1 WHERE ({text})", dialect=self._grammar)
        except sqlglot.errors.SqlglotError:
            parsed = []
        parts = {key for each in parsed if each for key, value in each.args.items() if value}
        if not text.strip() or len(parsed) != 1 or parts != {"expressions", "where"}:
            raise GraphFormatError(
                f"where {text!r} is no condition in SQL\n"
                "expected one expression, such as: amount > 100 AND year = 2024"
            )
        where = parsed[0].args["where"]
        if any(type(part).__name__ not in _OF_ONE_ROW for part in where.walk()):
            raise GraphFormatError(
                f"where {text!r} reads other rows, draws at random or calls an unknown function\n"
                "expected a condition on the columns of one row: one edge must not decide on others\n"
                "for other functions of one row make a view, and read the view"
            )
        # Engines have columns of their own, such as rowid, that count the rows before a row.
        columns = {name.casefold() for name in self.known_columns}
        tables = _names_of(relation, self._grammar)
        for column in where.find_all(exp.Column):
            names = [part.name.casefold() for part in column.parts]
            if not _is_column(names, columns, tables):
                raise GraphFormatError(
                    f"{self.origin}: no column {column.name!r}\n"
                    f"{nearest(column.name, self.known_columns)}"
                )
        return str(where.this.sql(self._grammar))


def _names_of(relation: str, grammar: str) -> list[str]:
    """Return the names by which a condition can call a relation, such as schema and table."""
    from sqlglot import exp, parse_one

    if alias := re.search(r" AS (\w+)$", relation):
        return [alias[1].casefold()]
    # A function that reads files gives its own name to their rows.
    parts = parse_one(relation, into=exp.Table, dialect=grammar).parts
    names = (part.sql_name() if isinstance(part, exp.Func) else part.name for part in parts)
    return [name.casefold() for name in names]


def _is_column(names: Sequence[str], columns: Iterable[str], tables: Sequence[str]) -> bool:
    """Return whether a dotted name can only be a known column, or a field of one.

    The first part is the relation in all engines if it can be, and a column only if it cannot.

    Args:
        names: Parts of the name, such as table and column, or column and field.
        columns: Names of the columns.
        tables: Names of the relation, such as schema and table.
    """
    if len(names) == 1 or tables[-1] not in names[:-1]:
        return names[0] in columns and (len(names) == 1 or names[0] not in tables)
    behind = [k + 1 for k, name in enumerate(names[:-1]) if name == tables[-1]]
    return all(names[place] in columns for place in behind)


def written(name: str) -> str:
    """Return a name as a user writes it: in quotes where SQL needs them."""
    return name if re.fullmatch(r"\w+", name) else '"' + name.replace('"', '""') + '"'


def nearest(name: str, names: Sequence[str]) -> str:
    """Return the nearest of known names, or all of them, for an error."""
    near = [other for other in names if other.casefold() == name.casefold()]
    near = near or difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(names)}"
