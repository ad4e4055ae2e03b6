"""Which settings the demo adds: those of a sandbox for each side that nobody has given an address for."""

from waistheart.run.environment import demo_environment, sandbox_sides


def completed(**given: str) -> dict[str, str]:
    return demo_environment(given, web_port=8500, sandbox_port=8501, var_dir="var")


def test_a_bare_environment_gets_a_sandbox_for_both_sides():
    environ = completed()
    assert environ["FAL_QUEUE_URL"] == "http://127.0.0.1:8501/fal/queue"
    assert environ["STRIPE_API_BASE"] == "http://127.0.0.1:8501/stripe"
    assert environ["PUBLIC_URL"] == "http://127.0.0.1:8500"
    assert sandbox_sides({}) == ["fal", "stripe"]


def test_what_is_set_wins():
    environ = completed(PUBLIC_URL="http://shop.test", FAL_KEY="mine", STRIPE_WEBHOOK_SECRET="whsec_mine")
    assert (environ["PUBLIC_URL"], environ["FAL_KEY"]) == ("http://shop.test", "mine")
    assert environ["STRIPE_WEBHOOK_SECRET"] == "whsec_mine"


def test_a_side_with_an_address_gets_nothing_of_the_sandbox():
    environ = completed(FAL_QUEUE_URL="http://127.0.0.1:7000/queue")
    assert {name for name in environ if name.startswith("FAL_")} == {"FAL_QUEUE_URL"}
    assert environ["STRIPE_API_BASE"] == "http://127.0.0.1:8501/stripe"
    assert sandbox_sides({"FAL_QUEUE_URL": "http://127.0.0.1:7000/queue"}) == ["stripe"]


def test_no_sandbox_is_needed_when_both_sides_are_given():
    assert sandbox_sides({"FAL_QUEUE_URL": "http://a.test", "STRIPE_API_BASE": "http://b.test"}) == []


def test_a_live_shop_gets_nothing_of_the_sandbox():
    environ = completed(LIVE="1")
    assert sandbox_sides({"LIVE": "1"}) == []
    assert not {name for name in environ if name.startswith(("FAL_", "STRIPE_"))}


def test_an_empty_value_counts_as_not_set():
    assert completed(PUBLIC_URL="", FAL_QUEUE_URL="")["FAL_QUEUE_URL"] == "http://127.0.0.1:8501/fal/queue"
    assert completed(PUBLIC_URL="")["PUBLIC_URL"] == "http://127.0.0.1:8500"


def test_one_word_decides_on_the_ports():
    """A port left over in the environment must not move the shop away from the addresses that lead to it."""
    environ = completed(WEB_PORT="9999", SANDBOX_PORT="9998")
    assert (environ["WEB_PORT"], environ["SANDBOX_PORT"]) == ("8500", "8501")
    assert environ["PUBLIC_URL"].endswith(f":{environ['WEB_PORT']}")
    assert f":{environ['SANDBOX_PORT']}/" in environ["FAL_QUEUE_URL"]
