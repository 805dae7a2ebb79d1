import functools
import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def _compiled_once():
    """SQL of equal queries of Ibis, which takes most of the time of a small table."""
    if (ibis := sys.modules.get("ibis")) is None:
        yield
        return
    compiled = functools.cache(
        lambda operation, dialect: ibis.expr.sql.to_sql(operation.to_expr(), dialect=dialect)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ibis, "to_sql", lambda query, dialect: compiled(query.op(), dialect))
        yield
