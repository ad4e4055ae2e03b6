"""A small file may ask for a large picture: what one intake takes of a machine is bounded, and so is how many there are at once."""

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PIL import Image

from orders import photos

ROOT = Path(__file__).resolve().parents[2]
INTAKE = """
import sys
from orders import photos

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

data = sys.stdin.buffer.read()
before = peak()
portrait = photos.intake(data)
print(portrait.width, portrait.height, (peak() - before) // 1024)
"""


def png(mode: str, side: int) -> bytes:
    out = io.BytesIO()
    Image.new(mode, (side, side)).save(out, "PNG", compress_level=1)
    return out.getvalue()


def jpeg(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(out, "JPEG")
    return out.getvalue()


# What was measured, and a fifth more. The same pictures took 361, 361, 234 and 642 MB while every step copied the whole.
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize(("name", "longest", "most"), [
    ("rgba.png", 2560, 330), ("rgb.png", 2560, 205), ("60mp.jpg", 2560, 150), ("large_48mp.heic", 2560, 400),
])  # fmt: skip
def test_the_largest_photos_take_a_bounded_part_of_the_machine(name: str, longest: int, most: int):
    made = {
        "rgba.png": lambda: png("RGBA", 4990),
        "rgb.png": lambda: png("RGB", 4990),
        "60mp.jpg": lambda: jpeg(7700, 7700),
        "large_48mp.heic": (ROOT / "tests/data/photos/large_48mp.heic").read_bytes,
    }
    done = subprocess.run([sys.executable, "-c", INTAKE], input=made[name](), cwd=ROOT, capture_output=True, check=True)
    width, height, megabytes = map(int, done.stdout.split())
    assert max(width, height) == longest
    assert megabytes < most


def test_two_photos_are_decoded_at_once_and_the_others_wait(monkeypatch: pytest.MonkeyPatch):
    inside, seen, lock, two = 0, [], threading.Lock(), threading.Barrier(2)

    def portrait(picture: Image.Image, data: bytes) -> None:
        nonlocal inside
        with lock:
            inside += 1
            seen.append(inside)
        two.wait(timeout=10)
        with lock:
            inside -= 1

    monkeypatch.setattr(photos, "_portrait", portrait)
    data = png("RGB", 600)
    threads = [threading.Thread(target=photos.intake, args=[data]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(seen) == 2
    assert len(seen) == 6


def test_a_photo_that_is_refused_gives_its_place_back():
    for _ in range(5):
        with pytest.raises(photos.PhotoProblem):
            photos.intake(b"\x89PNG\r\n\x1a\n")
    assert photos.DECODING.acquire(timeout=0)
    photos.DECODING.release()
