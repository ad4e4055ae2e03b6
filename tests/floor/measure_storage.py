"""Print by how many bytes the process grew at its highest while it stored 64 MB.

Arguments: files or s3, folder or address, bucket, known or unknown (length).
"""

import re
import sys
from pathlib import Path

import django
from django.conf import settings

from tests.floor.bodies import MIB, pieces


def main(where: str, location: str, bucket: str, length: str) -> None:
    s3 = {
        "bucket_name": bucket,
        "endpoint_url": location,
        "access_key": "testing",
        "secret_key": "testing",
        "region_name": "us-east-1",
    }
    chosen = {
        "files": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": location}},
        "s3": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": s3},
    }[where]
    settings.configure(STORAGES={"default": chosen})
    django.setup()
    from waistheart import storage  # noqa: PLC0415 (needs the settings made above)

    storage.save_bytes(key="shop1/warm/up1", data=b"x", content_type="a/b")
    storage.save_stream(key="shop1/warm/up2", chunks=[b"x"], length=1, content_type="a/b")
    before = highest()
    known = 64 * MIB if length == "known" else None
    storage.save_stream(key="shop1/videos/big.mp4", chunks=pieces(64 * MIB), length=known, content_type="video/mp4")
    print(highest() - before)


def highest() -> int:
    # Not getrusage: its maximum is handed down from the parent process, which is bigger than we are.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
