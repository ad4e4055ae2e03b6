"""Blobs in an S3 bucket (Amazon, R2, MinIO ...): streamed when the length is known, in fixed parts when it is not."""

import io
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import boto3
import requests
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3Storage
from urllib3.exceptions import HTTPError

from waistheart.storage_base import BlobExists, BlobMissing, Body, Listed, Progress, Promised, StorageError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# R2 wants all parts but the last equally big; ten thousand of these are far above any video.
PART_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 10
READ_SECONDS = 60
FAILURES = (BotoCoreError, ClientError, HTTPError, requests.RequestException, OSError)


class S3Backend:
    """One bucket, spoken to by one shared client (boto3's clients may be used by many threads)."""

    def __init__(self, storage: S3Storage) -> None:
        self.bucket: str = storage.bucket_name
        self.client = _client(storage.endpoint_url, storage.access_key, storage.secret_key, storage.region_name)

    def save_bytes(self, key: str, data: bytes, content_type: str) -> None:
        self._refuse_taken(key)
        self._call("put_object", Key=key, Body=data, ContentType=content_type, IfNoneMatch="*")

    def save_stream(
        self, key: str, chunks: Iterable[bytes], length: int | None, content_type: str, on_progress: Progress
    ) -> int:
        self._refuse_taken(key)
        if length is None:
            return self._save_in_parts(key, chunks, content_type, on_progress)
        if length == 0:
            list(Promised(chunks, 0, on_progress))
            self.save_bytes(key, b"", content_type)
            return 0
        self._put(key, Promised(chunks, length, on_progress), content_type)
        return length

    def size(self, key: str) -> int | None:
        try:
            return int(self._call("head_object", Key=key)["ContentLength"])
        except BlobMissing:
            return None

    def open_range(self, key: str, start: int, end: int | None) -> Body:
        if end == start:
            if self.size(key) is None:
                raise BlobMissing(key)
            return Body(io.BytesIO(), 0, FAILURES)
        wanted = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}
        try:
            return Body(self._call("get_object", Key=key, **wanted)["Body"], None, FAILURES)
        except StorageError as error:
            if _code(error.__cause__) != "InvalidRange":
                raise
            # Beyond the last byte there is nothing, as in a file.
            return Body(io.BytesIO(), 0, FAILURES)

    def delete(self, key: str) -> None:
        self._call("delete_object", Key=key)

    def list_keys(self, prefix: str) -> Iterator[Listed]:
        try:
            for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
                for entry in page.get("Contents", []):
                    yield Listed(entry["Key"], entry["Size"], entry["LastModified"])
        except FAILURES as error:
            raise _translated(error, prefix) from error

    def abort_stale_uploads(self, prefix: str, before: datetime) -> int:
        try:
            pages = list(
                self.client.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket, Prefix=prefix)
            )
        except FAILURES as error:
            raise _translated(error, prefix) from error
        stale = [upload for page in pages for upload in page.get("Uploads", []) if upload["Initiated"] < before]
        for upload in stale:
            self._call("abort_multipart_upload", Key=upload["Key"], UploadId=upload["UploadId"])
        return len(stale)

    def _refuse_taken(self, key: str) -> None:
        """For storages that do not know If-None-Match; the others decide it again, without a gap."""
        if self.size(key) is not None:
            raise BlobExists(key)

    def _put(self, key: str, body: Promised, content_type: str) -> None:
        """One signed PUT whose body flows from its source to the socket: boto3 itself would want to rewind it."""
        address = self.client.generate_presigned_url(
            "put_object",
            Params={"Bucket": self.bucket, "Key": key, "ContentType": content_type, "IfNoneMatch": "*"},
            ExpiresIn=3600,
        )
        headers = {"Content-Type": content_type, "If-None-Match": "*"}
        with requests.Session() as session:
            # Proxies and passwords of the environment are not meant for a signed address.
            session.trust_env = False
            try:
                answer = session.put(
                    address, data=body, headers=headers, timeout=(CONNECT_SECONDS, READ_SECONDS), allow_redirects=False
                )
            except (requests.RequestException, HTTPError) as error:
                if body.error is not None:
                    raise body.error from None
                raise StorageError(f"the upload broke off: {type(error).__name__}") from error
        if answer.status_code in {409, 412}:
            raise BlobExists(key)
        if answer.status_code != 200:
            raise StorageError(f"the upload was answered with {answer.status_code}")
        if body.sent != len(body):
            raise StorageError(f"the upload was answered after {body.sent} of {len(body)} bytes")

    def _save_in_parts(self, key: str, chunks: Iterable[bytes], content_type: str, on_progress: Progress) -> int:
        """At most one part is in memory. What fits into one part becomes one plain object."""
        part, total, upload = io.BytesIO(), 0, None
        try:
            for piece in _pieces(chunks):
                if part.tell() == PART_BYTES:
                    upload = upload or _Upload(self, key, content_type)
                    upload.add(part)
                part.write(piece)
                total += len(piece)
                on_progress(total)
            if upload is None:
                self.save_bytes(key, part.getvalue(), content_type)
            else:
                upload.add(part)
                upload.complete()
        except BaseException:
            # Also when the worker is being stopped: parts without an end cost money and no listing shows them.
            if upload is not None:
                upload.abort()
            raise
        return total

    def _call(self, operation: str, *, Key: str, **arguments: Any) -> Any:  # noqa: N803 (boto3's own name)
        try:
            return getattr(self.client, operation)(Bucket=self.bucket, Key=Key, **arguments)
        except FAILURES as error:
            raise _translated(error, Key) from error


