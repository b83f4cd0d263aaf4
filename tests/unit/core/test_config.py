import math
from typing import Annotated, Any, Literal

import msgspec
import pytest

from epicast.core.config import DAY_US, Config, Duration, PositiveDuration, Probability, describe, parse_duration_us
from epicast.core.errors import ConfigError, EpicastError

DURATION = f'a duration in microseconds from 0 to {DAY_US}, or a text like "250ms"'


class Link(Config):
    delay_us: Duration = 1_000
    loss: Probability = 0.0


class Overlay(Config):
    view_size: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    spare_size: int = 4
    mode: Literal["push", "pull"] = "push"
    eager: bool = False
    name: str = "overlay"
    period_us: PositiveDuration = 1_000_000
    give_up_us: Duration | None = None
    backoffs_us: tuple[Duration, ...] = ()
    link: Link = Link()
    backup: Link | None = None
    links: tuple[Link, ...] = ()
    by_area: dict[str, Link] = {}

    def check(self) -> None:
        if self.spare_size > self.view_size:
            raise ConfigError(f"spare_size {self.spare_size} is above view_size {self.view_size}")


class Needy(Config):
    nodes: int
    optional: int = 1


class Shape(Config):
    pass


class Round(Shape):
    radius: int = 1


class Drawing(Config):
    shape: Shape = Round()


def error_of(make: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        make(*args, **kwargs)
    text = str(caught.value)
    assert "\n" not in text
    return text


# What is accepted


def test_nothing_given_means_the_defaults() -> None:
    assert Overlay.load({}) == Overlay()


def test_a_table_replaces_defaults() -> None:
    table = {"view_size": 12, "mode": "pull", "eager": True, "name": "x"}
    assert Overlay.load(table) == Overlay(view_size=12, mode="pull", eager=True, name="x")


@pytest.mark.parametrize("size", [1, 64])
def test_both_ends_of_a_range_are_accepted(size: int) -> None:
    assert Overlay(view_size=size, spare_size=0).view_size == size


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("0s", 0),
        ("7us", 7),
        ("250ms", 250_000),
        ("1.5s", 1_500_000),
        ("2min", 120_000_000),
        ("24h", DAY_US),
        (" 3 s ", 3_000_000),
        ("0.0000004s", 0),
        ("0.0000006s", 1),
    ],
)
def test_a_duration_may_be_a_text(text: str, us: int) -> None:
    assert parse_duration_us(text) == us
    assert Overlay.load({"link": {"delay_us": text}}).link.delay_us == us


@pytest.mark.parametrize("text", ["", "250", "ms", "-1s", "1 week", "1s2", "1e3s", "1.s", "9" * 400 + "s", "1,5s"])
def test_other_texts_are_no_durations(text: str) -> None:
    assert parse_duration_us(text) is None


def test_durations_are_understood_wherever_they_stand() -> None:
    table = {
        "period_us": "2s",
        "give_up_us": "3s",
        "backoffs_us": ["1ms", 2],
        "backup": {"delay_us": "4ms"},
        "links": [{"delay_us": "5ms"}, {}],
        "by_area": {"eu": {"delay_us": "6ms"}},
    }
    assert Overlay.load(table) == Overlay(
        period_us=2_000_000,
        give_up_us=3_000_000,
        backoffs_us=(1_000, 2),
        backup=Link(delay_us=4_000),
        links=(Link(delay_us=5_000), Link()),
        by_area={"eu": Link(delay_us=6_000)},
    )


def test_what_is_made_in_python_is_the_same_as_what_is_loaded() -> None:
    made: Any = Overlay
    one = made(period_us="2s", link={"loss": 1}, links=[{"delay_us": "5ms"}], backoffs_us=["1ms"])
    assert one == Overlay.load(
        {"period_us": "2s", "link": {"loss": 1}, "links": [{"delay_us": "5ms"}], "backoffs_us": [1000]}
    )
    assert one.period_us == 2_000_000
    assert one.link == Link(loss=1.0)
    assert isinstance(one.link.loss, float)
    assert one.links == (Link(delay_us=5_000),)
    assert one.backoffs_us == (1_000,)


def test_a_config_may_stand_for_its_base_class() -> None:
    assert Drawing(shape=Round(radius=3)).shape == Round(radius=3)


def test_a_config_cannot_be_changed() -> None:
    config: Any = Overlay()
    with pytest.raises(AttributeError):
        config.view_size = 3


# What is refused, and in which words


