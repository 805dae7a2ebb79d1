import importlib.util

import pytest

if not all(map(importlib.util.find_spec, ("flask", "waitress"))):  # of the extra
    collect_ignore_glob = ["test_*.py"]

ROWS = [f"c{i},c{(i * 7 + 3) % 40},{i + 1},2026-{1 + i % 6:02}-14" for i in range(120)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with transfers in a file and in parts, people, and a link that leads out."""
    place = tmp_path / "owner"
    place.mkdir()
    (place / "transfers.csv").write_text("\n".join(["payer,payee,amount,at", *ROWS]) + "\n")
    (place / "monthly").mkdir()
    for month in range(3):
        rows = ["payer,payee,amount,at", *ROWS[month::3]]
        (place / "monthly" / f"2026-{month + 1:02}.csv").write_text("\n".join(rows) + "\n")
    shops = [f"c{i},s{i % 9}" for i in range(120)]
    (place / "shops.csv").write_text("\n".join(["customer,shop", *shops]) + "\n")
    people = [f"c{i},{20 + i % 50},{'north' if i % 3 else 'south'}" for i in range(123)]
    (place / "people.csv").write_text("id,age,region\n" + "\n".join(people) + "\n")
    (tmp_path / "outside.csv").write_text("a,b\n")
    (place / "link.csv").symlink_to(tmp_path / "outside.csv")
    monkeypatch.chdir(place)
    monkeypatch.delenv("LIGHTNING_DPG_BOOK", raising=False)
    return place


@pytest.fixture
def client(folder):
    from tests.apps.studio.doors import Client

    return Client()
