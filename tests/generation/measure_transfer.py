"""Print by how many bytes the process grew at its highest while 64 MB went from a server into files: folder."""

import sys

import django
from django.conf import settings

from tests.floor.bodies import MIB, pieces
from tests.floor.measure_storage import highest
from tests.generation.rude_server import head, rude


def main(folder: str) -> None:
    files = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": folder}}
    settings.configure(STORAGES={"default": files})
    django.setup()
    store(1, "shop1/warm/up")
    before = highest()
    store(64 * MIB, "shop1/videos/big.mp4")
    print(highest() - before)


def store(length: int, key: str) -> None:
    from generation.transfer import fetch, store_result  # noqa: PLC0415 (needs the settings made above)

    with rude() as server:
        server.script = Script(length)
        options = {"allowed_hosts": [server.host], "live": False, "max_bytes": length, "deadline_seconds": 60}
        with fetch(url=server.url(), **options) as body:
            stored = store_result(chunks=body.chunks, key=key, length=body.length)
        stored.file.close()
        assert stored.size == length


class Script(list):
    """The answer, made while it is sent."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def __iter__(self):
        yield head(Content_Length=self.length)
        yield from pieces(self.length)


if __name__ == "__main__":
    main(*sys.argv[1:])
