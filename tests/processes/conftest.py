from tests.process_fixtures import prepared, shop, var_dir

__all__ = ["prepared", "shop", "var_dir"]
