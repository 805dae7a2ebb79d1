"""The studio in headless Chromium, with real runs: from a table to a release that verifies."""

import json
import os
import shutil
import signal
import zipfile
from pathlib import Path

import pytest

from tests.apps.studio.doors import wait_for
from tests.processes import ends, start_command

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium (apt-get install chromium)"),
]
LIMIT = 300_000  # milliseconds, of a machine under load
STEPS = 20_000  # more than any machine makes before the stop


class Studio:
    """A studio as a process of its own, which has imported what its first page needs."""

    def __init__(self, folder, place):
        self.folder, self.place = folder, place
        self.start()

    def start(self):
        running = start_command(self.place, "studio", str(self.folder), "--no-browser")
        self.process = running.process
        wait_for(lambda: "\n" in running.output.read_text())
        self.url = running.output.read_text().split()[1]

    def kill(self):
        self.process.kill()
        self.process.join()


@pytest.fixture
def studio(folder, tmp_path):
    started = Studio(folder, tmp_path)
    yield started
    for path in (folder / ".studio").glob("[0-9]*.json"):  # runs outlive their studio
        run = json.loads(path.read_text())
        if run["process"]:
            try:
                os.kill(run["process"], signal.SIGKILL)
            except ProcessLookupError:
                pass
    started.kill()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(browser):
    # Colors on their way from light to dark have a contrast of their own, for a tenth of a second.
    made = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    made.set_default_timeout(LIMIT)
    yield made
    made.close()


@pytest.fixture
def page(studio, context):
    """A page whose console stays empty, and that asks no other address."""
    opened, said = context.new_page(), []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    context.on("request", lambda asked: said.append(asked.url) if not is_own(asked.url) else None)

    def is_own(url):
        return url.startswith(("http://127.0.0.1:", "data:", "blob:"))

    opened.goto(studio.url)
    yield opened
    assert not said


