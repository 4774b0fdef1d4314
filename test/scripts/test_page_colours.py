"""Colours of the page can be read and told apart, also by people who see colours differently."""

import itertools
import math
import re

import pytest
from otelprof_lib.aggregate import aggregate
from otelprof_lib.flamegraph import page
from test_flamegraph import CONTRASTS
from test_page_layout import IN_SCHEMES, ON_SCREENS, wall

pytestmark = pytest.mark.system

# what people see who lack one kind of cones: Machado, Oliveira, Fernandes (2009), in linear RGB
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
LEAST_DISTANCE = 0.05  # in OKLab, where 0.02 is the least that is noticed side by side
STATE_COLOURS = """
const probe = document.body.appendChild(document.createElement('div'));
const found = Object.fromEntries([...COLOURED, 'other'].map(word => {
  probe.style.background = fill(word);
  return [word, getComputedStyle(probe).backgroundColor.match(/\\d+/g).map(Number)];
}));
probe.remove();
return found;
"""


def linear(channel):
    part = channel / 255
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def seen(colour, eye):
    """Returns a colour in OKLab, as an eye sees it."""
    rgb = [linear(channel) for channel in colour[:3]]
    red, green, blue = (min(1, max(0, sum(a * b for a, b in zip(row, rgb)))) for row in eye)
    cones = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue, 0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue,
             0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    long, middle, short = (cone ** (1 / 3) for cone in cones)
    return (0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short, 1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
            0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short)


def luminance(colour):
    red, green, blue = map(linear, colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.fixture
def opened(browser, message, scheme):
    browser.prefer(scheme)
    return browser.open(page("colours", wall(message)))


@IN_SCHEMES
def test_families_of_waits_are_told_apart_by_every_eye(opened, scheme):
    colours, families = opened.ask(STATE_COLOURS), opened.ask("return FAMILIES")
    for (one, words), (other, more) in itertools.combinations(families.items(), 2):
        for name, eye in EYES.items():
            distance = math.dist(seen(colours[words[0]], eye), seen(colours[more[0]], eye))
            assert distance >= LEAST_DISTANCE, (one, other, name, distance)


@IN_SCHEMES
def test_every_state_has_a_colour_of_its_own(opened, scheme):
    colours = opened.ask(STATE_COLOURS)
    assert len({tuple(colour) for colour in colours.values()}) == len(colours)


@IN_SCHEMES
def test_a_pressed_chip_of_the_legend_can_be_read(opened, scheme):
    chips = opened.driver.find_elements("css selector", "#legend button")
    for chip in chips:
        opened.ask("arguments[0].click()", chip)
        assert chip.get_attribute("aria-pressed") == "true"
        assert min(opened.ask(CONTRASTS))[0] >= 4.5, min(opened.ask(CONTRASTS))


@ON_SCREENS
@IN_SCHEMES
def test_all_that_is_new_can_be_read(browser, message, width, height, scheme):
    browser.resize(width, height)
    browser.prefer(scheme)
    browser.open(page("colours", wall(message)))
    browser.ask("choose(3); element('filter-view').click(); isListWanted = true; showList(); showTip({clientX: 50, clientY: 90}, 2); openMenu(2, 30, 200)")
    contrasts = CONTRASTS.replace(".frame, button", "#tip td, #tip strong, #tip p, .menu button, #details span, #more-details, #counted, .above, select, .frame, button")
    assert min(browser.ask(contrasts))[0] >= 4.5, min(browser.ask(contrasts))


@IN_SCHEMES
def test_frames_stand_off_from_the_page_and_from_each_other(browser, message, scheme):
    browser.prefer(scheme)
    stacks = {(f"m!f{number}", "m!main"): 1 for number in range(3)}
    browser.open(page("frames", aggregate([message().profile("samples", "count", 10**9, stacks).request])))
    colours = {tuple(map(int, re.findall(r"\d+", frame["colour"]))) for frame in browser.frames() if frame["name"].startswith("f")}
    page_colour = [int(part) for part in re.findall(r"\d+", browser.ask("return getComputedStyle(document.body).backgroundColor"))]
    assert len(colours) == 3
    least = 1.1
    for one, other in itertools.combinations(sorted(map(luminance, colours)), 2):
        assert (other + 0.05) / (one + 0.05) >= least
    if scheme == "dark":
        assert min((luminance(colour) + 0.05) / (luminance(page_colour) + 0.05) for colour in colours) >= 1.9
