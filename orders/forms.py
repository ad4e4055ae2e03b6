"""What a customer types: checked here for its shape alone, with the words of one closed list. What a photo *is* `photos` decides."""

import math
import re
import unicodedata
from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.core.validators import validate_email
from django.http import HttpRequest

from waistheart.models import normalise_email

NO_PHOTO = "Choose a photo"
NO_EMAIL = "Enter your e-mail address so we can send you the video"
EMAIL_SHAPE = "Enter an e-mail address in the format name@example.com"
NOT_DECLARED = "Confirm that you may use this photo"
NOT_STARTED = "Confirm that we may start now"
# Slips of the finger in the names of large mail services. Offered, never forced: the odd name may be somebody's own.
MEANT = {
    "gmial.com": "gmail.com", "gmai.com": "gmail.com", "gmal.com": "gmail.com", "gmail.co": "gmail.com",
    "gmail.con": "gmail.com", "gnail.com": "gmail.com", "gamil.com": "gmail.com", "googlemail.co": "googlemail.com",
    "hotmial.com": "hotmail.com", "hotmai.com": "hotmail.com", "hotmail.con": "hotmail.com", "hotnail.com": "hotmail.com",
    "outlok.com": "outlook.com", "outlook.con": "outlook.com", "yaho.com": "yahoo.com", "yahooo.com": "yahoo.com",
    "yahoo.con": "yahoo.com", "iclod.com": "icloud.com", "icloud.con": "icloud.com", "icloud.co": "icloud.com",
}  # fmt: skip


TWO_WAYS = {"ß", "ς"}  # as they are in today's rules for names (IDNA 2008), and "ss" and "σ" in the older ones
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True)
class Fault:
    """One thing to put right: the id of its field, and what to do, in words."""

    field: str
    message: str


def email_fault(address: str) -> str:
    """What is wrong with the address, as it would be kept; empty when its shape is right and a mail can be sent to it."""
    if not address:
        return NO_EMAIL
    address = normalise_email(address)
    try:
        validate_email(address)
    except ValidationError:
        return EMAIL_SHAPE
    return "" if len(address) <= 254 and _can_be_written(address) and _leads_out(address) else EMAIL_SHAPE


def _leads_out(address: str) -> bool:
    """Whether its domain is a name out there: neither this machine nor a number in brackets, which no card processor takes."""
    domain = address.rpartition("@")[2]
    return not domain.startswith("[") and domain.rpartition(".")[2] != "localhost"


def _can_be_written(address: str) -> bool:
    """Whether it can stand on an envelope: no invisible letters, a plain name, and a domain with one form in plain letters.

    Mail programs write the letters of TWO_WAYS in two ways, which may belong to two owners; such a domain can be typed as xn--….
    """
    name, _, domain = address.rpartition("@")
    if not name.isascii() or '"' in name or len(name) > 64 or TWO_WAYS & set(domain):
        return False
    if any(unicodedata.category(letter) in INVISIBLE for letter in address):
        return False
    try:
        return 0 < len(domain.encode("idna")) <= 253
    except UnicodeError:
        return False


def email_meant(address: str) -> str:
    """The address somebody probably meant to type; empty when nothing looks odd."""
    name, _, domain = address.rpartition("@")
    meant = MEANT.get(domain.lower())
    return f"{name}@{meant}" if meant else ""


def upload(request: HttpRequest) -> UploadedFile | None:
    """The photo that was sent, if any."""
    found = request.FILES.get("photo")
    return found if isinstance(found, UploadedFile) else None


def upload_fault(file: UploadedFile) -> str:
    """What its size says before a byte of it is read into memory; empty when it may be looked at."""
    size, limit = file.size or 0, settings.MAX_PHOTO_BYTES
    if size <= limit:
        return ""
    # Rounded up, so that nobody reads that 15.0 is not smaller than 15.
    shown = math.ceil(size / 1024 / 1024 * 10) / 10
    return f"Choose a photo smaller than {limit // (1024 * 1024)} MB. This one is {shown:g} MB"


def position(value: str | None) -> int | None:
    """A frame position, 0 to 100; None when nothing usable was sent, so that the shop's own choice stands."""
    if value is None or not re.fullmatch(r"[0-9]{1,3}", value):
        return None
    return min(100, int(value))
