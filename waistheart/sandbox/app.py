"""Puts the halves together; the only file that knows all of them."""

from waistheart.sandbox import card_routes, control
from waistheart.sandbox.server import Router, SandboxServer, serve_routes
from waistheart.sandbox.world import World

ROUTERS = (control.router, card_routes.router)


def serve(world: World, host: str = "127.0.0.1", port: int = 0) -> SandboxServer:
    """Start the whole sandbox in a thread and return at once; `shutdown()` stops it, port 0 takes any free port."""
    router = Router()
    for part in ROUTERS:
        router.include(part)
    return serve_routes(world=world, router=router, host=host, port=port)
