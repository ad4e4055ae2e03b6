"""The main job as a person sees it on a phone, with scripts and without."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Shoot
from tests.customer import PHOTOS
from tests.shop_process import Shop

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]
READY = "Your video is ready"
PLAYS = """async (video) => {
    video.muted = true;
    await video.play();
    await new Promise((go) => setTimeout(go, 600));
    return video.currentTime > 0.2 && video.videoWidth * 16 === video.videoHeight * 9 && !video.error;
}"""


@pytest.mark.parametrize("scripts", [True, False], ids=["with script", "without script"])
def test_a_portrait_becomes_a_video_on_a_phone(
    shop: Shop, new_page: Callable[..., Page], shoot: Shoot, tmp_path: Path, scripts: bool
):
    page = new_page(java_script_enabled=scripts, accept_downloads=True)
    complaints = listen(page)
    order(page, shop, shoot, pose="Waist heart", email=f"phone-{scripts}@example.com".lower())
    page.get_by_role("button", name="Pay £4.00").click()
    page.wait_for_url("**/o/**")
    shoot(page, "order")
    # With scripts the page goes on by itself; without, it asks the browser to load it again.
    expect(page.get_by_role("heading", name=READY)).to_be_visible(timeout=60_000)
    shoot(page, "ready")
    if scripts:
        assert no_sideways_scroll(page)
        assert page.title().startswith(READY)
        assert page.locator("video").evaluate(PLAYS)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download video").click()
    saved = tmp_path / "video.mp4"
    download.value.save_as(saved)
    assert download.value.suggested_filename.startswith("waistheart-waist-heart-")
    assert saved.read_bytes()[4:8] == b"ftyp"
    assert complaints == []


def test_a_declined_card_leaves_everything_as_it_was(shop: Shop, new_page: Callable[..., Page], shoot: Shoot):
    page = new_page()
    order(page, shop, shoot, pose="Cheek heart", email="declined@example.com")
    page.get_by_role("button", name="Decline the card").click()
    expect(page.get_by_text("Your card was declined")).to_be_visible()
    shoot(page, "declined")
    page.get_by_role("link", name="Cancel").or_(page.get_by_role("link", name="Back")).first.click()
    page.wait_for_url("**/pay/cancelled/**")
    expect(page.get_by_text("Payment was not completed. No money was taken.")).to_be_visible()
    expect(page.get_by_text("declined@example.com")).to_be_visible()
    shoot(page, "back-at-review")


def order(page: Page, shop: Shop, shoot: Shoot, *, pose: str, email: str) -> None:
    """From the gallery to the payment page."""
    page.goto(shop.url)
    shoot(page, "gallery")
    page.get_by_role("link", name=pose).first.click()
    shoot(page, "pose")
    page.get_by_role("link", name="Use this pose").click()
    page.get_by_label("Portrait photo").set_input_files(PHOTOS / "ok_portrait.jpg")
    page.get_by_label("E-mail address").fill(email)
    shoot(page, "photo")
    page.get_by_role("button", name="Continue to review").click()
    page.wait_for_url("**/review/")
    shoot(page, "review")
    page.get_by_label("The person in this photo is me").check()
    page.get_by_label("Start now").check()
    page.get_by_role("button", name="Pay £4.00").click()
    page.wait_for_url("**/stripe/pay/**")
    shoot(page, "payment")


def listen(page: Page) -> list[str]:
    """Collect what the browser complains about: script errors, refused contents, answers that are errors."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("response", lambda got: complaints.append(f"{got.status} {got.url}") if got.status >= 400 else None)
    return complaints


def no_sideways_scroll(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
