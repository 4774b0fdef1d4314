"""Finds which module of one profile is which of another: the file of a program or a library may have another name in
each.

Modules of one name are the same. Of the others, those pairs are the same that have most names of functions in common.
"""

from dataclasses import replace


def _names(profile):
    """Returns by module the names of its functions."""
    found = {}
    for stack in profile.stacks:
        for frame in stack:
            if frame.module:
                found.setdefault(frame.module, set()).add(frame.name)
    return found


def _pairs(before, after):
    """Returns {module after: module before}."""
    here, there = _names(before), _names(after)
    lonely = [
        {module: names[module] for module in names.keys() - others.keys()}
        for names, others in ((here, there), (there, here))
    ]
    ranked = sorted(
        (
            (len(names & known), module, other)
            for module, names in lonely[1].items()
            for other, known in lonely[0].items()
        ),
        key=lambda it: (-it[0], it[1], it[2]),
    )
    found = {}
    for common, module, other in ranked:
        if common and module not in found and other not in found.values():
            found[module] = other
    return found


def _renamed(frame, pairs):
    module = pairs.get(frame.module)
    if not module:
        return frame
    return frame._replace(module=module, name=f"[{module}]" if frame.name == f"[{frame.module}]" else frame.name)


def with_modules_of(before, after):
    """Returns `after` with the modules' names of `before`."""
    pairs = _pairs(before, after)
    if not pairs:
        return after

    def kept(sums):
        result = {}
        for (stack, labels), value in sums.items():
            key = tuple(_renamed(frame, pairs) for frame in stack), labels
            result[key] = result.get(key, 0) + value
        return result

    return replace(after, samples=kept(after.samples), counts=kept(after.counts))