class Person:
    """Presses and fields that a person needs.

    Attributes:
        presses: Number of buttons and links that were pressed.
        fields: Number of fields that were filled.
        pictures: Folder of pictures of each page, as wide as a screen and as a phone, light and dark.
    """

    def __init__(self, page, pictures=None):
        self.page, self.pictures = page, pictures
        self.presses = self.fields = 0

    def press(self, name, role="button"):
        if self.pictures:
            check_page(self.page, self.pictures / f"{self.presses}")
        self.page.get_by_role(role, name=name, exact=name == "Read").click()
        self.presses += 1
        assert not self.page.get_by_role("alert").count()

    def fill(self, name, value):
        field = self.page.locator(f"[name='{name}']")
        if field.evaluate("each => each.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
        self.fields += 1


def choose_data(page, next_="Next: plan", **fields):
    person = Person(page)
    person.press("New run")
    person.fill("data", "transfers.csv")
    person.press("Read")
    for name, value in {"direction": "drop", **fields}.items():
        person.fill(name, value)
    page.get_by_role("button", name=next_).click()
    return person


def start_long_run(page):
    """Start a training of many steps, on the total 2 of a new book."""
    choose_data(page, "Read again", persons="people.csv")
    page.get_by_label("What age is").select_option("public")
    page.get_by_role("button", name="Next: plan").click()
    page.get_by_label("attribute_encoder", exact=False).first.check()
    page.get_by_role("button", name="Show the plan again").click()
    page.get_by_text("Settings of attribute_encoder").click()
    page.get_by_label("iterations").fill(str(STEPS))
    page.get_by_label("public pairs").fill("4096")
    page.locator("[name=name]").fill("bank")
    page.get_by_label("Total epsilon of all releases").fill("2")
    page.get_by_label("Total delta of all releases").fill("0.001")
    page.wait_for_load_state("networkidle")  # of the view of the last field
    page.get_by_role("button", name="Start").click()
    wait_for(lambda: made_steps(page) > 30)


def made_steps(page=None, number=1):
    journal = Path("runs", f"studio-{number}", "ledger.jsonl")
    if not journal.is_file():
        return 0
    lines = journal.read_text().split("\n")[:-1]
    return sum(json.loads(line)["steps"] for line in lines)


def command(*words):
    """Run a command as an officer would, and return its exit code and its object."""
    (code,), (said,) = ends([start_command(Path.cwd().parent, *words, "--json")])
    return code, json.loads(said)


def in_book():
    code, found = command(
        "budget", "show", "bank", "--book", f"sqlite:///{Path.cwd()}/budget-book.db"
    )
    assert code == 0
    return found


def check_page(page, picture=None):
    """No serious finding of axe, and nothing that is wider than a phone; take pictures, if asked to."""
    from axe_playwright_python.sync_playwright import Axe

    wrong = [
        (each["id"], [node["html"] for node in each["nodes"]][:3])
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert not wrong, page.url
    for width in (360, 390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        room = page.evaluate("document.documentElement.clientWidth")
        assert page.evaluate("document.documentElement.scrollWidth") <= room, (page.url, width)
        for scheme in ("light", "dark") if picture and width > 360 else ():
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{picture}-{width}-{scheme}.png", full_page=True)


def test_twelve_months_and_their_customers_in_ten_presses_and_twelve_fields(
    studio, page, context, folder, tmp_path
):
    for month in range(3, 12):
        text = (folder / "monthly" / "2026-01.csv").read_text()
        (folder / "monthly" / f"2026-{month + 1:02}.csv").write_text(text)
    people = [f"c{i},Ann {i},{20 + i % 50},{1000 * i}" for i in range(123)]
    (folder / "customers.csv").write_text("\n".join(["id,name,age,income", *people]) + "\n")
    person = Person(page, tmp_path)
    person.press("Begin")
    person.fill("data", "monthly/*.csv")
    person.press("Read")
    person.fill("persons", "customers.csv")
    fields = {"direction": "drop", "weight": "amount", "weight_max": "200", "time": "at"}
    for name, value in fields.items():
        person.fill(name, value)
    person.fill("time_window", "2026-01-01,2026-12-31")
    person.press("Read again")
    assert page.get_by_label("What name is").input_value() == "drop"
    person.fill("policy.age", "private")
    person.fill("domains.age", "20,40,60")
    person.press("Next: plan")
    person.fill("size", "400")
    page.get_by_text("28 days have about").first.wait_for()
    person.fill("total", "2")
    person.press("Start")
    person.press("Next: verify")
    page.get_by_text("No fault was found").wait_for()
    with page.expect_download() as started:
        person.press("Download the release", "link")
    assert person.presses <= 10 and person.fields <= 12
    started.value.save_as(tmp_path / "release.zip")
    with zipfile.ZipFile(tmp_path / "release.zip") as packed:
        packed.extractall(tmp_path)
    code, found = command("verify", str(tmp_path / "release"))
    assert (code, found["faults"], found["epsilon"]) == (0, [], 1)
    assert b"Ann" not in b"".join(path.read_bytes() for path in (tmp_path / "release").iterdir())
    spent = command("budget", "show", "monthly", "--book", f"sqlite:///{folder}/budget-book.db")[1]
    assert (spent["total"], spent["spent"]) == (2, 1)
    page.get_by_role("button", name="Compare with the real graph").click()
    page.get_by_role("link", name="Quality page").wait_for()
    with context.expect_page() as opened:
        page.get_by_role("link", name="Quality page").click()
    opened.value.wait_for_load_state()
    assert opened.value.evaluate("self.origin") == "null"
    page.get_by_role("link", name="Studio").click()
    check_page(page)
    kept = page.evaluate(
        "async () => [localStorage.length, sessionStorage.length, (await indexedDB.databases()).length,"
        " (await caches.keys()).length, document.cookie]"
    )
    assert kept == [0, 0, 0, 0, ""]
    (cookie,) = context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["expires"] == -1


def test_the_whole_path_by_keyboard(studio, page):
    def go_to(name):
        for _ in range(80):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "(document.activeElement.labels?.[0] ?? document.activeElement).innerText"
            )
            if focused and focused.startswith(name):
                return
        raise AssertionError(f"the keyboard does not reach {name}")

    def press(name):
        go_to(name)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    press("Begin")
    go_to("Data")
    page.keyboard.type("transfers")
    press("Read")
    go_to("Direction")
    page.keyboard.type("drop")
    press("Next: plan")
    press("Start")
    page.get_by_role("button", name="Next: verify").wait_for()
    press("Next: verify")
    go_to("Download the release")
    with page.expect_download():
        page.keyboard.press("Enter")


def test_a_refused_budget_spends_nothing_and_has_a_way_out(studio, page, folder):
    choose_data(page)
    page.locator("[name=name]").fill("bank")
    page.get_by_label("Total epsilon of all releases").fill("0.5")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("Nothing was spent.").wait_for()
    lines = page.get_by_role("alert").inner_text().splitlines()
    assert 1 <= len(lines) <= 5 and "0.5" in page.get_by_role("alert").inner_text()
    assert not (folder / "runs").exists()
    assert (in_book()["spent"], in_book()["left"]) == (0, 0.5)
    page.get_by_role("button", name="Correct the answers").click()
    assert page.get_by_label("Direction").input_value() == "drop"
    page.get_by_role("button", name="Next: plan").click()
    page.get_by_role("slider").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.get_by_text("A belief of 50 % becomes at most 57 %").wait_for()
    assert page.locator("#epsilon").input_value() == "0.3"
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Next: verify").wait_for()


def test_a_run_outlives_its_studio_and_a_stop_keeps_what_is_booked(studio, page, context):
    start_long_run(page)
    page.goto("about:blank")  # a browser reports that nobody answers
    studio.kill()
    made = made_steps()
    studio.start()
    page.goto(studio.url)
    page.get_by_role("link", name="Run 1").click()
    wait_for(lambda: made_steps() > made)  # it goes on
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("spent for good", exact=False).first.wait_for()
    wait_for(
        lambda: in_book()["reserved"] == 0
    )  # the stopped process gives the rest back as it ends
    stopped, found = made_steps(), in_book()
    assert stopped < STEPS
    (run,) = found["releases"]
    assert run["outcome"] == "stopped"
    assert sum(entry["steps"] for entry in run["entries"]) >= stopped - 3
    page.get_by_role("button", name="Correct the answers").click()
    page.get_by_role("button", name="Next: plan").click()
    page.get_by_label("chung_lu", exact=False).first.check()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Next: verify").wait_for()
    after = in_book()
    assert found["spent"] < after["spent"] <= found["spent"] + 1.0001
    code, verified = command("verify", str(Path.cwd() / "runs" / "studio-2"))
    assert (code, verified["faults"]) == (0, [])
