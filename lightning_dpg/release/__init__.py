"""Releases, the folders that may be published: statement, card, writer, reader and checks."""
