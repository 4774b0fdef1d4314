"""Writes the list of materials of a release, as SPDX 2.3 in JSON: our files, and the third-party parts inside each."""

import hashlib
import json
import uuid
from datetime import datetime, timezone

from components import COPY, EXPORTER, OURS, components, licences_of
from tree import paths_in

PUBLIC_DOMAIN = {
    "licenseId": "LicenseRef-public-domain",
    "name": "public domain",
    "extractedText": "liblzma has been put into the public domain, and may be used, changed and distributed without conditions; "
                     "licences/xz-utils has its authors' words.",
}


def identifier(kind, name):
    return f"SPDXRef-{kind}-" + "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in name)


def checksums(content, *algorithms):
    return [{"algorithm": name, "checksumValue": hashlib.new(name.lower(), content).hexdigest()} for name in algorithms]


def file_entry(name, content, licence=OURS):
    return {
        "SPDXID": identifier("File", name),
        "fileName": f"./{name}",
        "checksums": checksums(content, "SHA1", "SHA256"),
        "licenseConcluded": licence,
        "licenseInfoInFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION",
    }


def package_entry(name, version, licence, **more):
    return {
        "SPDXID": identifier("Package", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": "packageVerificationCode" in more,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def analyzed(files):
    """Returns the fields of a package all of whose files are listed (SPDX 2.3, 7.9)."""
    sums = sorted(entry["checksums"][0]["checksumValue"] for entry in files)
    return {"packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()}}


def files_of(tree):
    for path in paths_in(tree):
        if path.is_file() and not path.is_symlink():
            name = path.relative_to(tree).as_posix()
            yield file_entry(name, path.read_bytes(), licences_of(components(tree, EXPORTER)) if name == EXPORTER else OURS)


def component_entry(row):
    purl = f"pkg:deb/debian/{row.package}@{row.version.replace(':', '%3A').replace('+', '%2B')}?arch=source&distro={row.release}"
    return package_entry(
        row.package, row.version, row.licence,
        packageFileName=f"{row.package}_{row.version.split(':')[-1]}.dsc",
        checksums=[{"algorithm": "SHA256", "checksumValue": row.hash}],
        sourceInfo="Debian's source package; the hash is that of its .dsc, which has those of its other files",
        externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}])


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def relations(rows, release, image, files, copy):
    library = next(entry for entry in files if entry["fileName"] == f"./{EXPORTER}")
    yield relation("SPDXRef-DOCUMENT", "DESCRIBES", release["SPDXID"])
    yield relation("SPDXRef-DOCUMENT", "DESCRIBES", image["SPDXID"])
    yield relation(image["SPDXID"], "CONTAINS", release["SPDXID"])
    yield relation(image["SPDXID"], "CONTAINS", copy["SPDXID"])
    for entry in files:
        yield relation(release["SPDXID"], "CONTAINS", entry["SPDXID"])
    for row in rows:
        holder = {EXPORTER: library, COPY: copy}[row.inside]
        yield relation(holder["SPDXID"], "STATIC_LINK", identifier("Package", row.package))


def materials(tree, copy_program, version, time):
    """Returns the document's text. tree: the bundle's folder; copy_program: the image's cp."""
    rows = components(tree)
    files = list(files_of(tree))
    copy = file_entry("bin/cp", copy_program.read_bytes(), licences_of(components(tree, COPY), ours=None))
    release = package_entry("otelprof", version, licences_of(components(tree, EXPORTER)), primaryPackagePurpose="LIBRARY", **analyzed(files))
    image = package_entry("otelprof-image", version, licences_of(rows), primaryPackagePurpose="CONTAINER", **analyzed([copy]))
    created = datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"otelprof-{version}",
        "creationInfo": {"created": created, "creators": [f"Tool: otelprof-make-bundle-{version}"]},
        "packages": [release, image, *map(component_entry, rows)],
        "files": [*files, copy],
        "hasExtractedLicensingInfos": [PUBLIC_DOMAIN],
        "relationships": list(relations(rows, release, image, files, copy)),
    }
    # one name for one content
    name = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    document["documentNamespace"] = f"urn:uuid:{name}"
    return json.dumps(document, indent=1) + "\n"
