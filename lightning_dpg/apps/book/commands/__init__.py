"""The command ``budget`` and its subcommands."""
