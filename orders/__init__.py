"""The shop: poses, photos, orders, pages, mail; decides that something is paid."""
