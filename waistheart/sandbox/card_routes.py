"""Everything the card half answers: the API, the payment page and its control address."""

from waistheart.sandbox import card_api, card_control, card_page
from waistheart.sandbox.server import Router

router = Router()
for part in (card_control, card_page, card_api):
    part.register(router)
