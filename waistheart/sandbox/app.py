"""Puts the halves together; the only file that knows all of them."""

from waistheart.sandbox import card_routes, control, fal, fal_list, fal_media, fal_work
from waistheart.sandbox.listen import SandboxServer, serve_routes
from waistheart.sandbox.server import Router
from waistheart.sandbox.world import World

ROUTERS = (control.router, fal.router, fal_list.router, fal_media.router, card_routes.router)


def serve(world: World, host: str = "127.0.0.1", port: int = 0) -> SandboxServer:
    """Start the whole sandbox in a thread and return at once; `shutdown()` stops it, port 0 takes any free port."""
    router = Router()
    for part in ROUTERS:
        router.include(part)
    fal_work.start(world)
    return serve_routes(world=world, router=router, host=host, port=port)
