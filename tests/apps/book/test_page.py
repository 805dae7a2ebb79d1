"""The page of a budget book: numbers of a small book by hand, harmless texts, narrow screens."""

import re

import pytest

from lightning_dpg.apps.book import page as budget_page
from lightning_dpg.apps.book.book import Book
from tests.apps.book.small_book import EVIL, entry, full_book, new_book, run, small_book

# Sees whether the page is wider than the window, and which boxes of tables scroll.
PROBE = """<script>
addEventListener("load", () => {
  const seen = {
    width: innerWidth,
    content: document.documentElement.scrollWidth,
    scripts: document.scripts.length,
    headings: [...document.querySelectorAll("h1, h2, h3")].map((one) => one.tagName).join(" "),
    captions: document.querySelectorAll("table > caption").length,
    tables: document.querySelectorAll(".scroll > table").length,
    bars: [...document.querySelectorAll(".budget > span")].map((one) => one.offsetWidth),
    bar: document.querySelector(".budget").clientWidth,
  };
  const text = JSON.stringify(seen);
  document.body.dataset.seen = text;
  parent.postMessage(text, "*");
});
</script>"""
CSP = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    return budget_page.page(small_book(f"sqlite:///{folder}/book.db"), ["crm"])


def text_of(html):
    """Words of the body, without elements."""
    body = html.partition("<body>")[2]
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_the_numbers_are_those_added_up_by_hand(html):
    text = text_of(html)
    for part in [
        "Budget of crm",
        "total epsilon 2, delta 1e-06",
        "spent epsilon 0.75 (sum of pure epsilons)",
        "reserved epsilon 1",
        "left one pure release of epsilon 0.25",
        "edge-level (0.75, 1e-06)-DP (add/remove one undirected edge)",
        "spent 37.5 % reserved 50 % not spent 12.5 %",
        "open PrivGraph 1 0",
        "ended BTER 0.5 0",
        "ended ChungLu 0.25 0",
        "budget verify found no fault",
    ]:
        assert part in text
    assert text.index("open PrivGraph") < text.index("ended BTER")  # the newest first
    assert 'aria-label="spent 37.5 %, reserved 50 %, not spent 12.5 %"' in html
    assert len(html) < 40_000
    assert not re.search(r"https?://(?!www\.w3\.org)|@import|<script|url\((?!data:)", html)


def test_texts_of_users_are_texts(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db", EVIL, words=EVIL)
    run(book, entry(0.5), EVIL, folder=f'/runs/"><img src=x onerror=alert(1)>{EVIL}', method=EVIL)
    page = budget_page.page(book, [EVIL])
    assert "<script" not in page and "<img" not in page
    assert page.count("&lt;script&gt;") >= 5  # title, headings, words, method, folder
    assert not re.search(r"<[a-z]+[^<>]*\sonerror", page)


def test_a_changed_book_says_so(tmp_path):
    url = f"sqlite:///{tmp_path}/book.db"
    run(new_book(url), entry(0.5))
    book = Book(url)
    book.database.rows("UPDATE book_log SET body = REPLACE(body, '0.5', '0.1') WHERE line = 2")
    text = text_of(budget_page.page(book, ["crm"]))
    assert "The book was changed: 1 found, the first is: line 2" in text


def test_many_runs_make_no_endless_page(tmp_path, monkeypatch):
    monkeypatch.setattr(budget_page, "MOST_RUNS", 3)
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    for _ in range(5):
        run(book, entry(0.125))
    text = text_of(budget_page.page(book, ["crm"]))
    assert "2 earlier runs not shown" in text


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full")
    book = full_book(f"sqlite:///{folder}/book.db")
    return budget_page.page(book, ["crm", "january", "february"])


def test_grants_parts_and_measurements_are_on_the_page(full):
    text = text_of(full)
    for part in [
        "year All releases from all parts together are (1.25, 1e-06)-DP for one undirected edge",
        "declared by the owner, and not checked",
        "january 1 1e-06 1.25 0 0 1 calls of January",
        "february 2 1e-06 0 0 closed 0",
        "Run 3 is open: steps are booked ahead, and spent is an upper bound.",
        "Run 2 is killed: what may have been released counts as spent.",
        "node epsilon 2.25, delta 1e-06: all edges of a node, 3 at most, as a group, if all runs",
        "1 eve 1 - 0 - replaced ann, bob 2 eve 1.5 1 0 0 in force ann, bob",
        "3 zoe 0.2 0 0 0 waits for approval ann",
        "Measurements that read the data and are on no total",
        "compare BTER, HRG 1, 5 zoe@vm",
        "The total is exceeded: lost steps were released",
        "left nothing: closed at 20",
    ]:
        assert part in text


def test_all_numbers_of_a_page_are_of_one_moment(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/book.db"
    book = new_book(url)
    run(book, entry(0.5))
    read = budget_page.read

    def read_and_book(opened, name):
        content = read(opened, name)
        run(Book(url), entry(0.25))  # another process, between the first read and all others
        return content

    monkeypatch.setattr(budget_page, "read", read_and_book)
    html = budget_page.page(book, ["crm"])
    text = text_of(html)
    assert "spent epsilon 0.5 (" in text
    assert "left one pure release of epsilon 1.5" in text
    assert "4 lines" in text  # registered, reserved, booked, closed


@pytest.mark.parametrize("name", ["probe.html", "narrow.html"])
def test_in_a_browser(html, tmp_path, probed, name):
    seen = probed(tmp_path, CSP.sub("", html), PROBE, name)
    assert seen["content"] <= seen["width"]
    assert seen["width"] == (360 if name == "narrow.html" else seen["width"])
    assert seen["scripts"] == 1  # the probe
    assert seen["captions"] == seen["tables"] == 1
    assert seen["headings"] == "H1 H2 H3 H2"
    shares = [width / seen["bar"] for width in seen["bars"]]
    assert shares == pytest.approx([0.375, 0.5, 0.125], abs=0.01)
