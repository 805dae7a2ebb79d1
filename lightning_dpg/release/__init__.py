"""The folder that may leave: statement, card, writer, reader and checks."""
