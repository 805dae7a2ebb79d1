"""An engine that holds tables: it selects columns and rows, and returns batches of Arrow."""

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, NoReturn

from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.edge_columns import Chosen as EdgeColumns
from lightning_dpg.formats.edge_columns import choose
from lightning_dpg.graph.node_names import GraphFormatError

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


class Chosen(NamedTuple):
    """What is read of a table.

    Attributes:
        table: Name of the table, or None where the source is one.
        relation: The table in SQL.
        types: Type of each column in Arrow, by its name.
        columns: Columns that are read.
        where: Condition that rows must fulfill, in SQL with parentheses around it; or None.
        place: Name of the table for an error.
    """

    table: str | None
    relation: str
    types: dict[str, str]
    columns: EdgeColumns
    where: str | None
    place: str

    @property
    def read(self) -> list[str]:
        """Names of the columns that are read: both ids, then amounts and times."""
        return [self.columns.names[place] for place in self.columns.read]


class TableEngine(ABC):
    """A connection that only reads.

    Attributes:
        grammar: Name of the SQL dialect for sqlglot.
        failures: Classes of the engine's errors.
        ways: Way out of an error, by a part of its text.
        origin: Place that errors name, without a password.
        relation: The only relation of a source without tables, such as a file, in SQL; else None.
        known_columns: Names of the columns seen so far, for an error.
    """

    grammar: ClassVar[str]
    failures: tuple[type[Exception], ...] = ()
    ways: ClassVar[Mapping[str, str]] = {}

    def __init__(self, origin: str, relation: str | None = None) -> None:
        self.origin = origin
        self.relation = relation
        self.known_columns: list[str] = []

    @abstractmethod
    def _batches(self, sql: str) -> Iterator[Any]:
        """Run a query; return batches of Arrow."""

    @abstractmethod
    def tables(self) -> list[str]:
        """Return the names of the tables."""

    def batches(self, sql: str) -> Iterator[Any]:
        """Run a query; return batches of Arrow, and name the place of a failure."""
        with self._explained():
            yield from self._batches(sql)

    def arrow(self, sql: str) -> Any:
        """Return all rows of a query, which has some, as a table of Arrow."""
        import pyarrow  # of the extra 'tables'

        return pyarrow.Table.from_batches(self.batches(sql))

    def chosen(self, table: str | None, columns: Columns, where: str | None) -> Chosen:
        """Choose the columns and rows of a table.

        Args:
            table: Name of the table, or None where the source is one.
            columns: Columns of ids, amounts and times.
            where: Condition in SQL that rows must fulfill, or None.

        Raises:
            GraphFormatError: If there are none, or if the condition looks at other rows.
        """
        if table is None and self.relation is None:
            raise GraphFormatError(
                f"{self.origin}: table is not set\nit holds {', '.join(self.tables()[:8]) or 'none'}"
            )
        if table is not None and self.relation is not None:
            raise GraphFormatError(f"{self.origin}: table {table!r} is for databases: leave it out")
        relation = self.relation or self.table(str(table))
        types = self.columns(relation, table)
        place = self.origin if table is None else f"{self.origin}: table {table}"
        found = choose(place, list(types), columns)
        condition = None if where is None else self.predicate(where, relation)
        return Chosen(table, relation, types, found, condition, place)

    def rows(self, chosen: Chosen, names: Mapping[str, str]) -> str:
        """Return the SQL of the chosen rows.

        Args:
            chosen: What is read.
            names: New name of each column.
        """
        cells = []
        for name, new in names.items():
            cell = self.column(name)
            if re.search(
                "uuid|numeric", chosen.types[name]
            ):  # Arrow has bytes and texts of its own
                cell = f"CAST({cell} AS VARCHAR)"
            cells.append(f"{cell} AS {self.column(new)}")
        condition = "" if chosen.where is None else f" WHERE {chosen.where}"
        return f"SELECT {', '.join(cells)} FROM {chosen.relation}{condition}"

    def read(self, chosen: Chosen) -> list[Any]:
        """Read the chosen rows as columns of Arrow: both ids, then amounts and times.

        Raises:
            GraphFormatError: If there are none.
        """
        import pyarrow

        sql = self.rows(chosen, {name: name for name in chosen.read})
        batches = [batch for batch in self.batches(sql) if batch.num_rows]
        if not batches:
            raise no_rows(chosen)
        return list(pyarrow.Table.from_batches(batches).columns)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an engine's error into one that names the place."""
        try:
            yield
        except self.failures as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        """Refuse a table by an engine's error, whose text may hold cells and is not shown."""
        text = " ".join(str(error).split())
        if match := re.search(r"permission denied[\w ]*|not authorized", text, re.IGNORECASE):
            raise GraphFormatError(
                f"{self.origin}: {match[0]}\nask its owner for the right to read (GRANT SELECT)"
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
        signs = (way for sign, way in self.ways.items() if sign in text)
        way = next(signs, "read the table with another program, whose message may hold cells of it")
        raise GraphFormatError(
            f"{self.origin}: the engine cannot read it ({type(error).__name__})\n{way}"
        ) from None

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

    def table(self, name: str) -> str:
        """Return the quoted name of a table."""
        import sqlglot  # of the extra 'tables'

        try:
            return sqlglot.exp.to_table(name, dialect=self.grammar).sql(self.grammar, identify=True)
        except sqlglot.errors.SqlglotError:
            raise GraphFormatError(f"table {name!r} is no name of a table") from None

    def column(self, name: str) -> str:
        """Return the quoted name of a column."""
        import sqlglot

        return sqlglot.exp.column(name, quoted=True).sql(self.grammar)

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
            parsed = sqlglot.parse(f"SELECT 1 WHERE ({text})", dialect=self.grammar)
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
        tables = _names_of(relation, self.grammar)
        for column in where.find_all(exp.Column):
            names = [part.name.casefold() for part in column.parts]
            if not _is_column(names, columns, tables):
                raise GraphFormatError(
                    f"{self.origin}: no column {column.name!r}\n"
                    f"{nearest(column.name, self.known_columns)}"
                )
        return str(where.this.sql(self.grammar))


def no_rows(chosen: Chosen) -> GraphFormatError:
    """Return the error of a table without rows."""
    reason = "no rows" if chosen.where is None else f"where {chosen.where} matches no row"
    return GraphFormatError(f"{chosen.place}: {reason}\nexpected two node ids per row")


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
