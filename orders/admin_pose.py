"""A pose as staff edit it: what the table's CHECKs refuse is said in words, and its sample clip is proven like any video."""

import json
from typing import Any

from django import forms
from django.conf import settings
from django.forms.fields import InvalidJSONInput

from billing.gateway import MOST_AMOUNT
from billing.models import CreditPack
from generation.by_hand import store_upload
from generation.store import Stored
from generation.verify import NotAVideo
from orders.models import Pose
from waistheart import money
from waistheart.storage import StorageError
from waistheart.wire import is_model


class JsonAsTyped(forms.JSONField):
    """A form that is shown again holds what was typed: read and written anew it may not be text that a page can hold."""

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data if self.disabled or data is None else InvalidJSONInput(data)


class PoseForm(forms.ModelForm):
    credits = forms.IntegerField(min_value=1, max_value=50, initial=1)
    sample = forms.FileField(
        required=False,
        help_text="MP4, H.264, 9:16, 2 to 12 seconds: shown in the gallery. Leave empty to keep the present one.",
    )
    parameters = JsonAsTyped(required=False, initial=dict)
    stored: Stored | None = None

    class Meta:
        model = Pose
        fields = ("name", "slug", "description", "prompt", "credits", "active", "sort", "model", "parameters")

    def clean_credits(self) -> int:
        credits = int(self.cleaned_data["credits"])
        pack = CreditPack.objects.filter(credits=1, currency=settings.CURRENCY, active=True).first()
        if pack and credits * pack.price > MOST_AMOUNT:
            amount = money.words(amount=credits * pack.price, currency=pack.currency)
            raise forms.ValidationError(f"A video would cost {amount}: more than the card processor takes.")
        return credits

    def clean_model(self) -> str:
        name = str(self.cleaned_data["model"])
        if name and not is_model(name):
            raise forms.ValidationError("As the provider names it: owner/app or owner/app/path.")
        return name

    def clean_parameters(self) -> dict[str, Any]:
        given = self.cleaned_data["parameters"] or {}
        if not isinstance(given, dict):
            raise forms.ValidationError('An object, as in {"duration": "5"}.')
        if not is_plain_json(given):
            raise forms.ValidationError(
                "Plain text and numbers only: no NaN, no infinity, no letters that cannot be stored."
            )
        taken = {"prompt", "image_url"} & set(given)
        if taken:
            raise forms.ValidationError(f"{json.dumps(min(taken))} is set by the shop.")
        return given

    def clean(self) -> dict[str, Any]:
        """An active pose has a sample: the gallery shows it."""
        data = super().clean() or self.cleaned_data
        upload = data.get("sample")
        if not self.errors and upload:
            try:
                self.stored = store_upload(upload.file)
            except (NotAVideo, StorageError) as error:
                self.add_error("sample", f"This cannot be a sample: {error}")
        if data.get("active") and not upload and not self.instance.sample_key:
            self.add_error("sample", "A pose on sale has a sample clip.")
        return data

    def put_sample(self, pose: Pose) -> None:
        """Point the pose at the clip that came with the form; the bytes of the old one go by the orphan sweep."""
        if self.stored:
            pose.sample_key, pose.sample_size = self.stored.video_key, self.stored.video_size
            pose.poster_key = self.stored.poster_key


def is_plain_json(value: object) -> bool:
    """Whether both databases can hold it: no NaN, no infinity, no NUL and no halves of letters."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except ValueError:
        return False
    return "\\u0000" not in text
