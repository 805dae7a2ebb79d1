"""Commands of the program beside those of Lightning."""
