"""Output files: each is there whole, or as it was before, no two are one, and none is another user's."""

import contextlib
import errno
import os
import secrets
import stat

MOST_LINKS = 40  # as the kernel follows


class OneFile(Exception):
    """Two outputs are one file; the message names both options."""


def refuse_one_file(output, page):
    """Raises OneFile if the names of --output and --flamegraph lead to one file, which need not exist yet. `page` may be None."""
    if not page:
        return
    is_one = os.path.realpath(output) == os.path.realpath(page)
    with contextlib.suppress(OSError):  # one of them does not exist
        is_one = is_one or os.path.samefile(output, page)
    if is_one:
        names = output if output == page else f"{output} and {page}"
        raise OneFile(f"--output and --flamegraph are one file, {names}: give each its own")


# --- where a name leads ---


class _Place:
    """The folder and name of an output, behind links that its user or root has made. In a folder that others write to,
    another user's link, file or pipe is refused: it leads, or shows, what is written to its owner."""

    def __init__(self, path):
        self.path, self.folder, self.facts = path, -1, None
        self.is_followed = False  # a link of /proc leads to an open file, which need not have a name
        at = path
        for _ in range(MOST_LINKS):
            self._step(at)
            if not self.facts or not stat.S_ISLNK(self.facts.st_mode) or self.is_followed:
                break
            at = os.path.join(os.path.dirname(at), os.readlink(self.name, dir_fd=self.folder))
        else:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        self.check(self.facts)

    def _step(self, at):
        folder, self.name = os.path.split(at)
        if not self.name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
        self.close()
        try:
            self.folder = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, self.path) from error
        try:
            self.facts = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            self.facts = None
            return
        if stat.S_ISLNK(self.facts.st_mode):
            if self.facts.st_uid not in (os.geteuid(), 0):
                self._refuse("a link", self.facts)
            self.is_followed = os.readlink(f"/proc/self/fd/{self.folder}").startswith("/proc/")

    def _is_shared(self):
        """Whether others can put a file into the folder."""
        folder = os.stat(".", dir_fd=self.folder)
        return folder.st_uid not in (os.geteuid(), 0) or bool(folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH))

    def check(self, facts):
        """A device is its machine's; a file or pipe must be ours. Some mounts give all files to one owner."""
        if not facts or self.is_followed:
            return
        if stat.S_ISREG(facts.st_mode) and facts.st_uid != os.geteuid() and self._is_shared():
            self._refuse("a file", facts)
        if stat.S_ISFIFO(facts.st_mode) and facts.st_uid not in (os.geteuid(), 0):
            self._refuse("a pipe", facts)

    def _refuse(self, kind, facts):
        raise PermissionError(errno.EPERM, f"{kind} of another user's (id {facts.st_uid}): nothing is written there; remove it, or give "
                              "another name", self.path)

    def is_special(self):
        return self.is_followed or bool(self.facts) and not stat.S_ISREG(self.facts.st_mode)

    def open(self, flags):
        """The file itself, not what has taken its name meanwhile."""
        nofollow = 0 if self.is_followed else os.O_NOFOLLOW
        try:
            descriptor = os.open(self.name, flags | nofollow | os.O_CLOEXEC, 0o666, dir_fd=self.folder)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, self.path) from error
        try:
            self.check(os.fstat(descriptor))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def mode(self):
        """Of our file that it takes the place of, or as any new one has it."""
        if self.facts:
            return self.facts.st_mode & 0o777
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask

    def close(self):
        if self.folder >= 0:
            os.close(self.folder)
        self.folder = -1


def append_file(path):
    """A file to whose end is written; it need not exist yet."""
    place = _Place(path)
    try:
        if place.facts and stat.S_ISREG(place.facts.st_mode) and place.facts.st_nlink > 1:
            raise PermissionError(errno.EPERM, "a file with several names, of which another may be in use: nothing is written there", path)
        descriptor = place.open(os.O_WRONLY | os.O_APPEND | (0 if place.facts else os.O_CREAT | os.O_EXCL))
    finally:
        place.close()
    return os.fdopen(descriptor, "ab")


# --- whole or as it was ---


class Output:
    """A file that is written beside the one whose place it takes, and is put there by begin()."""

    def __init__(self, path):
        self._place = _Place(path)
        self._beside = ""
        try:
            descriptor = -1 if self._place.is_special() else self._open_beside()
            if descriptor < 0:  # in place: a pipe, a device, or a folder that takes no other file
                descriptor = self._place.open(os.O_WRONLY | (0 if self._place.facts else os.O_CREAT | os.O_EXCL))
        except BaseException:
            self._place.close()
            raise
        self.file = os.fdopen(descriptor, "wb")

    def _open_beside(self):
        if self._place.facts and not os.access(self._place.name, os.W_OK, dir_fd=self._place.folder):
            return -1  # which says why
        name = f".otelprof-{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._place.folder)
            self._beside = name
            return descriptor
        return -1

    def begin(self):
        """From now on what is written is in the place; what was there before is gone."""
        self.file.flush()
        if self._beside:
            os.fchmod(self.file.fileno(), self._place.mode())
            os.replace(self._beside, self._place.name, src_dir_fd=self._place.folder, dst_dir_fd=self._place.folder)
            self._beside = ""
        elif stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):
            self.file.truncate(self.file.tell())

    def close(self):
        """Without begin() what was there stays."""
        try:
            self.file.close()
        finally:
            if self._beside:
                os.unlink(self._beside, dir_fd=self._place.folder)
            self._place.close()


@contextlib.contextmanager
def whole_file(path):
    """A file for bytes. It is put in place when it is whole: the output may be one of the files that are read, and a
    reading that fails or is interrupted leaves what was there."""
    output = Output(path)
    try:
        yield output.file
        output.begin()
    finally:
        output.close()
