from tests.shop_fixtures import prepared, shop, var_dir

__all__ = ["prepared", "shop", "var_dir"]
