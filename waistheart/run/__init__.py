"""The whole shop in one terminal: `python -m waistheart.run`, which is what `make run` calls."""
