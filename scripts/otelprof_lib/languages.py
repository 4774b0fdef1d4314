"""Finds the languages of a file's code, and what the functions of one language account for.

Below a function of an interpreted language comes its interpreter, which the reader does not care about. With a
language selected, all that is below counts for the nearest function of that language.
"""

from dataclasses import replace

from .aggregate import TRUNCATED, Frame
from .foreign import printable
from .formats import percent
from .labels import NothingChosen

# readable names of OpenTelemetry's profile.frame.type; a type that is not here has no other name
NAMES = {
    "native": "native", "kernel": "kernel", "cpython": "Python", "jvm": "Java", "v8js": "JavaScript", "dotnet": ".NET",
    "ruby": "Ruby", "php": "PHP", "beam": "Erlang", "go": "Go", "perl": "Perl", "rust": "Rust",
}
COMPILED = ("native", "kernel", "go", "rust")  # no interpreter is between such a function and its callees


def name_of(language):
    return NAMES.get(language, language)


def _word(language):
    """Returns the word that `--language` accepts for a type."""
    return name_of(language).lower()


def _present(profile):
    return {frame.language for stack in profile.stacks for frame in stack} - {""}


def _called(profiles, word):
    """Returns the type of frames for a word: its readable name, or the type itself."""
    there = sorted(set().union(*map(_present, profiles.values())), key=_word)
    found = next((language for language in there if word.lower() in (_word(language), language)), None)
    if not found:
        known = f"; languages are {', '.join(map(_word, there))}" if there else ""
        raise NothingChosen(f"no sample has code of {word}{known}")
    return found


def _reduced(sums, language):
    none = (Frame(f"[no {name_of(language)}]"),)
    result = {}
    for (stack, labels), value in sums.items():
        kept = tuple(frame for frame in stack if frame.language == language) or none
        # unknown callers may be of the language, too
        key = (*kept, TRUNCATED) if stack[-1] == TRUNCATED else kept, labels
        result[key] = result.get(key, 0) + value
    return result


def only(profiles, word):
    """Returns (profiles with the frames of one language alone, its name); `[no ...]` stands for stacks without any."""
    language = _called(profiles, word)

    def of(profile):
        return replace(profile, samples=_reduced(profile.samples, language), counts=_reduced(profile.counts, language))

    return {name: of(profile) for name, profile in profiles.items()}, name_of(language)


# --- the hint ---


def _main_language(profile):
    """Returns (language, value of the stacks that have it), where that is more than half; None where it is compiled,
    or the only one."""
    sums = {}
    for stack, value in profile.stacks.items():
        for language in {frame.language for frame in stack} - {""}:
            sums[language] = sums.get(language, 0) + value
    interpreted = [(value, language) for language, value in sums.items() if language not in COMPILED]
    value, language = max(interpreted, default=(0, ""))
    return (language, value) if len(sums) > 1 and 2 * value > profile.total else None


def hint(profiles):
    """Returns how much of what is shown is below functions of an interpreted language; "" if less than half is."""
    found = [(profile, *main) for profile in profiles.values() if (main := _main_language(profile))]
    if not found:
        return ""
    language = found[0][1]
    shares = [f"{percent(value, profile.total)} of {profile.title}" for profile, other, value in found if other == language]
    name, word = map(printable, (name_of(language), _word(language)))
    return f"within {name}: {', '.join(shares)} (--language {word} shows its functions alone)"
