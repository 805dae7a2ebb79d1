"""Commands of the program in addition to Lightning's commands."""
