"""Gets the source of a Debian package, from the machine's own package sources.

Few machines have deb-src enabled. The machine's Debian entries are copied into a folder here, for sources instead of
packages; the configuration in /etc/apt stays unchanged.
"""

import re
import shutil
import subprocess
from pathlib import Path

ETC = Path("/etc/apt")
OF_DEBIAN = r"\S+://\S+/debian(-security)?/?"  # other vendors' packages are not queried


class Unavailable(Exception):
    """Is raised if the suite is not available here, with the reason."""


def source_entries():
    """Returns the machine's entries as deb-src: file name -> text."""
    entries = {}
    for path in [ETC / "sources.list", *sorted(ETC.glob("sources.list.d/*.list"))]:
        text = path.read_text() if path.exists() else ""
        found = re.findall(rf"^deb(?:-src)?(\s.*{OF_DEBIAN}\s.*)$", text, re.MULTILINE)
        entries[path.name] = "".join(f"deb-src{match[0]}\n" for match in found)
    for path in sorted(ETC.glob("sources.list.d/*.sources")):
        stanzas = re.split(r"\n\s*\n", path.read_text())
        entries[path.name] = "\n\n".join(
            re.sub(r"^Types:.*", "Types: deb-src", stanza, flags=re.MULTILINE)
            for stanza in stanzas if re.search(rf"^URIs:.*{OF_DEBIAN}", stanza, re.MULTILINE)
        ) + "\n"
    return {name: text for name, text in entries.items() if text.strip()}


class Apt:
    def __init__(self, folder):
        self.folder = folder
        self.options = [
            "-q", "-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={folder}/sources",
            "-o", f"Dir::State::Lists={folder}/lists", "-o", "Dir::Cache::pkgcache=",
            "-o", "Dir::Cache::srcpkgcache=",
        ]

    def run(self, tool, *arguments, cwd=None):
        return subprocess.run(
            [tool, *self.options, *arguments], cwd=cwd, capture_output=True, text=True, check=False
        )

    def update(self):
        """Updates once per build folder."""
        if (self.folder / "lists").is_dir():
            return
        entries = source_entries()
        if not entries:
            raise Unavailable("the machine has no Debian package source")
        (self.folder / "sources").mkdir(parents=True, exist_ok=True)
        for name, text in entries.items():
            name = name if name.endswith((".list", ".sources")) else f"{name}.list"
            (self.folder / "sources" / name).write_text(text)
        (self.folder / "lists" / "partial").mkdir(parents=True)
        done = self.run("apt-get", "update")
        if done.returncode != 0:
            shutil.rmtree(self.folder / "lists")
            raise Unavailable(f"apt-get update for sources: {done.stderr.strip()[-200:]}")

    def versions(self, package):
        done = self.run("apt-cache", "showsrc", package)
        return list(dict.fromkeys(re.findall(r"^Version: (\S+)", done.stdout, re.MULTILINE)))


def unpack(package, folder):
    """Unpacks the source of `package` below `folder`; returns its path. Kept for the next time."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-source") is None:
        raise Unavailable("apt-get and dpkg-source (Debian: dpkg-dev) are needed for its source")
    home = folder / package
    tree = home / "source"
    if tree.is_dir():
        return tree
    apt = Apt(folder / "apt")
    apt.update()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    error = "no such source package"
    for version in reversed(apt.versions(package)):  # a mirror may lack the newest
        done = apt.run("apt-get", "source", "--download-only", f"{package}={version}", cwd=home)
        if done.returncode == 0:
            break
        error = done.stderr.strip()[-200:]
    else:
        raise Unavailable(f"apt-get source {package}: {error}")
    (description,) = home.glob("*.dsc")
    subprocess.run(
        ["dpkg-source", "--no-check", "-x", description.name, "unpacked"],
        cwd=home, check=True, capture_output=True,
    )
    (home / "unpacked").rename(tree)
    return tree
