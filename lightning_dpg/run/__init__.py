"""From a command line, a configuration or a call in Python to a finished run."""
