"""The customer's pages. Each view makes one domain call and translates its answer."""
