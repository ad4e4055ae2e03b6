"""The sandbox: a small process that speaks the wire formats of the video provider and the card processor.

It imports nothing of the shop, and the shop reaches it only over HTTP. See `server.py` for the door,
`world.py` for what it knows, `faults.py` for its switches, `fal*.py` and `card*.py` for its two halves.
"""
