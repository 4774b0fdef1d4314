"""One self-contained page with the flame graphs of a capture: no server, no network."""

import html
import json
import os
import re

from .places import page_parts


def _tree(profile):
    """The stacks as a tree of {name, value, children}, root first."""
    root = {"name": "all", "value": profile.total, "children": {}}
    for stack, value in profile.stacks.items():
        node = root
        for name in reversed(stack):
            node = node["children"].setdefault(name, {"name": name, "value": 0, "children": {}})
            node["value"] += value
    # lists instead of dictionaries, without recursion: stacks may be deep
    pending = [root]
    while pending:
        node = pending.pop()
        node["children"] = list(node["children"].values())
        pending.extend(node["children"])
    return root


def _to_json(root):
    """json.dumps would recurse as deep as the stacks are."""
    pieces = []
    pending = [(root, "open")]
    while pending:
        node, action = pending.pop()
        if action != "open":
            pieces.append(action)
            continue
        pieces.append(
            f'{{"name":{json.dumps(node["name"])},"value":{node["value"]!r},"children":['
        )
        pending.append((None, "]}"))
        for index, child in enumerate(reversed(node["children"])):
            pending.append((child, "open"))
            if index < len(node["children"]) - 1:
                pending.append((None, ","))
    return "".join(pieces)


def _data(title, profiles):
    items = ",".join(
        f'{{"title":{json.dumps(profile.title)},"unit":{json.dumps(profile.unit)},'
        f'"root":{_to_json(_tree(profile))}}}'
        for profile in profiles.values()
    )
    text = f'{{"title":{json.dumps(title)},"profiles":[{items}]}}'
    # no name can end the script element
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page(title, profiles):
    """The page as text."""

    def part(name):
        with open(os.path.join(page_parts(), name), encoding="utf-8") as file:
            return file.read()

    parts = {
        "TITLE": html.escape(title),
        "CSS": part("d3-flamegraph.css"),
        "D3": part("d3.min.js").replace("</script", "<\\/script"),
        "FLAMEGRAPH": part("d3-flamegraph.min.js").replace("</script", "<\\/script"),
        "DATA": _data(title, profiles),
    }
    # in one pass, so that a mark in a title or name stays what it is
    return re.sub(f"@({'|'.join(parts)})@", lambda mark: parts[mark[1]], part("page.html"))


def write_page(path, title, profiles):
    # a command line may hold bytes that are no UTF-8
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page(title, profiles))