class _Upload:
    """One upload in parts."""

    def __init__(self, backend: S3Backend, key: str, content_type: str) -> None:
        self.call = backend._call  # noqa: SLF001 (same file)
        self.key = key
        self.etags: list[str] = []
        self.id: str = self.call("create_multipart_upload", Key=key, ContentType=content_type)["UploadId"]

    def add(self, part: io.BytesIO) -> None:
        """Send what the part holds (boto3 may rewind and repeat it) and empty it."""
        part.seek(0)
        number = len(self.etags) + 1
        self.etags.append(
            self.call("upload_part", Key=self.key, UploadId=self.id, PartNumber=number, Body=part)["ETag"]
        )
        part.seek(0)
        part.truncate()

    def complete(self) -> None:
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(self.etags, start=1)]
        end: dict[str, Any] = {"Key": self.key, "UploadId": self.id, "MultipartUpload": {"Parts": parts}}
        try:
            self.call("complete_multipart_upload", IfNoneMatch="*", **end)
        except StorageError as error:
            if _code(error.__cause__) != "NotImplemented":
                raise
            # Such a storage knows the condition for plain objects only; the key was looked up before the first part.
            self.call("complete_multipart_upload", **end)

    def abort(self) -> None:
        try:
            self.call("abort_multipart_upload", Key=self.key, UploadId=self.id)
        except StorageError:
            # `abort_stale_uploads` ends it later; the error that brought us here matters more.
            return


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut where a part ends."""
    room = PART_BYTES
    for chunk in chunks:
        rest = chunk
        while rest:
            piece, rest = rest[:room], rest[room:]
            room = room - len(piece) or PART_BYTES
            yield piece


@lru_cache(maxsize=8)
def _client(endpoint: str | None, access_key: str | None, secret_key: str | None, region: str | None) -> "S3Client":
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        region_name=region,
        config=Config(
            signature_version="s3v4",
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 3},
            # Other makers' storages refuse the checksums that boto3 began to add by itself.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _translated(error: Exception, key: str) -> StorageError:
    code = _code(error)
    if code in {"404", "NoSuchKey", "NotFound"}:
        return BlobMissing(key)
    if code in {"PreconditionFailed", "ConditionalRequestConflict", "412"}:
        return BlobExists(key)
    return StorageError(f"{code or type(error).__name__}: {error}")


def _code(error: BaseException | None) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
