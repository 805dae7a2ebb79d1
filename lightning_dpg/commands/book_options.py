"""Options that name the budget book of a command without a configuration."""

import argparse


def add_book_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--book`` and ``--no-book``, whose values are in ``book``."""
    parser.add_argument(
        "--book",
        metavar="URL",
        help="budget book that logs this if it knows the data; by default $LIGHTNING_DPG_BOOK",
    )
    parser.add_argument(
        "--no-book",
        dest="book",
        action="store_const",
        const="none",
        help="log it in no budget book",
    )
