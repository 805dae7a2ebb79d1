"""What a method has to keep, as tests: ``python -m pytest --dpg-method NAME`` runs them."""
