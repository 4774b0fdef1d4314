"""Makes an OCI image layout: one layer, with the bundle and a static cp, for an init container that copies it into a
volume."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from datetime import datetime, timezone

from components import components, licences_of
from tree import mode_of, paths_in

NOBODY = "65534:65534"
COMMAND = ["/bin/cp", "-r", "/otelprof/.", "/target/"]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def tar_of(root, time, prefix=""):
    """Returns all of a folder as a tar, every owner root, all times equal."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in paths_in(root):
            entry = tar.gettarinfo(path, prefix + path.relative_to(root).as_posix())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = time
            entry.mode = 0o777 if entry.issym() else mode_of(path)
            tar.addfile(entry, io.BytesIO(path.read_bytes()) if entry.isreg() else None)
    return buffer.getvalue()


class Layout:
    """Is the folder that is built; each blob has its own hash as its name."""

    def __init__(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.blobs = folder / "blobs/sha256"
        self.blobs.mkdir(parents=True)
        self.write("oci-layout", {"imageLayoutVersion": "1.0.0"})

    def write(self, name, content):
        (self.folder / name).write_text(json.dumps(content, sort_keys=True))

    def blob(self, media_type, content):
        """Adds a blob, and returns its descriptor; contents other than bytes are written as JSON."""
        content = content if isinstance(content, bytes) else json.dumps(content, sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest()
        (self.blobs / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def annotations(tree, version, created):
    # without a base image: none is named
    return {
        "org.opencontainers.image.title": "otelprof",
        "org.opencontainers.image.description": "Copies libotelprof into a volume, from an init container",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": licences_of(components(tree)),
        "org.opencontainers.image.created": created,
    }


def write_image(root, folder, version, arch, time):
    """root: the image's contents, with the bundle in its folder otelprof."""
    created = datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    notes = annotations(root / "otelprof", version, created)
    layout = Layout(folder)
    tar = tar_of(root, time)
    layer = layout.blob(f"{LAYER}+gzip", gzip.compress(tar, 9, mtime=0))
    config = layout.blob(CONFIG, {
        "created": created, "architecture": ARCHITECTURES[arch], "os": "linux",
        "config": {"User": NOBODY, "Entrypoint": COMMAND, "WorkingDir": "/", "Labels": notes},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]},
        "history": [{"created": created, "created_by": "make bundle"}],
    })
    manifest = layout.blob(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer], "annotations": notes})
    manifest["platform"] = {"architecture": ARCHITECTURES[arch], "os": "linux"}
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version}
    layout.write("index.json", {"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]})
    folder.with_name(f"{folder.name}.tar").write_bytes(tar_of(folder, time))
