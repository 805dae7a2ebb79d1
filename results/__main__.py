"""Write or check the pages of the measured numbers: ``python -m results [--check]``."""

import argparse
import sys
from pathlib import Path

from lightning_dpg.errors import CommandError, explain
from results.adding import add, enter
from results.figures import digest, digest_in
from results.pages import all_figures, all_pages
from results.tables import FOLDER, read_study, study_names

DESCRIPTION = """\
Write the README.md and the figures of each study in results/ from its study.yaml and results.csv,
and the tables between <!-- results: STUDY/TABLE --> and <!-- end --> in README.md and docs/.

With STUDY and --from DIR, first append to results/STUDY/results.csv what `compare --out DIR` has
measured, as new tables whose names have the graph, the budget and the date; with --by-query, as a
table per graph and query with a column per budget. Only for public graphs: the numbers are not
private.

With STUDY and --from FILE.json, enter the numbers of `benchmarks --json FILE.json` at their places in
the study."""


def main(args: list[str]) -> int:
    """Run the command line, and return the exit code."""
    options = _parse(args)
    try:
        if options.source:
            origin = options.date, options.machine, options.commit
            if options.source.suffix == ".json":
                print(enter(options.study, options.source, *origin))
            else:
                print(add(options.study, options.source, *origin, options.by_query))
        outdated = find_outdated()
        if not options.check:
            _write(outdated)
    except (CommandError, OSError) as error:
        print(explain(error), file=sys.stderr)
        return 2
    for path in outdated:
        print(f"{'outdated' if options.check else 'written'}: {path.relative_to(FOLDER.parent)}")
    if options.check and outdated:
        print("error: write them with python -m results", file=sys.stderr)
        return 1
    return 0


def find_outdated() -> list[Path]:
    """Paths of all written files that differ from what the numbers give, or that are missing."""
    outdated = [path for path, text in all_pages().items() if _read(path) != text]
    for study in (read_study(FOLDER / name) for name in study_names()):
        for name in study.figures:
            path = FOLDER / study.name / f"{name}.svg"
            if digest_in(_read(path)) != digest(study, name):
                outdated.append(path)
    return outdated


def _write(paths: list[Path]) -> None:
    figures = all_figures() if any(path.suffix == ".svg" for path in paths) else {}
    content = {**all_pages(), **figures}
    for path in paths:
        path.write_text(content[path], encoding="utf-8")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _parse(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m results",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("study", nargs="?", choices=study_names(), metavar="STUDY")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file differs")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="PATH",
        help="of `compare`, or FILE.json of `benchmarks`",
    )
    parser.add_argument("--date", help="day of the measurement, YYYY-MM-DD")
    parser.add_argument("--machine", help='for instance "2 cores, no GPU"')
    parser.add_argument("--by-query", action="store_true", help="a table per graph and query")
    parser.add_argument("--commit", help="that was measured (that of the working tree)")
    options = parser.parse_args(args)
    given = [options.study, options.source, options.date, options.machine]
    if any(given) and not all(given):
        parser.error("STUDY, --from, --date and --machine go together")
    if options.source and options.check:
        parser.error("--check writes nothing, --from does")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