def test_an_unknown_key_is_refused_with_the_nearest_known_one() -> None:
    assert error_of(Overlay.load, {"veiw_size": 3}) == "veiw_size: unknown key; did you mean view_size?"


def test_an_unknown_key_like_no_other_is_refused_with_all_that_are_known() -> None:
    assert error_of(Link.load, {"zzz": 3}, "stack.link") == "stack.link.zzz: unknown key; known keys: delay_us, loss"
    assert error_of(Shape.load, {"zzz": 3}) == "zzz: unknown key; known keys: none"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("view_size", 0, "view_size: expected an integer from 1 to 64, got 0"),
        ("view_size", 65, "view_size: expected an integer from 1 to 64, got 65"),
        ("view_size", "8", "view_size: expected an integer from 1 to 64, got '8'"),
        ("view_size", 8.0, "view_size: expected an integer from 1 to 64, got 8.0"),
        ("view_size", True, "view_size: expected an integer from 1 to 64, got True"),
        ("view_size", None, "view_size: expected an integer from 1 to 64, got None"),
        ("mode", "shove", "mode: expected one of push, pull, got 'shove'"),
        ("eager", 1, "eager: expected true or false, got 1"),
        ("name", 1, "name: expected a text, got 1"),
        (
            "period_us",
            0,
            f'period_us: expected a duration in microseconds from 1 to {DAY_US}, or a text like "250ms", got 0',
        ),
        ("give_up_us", "soon", f"give_up_us: expected {DURATION}, or nothing, got 'soon'"),
        ("backoffs_us", ["1ms", "soon"], f"backoffs_us[1]: expected a list, each {DURATION}, got ['1ms', 'soon']"),
        ("link", 3, "link: expected Link, got 3"),
        ("link", Overlay(), "link: expected Link, got Overlay("),
        ("link", {"delay_us": -1}, f"link.delay_us: expected {DURATION}, got -1"),
        ("link", {"delay_us": "25h"}, f"link.delay_us: expected {DURATION}, got '25h'"),
        ("link", {"loss": 1.01}, "link.loss: expected a number from 0.0 to 1.0, got 1.01"),
        ("link", {"loss": math.nan}, "link.loss: expected a number from 0.0 to 1.0, got nan"),
        ("link", {"los": 1}, "link.los: unknown key; did you mean loss?"),
        ("backup", {"loss": -1}, "backup.loss: expected a number from 0.0 to 1.0, got -1"),
        ("links", [{}, {"loss": "x"}], "links[1].loss: expected a number from 0.0 to 1.0, got 'x'"),
        ("by_area", {"eu": {"loss": 2}}, "by_area.eu.loss: expected a number from 0.0 to 1.0, got 2"),
    ],
)
def test_a_wrong_value_is_refused_however_it_is_given(key: str, value: Any, message: str) -> None:
    assert error_of(Overlay.load, {key: value}).startswith(message)
    assert error_of(Overlay.load, {key: value}, "stack").startswith("stack." + message)
    assert error_of(Overlay, **{key: value}).startswith(message)


def test_a_long_value_is_shown_in_part() -> None:
    assert error_of(Overlay.load, {"view_size": "x" * 1000}).endswith("got '" + "x" * 56 + "...")


def test_a_setting_without_a_default_must_be_given() -> None:
    assert error_of(Needy.load, {}, "run") == "run.nodes is missing: give an integer"
    assert Needy.load({"nodes": 3}) == Needy(nodes=3)


def test_rules_between_fields_are_checked_however_the_config_is_made() -> None:
    message = "spare_size 9 is above view_size 8"
    assert error_of(Overlay, spare_size=9) == message
    assert error_of(Overlay.load, {"spare_size": 9}) == message
    assert error_of(Overlay.load, {"spare_size": 9}, "stack") == f"stack: {message}"


def test_a_config_error_is_one_that_the_command_line_prints() -> None:
    assert issubclass(ConfigError, EpicastError)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Annotated[int, msgspec.Meta(gt=0)], "an integer above 0"),
        (Annotated[int, msgspec.Meta(ge=0)], "an integer at least 0"),
        (Annotated[float, msgspec.Meta(lt=1)], "a number below 1"),
        (Annotated[float, msgspec.Meta(le=1)], "a number at most 1"),
        (Annotated[float, msgspec.Meta(gt=0, lt=1)], "a number from above 0 to below 1"),
        (int | None, "an integer, or nothing"),
        (list[str], "a list, each a text"),
        (dict[str, int], "dict[str, int]"),
    ],
)
def test_what_a_field_accepts_is_told_in_words(kind: Any, words: str) -> None:
    assert describe(kind) == words
