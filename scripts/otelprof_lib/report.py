"""Tables of the hottest functions."""

from .aggregate import by_function


def readable(unit, value):
    if unit == "seconds":
        return f"{value:.3f} s"
    for name in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.1f} {name}"
        value /= 1024
    return f"{value:.1f} TiB"


def table(profile, rows):
    """One profile as lines of text."""
    total = profile.total or 1
    lines = [f"{profile.title}: {readable(profile.unit, profile.total)}"]
    lines.append(f"{'self':>20} {'total':>20}  function")
    for name, own, whole in by_function(profile)[:rows]:
        lines.append(
            f"{readable(profile.unit, own):>12} {100 * own / total:6.1f}% "
            f"{readable(profile.unit, whole):>12} {100 * whole / total:6.1f}%  {name}"
        )
    return "\n".join(lines)


def report(profiles, rows, kinds=None):
    shown = [profile for kind, profile in profiles.items() if not kinds or kind in kinds]
    if not shown:
        return "no samples"
    return "\n\n".join(table(profile, rows) for profile in shown)
