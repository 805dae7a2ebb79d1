from tests.datamodules.test_table_transfers import *
from tests.datamodules.test_table_transfers import both, rows_of, numbers_there, READ
import datetime as dt
def test_x(tmp_path, request):
    there, here = both(rows_of("undirected"), "expression of spark", tmp_path, request, undirected=True, columns=READ["both"])
    rows = there._table.numbered_rows()
    found = sorted(map(tuple, there._table.engine.numbers(rows.select("source_number","target_number","amount","time")).tolist()))
    pairs, amounts, times = here._transfer_rows()
    first = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp())
    exp = sorted((a,b,c,d-first) for (a,b),c,d in zip(pairs.tolist(), amounts.tolist(), times.tolist()) if a!=b)
    d = [(x,y) for x,y in zip(found,exp) if x!=y]
    r = there.records.transfers._ranked
    rr = sorted(map(tuple, there._table.engine.numbers(r.select("low","high","payer","amount","time","place")).tolist()))
    t = here.records.transfers
    p=t.pairs.sort(1).values
    open("/tmp/zz.txt","w").write(repr((len(found), len(exp), d[:10]))+"\n"+repr(rr[:2000])+"\n"+repr(list(zip(p.tolist(), t.pairs.tolist(), t.amounts.tolist(), t.times.tolist()))))
