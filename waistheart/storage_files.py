"""Blobs in a folder of this machine: the demo, and a shop on one server."""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from django.core.files.storage import FileSystemStorage

from waistheart.storage_base import BlobExists, BlobMissing, Body, Listed, Progress, Promised, StorageError, own_disk

# What a file system says that knows no hard links.
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class FilesBackend:
    """Writes to a temporary name beside the final one, syncs, then gives it the final name unless that is taken."""

    def __init__(self, storage: FileSystemStorage) -> None:
        self.root = Path(storage.location)

    def save_bytes(self, key: str, data: bytes, content_type: str) -> None:
        self.save_stream(key, [data], len(data), content_type, lambda total: None)

    def save_stream(
        self, key: str, chunks: Iterable[bytes], length: int | None, content_type: str, on_progress: Progress
    ) -> int:
        path = self.root / key
        if self.size(key) is not None:
            raise BlobExists(key)
        body = chunks if length is None else Promised(chunks, length, on_progress)
        total = 0
        with _temporary(path) as descriptor:
            for chunk in body:
                _write(descriptor, chunk)
                total += len(chunk)
                if length is None:
                    on_progress(total)
        return total

    def size(self, key: str) -> int | None:
        try:
            return (self.root / key).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(str(error)) from error

    def open_range(self, key: str, start: int, end: int | None) -> Body:
        try:
            source = (self.root / key).open("rb", buffering=0)
            source.seek(start)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise BlobMissing(key) from error
        except OSError as error:
            raise StorageError(str(error)) from error
        return Body(source, None if end is None else end - start, (OSError,))

    def delete(self, key: str) -> None:
        try:
            (self.root / key).unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise StorageError(str(error)) from error

    def list_keys(self, prefix: str) -> Iterator[Listed]:
        for folder, _folders, names in os.walk(self.root / prefix.rpartition("/")[0], onerror=_unreadable):
            for name in names:
                path = Path(folder, name)
                key = path.relative_to(self.root).as_posix()
                # A file may go while we walk; then it is no longer listed.
                with suppress(FileNotFoundError):
                    if key.startswith(prefix):
                        facts = path.stat()
                        yield Listed(key, facts.st_size, datetime.fromtimestamp(facts.st_mtime, UTC))

    def abort_stale_uploads(self, prefix: str, before: datetime) -> int:
        """What a killed save left is a file with a temporary name, which `list_keys` shows like any other."""
        return 0


@contextmanager
def _temporary(path: Path) -> Iterator[int]:
    """A file beside `path` that takes its name when the block ends well, and is gone when it does not."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StorageError(str(error)) from error
    try:
        try:
            yield descriptor
            _synced(descriptor)
        finally:
            with own_disk():
                os.close(descriptor)
        _take_name(temporary, path)
    finally:
        # What stays is listed like any other file, and nobody owns it.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError as error:
        raise StorageError(str(error)) from error


def _synced(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StorageError(str(error)) from error


def _take_name(temporary: Path, path: Path) -> None:
    try:
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            # Without links the name is claimed first: whoever creates it may replace it.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            temporary.replace(path)
        _sync_folders(path.parent)
    except FileExistsError as error:
        raise BlobExists(str(path)) from error
    except OSError as error:
        raise StorageError(str(error)) from error


def _sync_folders(folder: Path) -> None:
    """A name is on disk only when its folder is; day, kind and installation folders may be new as well."""
    for each in [folder, *list(folder.parents)[:5]]:
        descriptor = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise StorageError(str(error)) from error
