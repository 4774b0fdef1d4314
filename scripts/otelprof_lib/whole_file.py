"""Writes output files: each is there whole, or as it was before, no two are one, and none is another user's."""

import contextlib
import errno
import io
import os
import secrets
import stat
import sys

MOST_LINKS = 40  # as many as the kernel follows


class OneFile(Exception):
    """Is raised if two outputs are one file; the message names both options."""


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


def check_outputs(*paths):
    """Raises the error that an output would raise once it is made, before long work is done for it. Leaves nothing behind, and
    opens no pipe, which would end for its reader. A path may be None."""
    for path in paths:
        if not path or path == "-":
            continue
        place = _Place(path)
        place.close()
        if place.facts and stat.S_ISDIR(place.facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not place.is_special():
            Output(path).close()


# --- where a name leads ---


class _Place:
    """Finds the folder and name of an output, behind links that its user or root has made. In a folder that others
    write to, another user's link, file or pipe is refused: it would redirect the output, or show it to its owner."""

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
        """Returns whether other users can put a file into the folder."""
        folder = os.stat(".", dir_fd=self.folder)
        return folder.st_uid not in (os.geteuid(), 0) or bool(folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH))

    def check(self, facts):
        """Refuses a file or pipe that is not ours; a device belongs to the machine. Some mounts give all files to one
        owner."""
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
        """Opens the file itself, not one that has taken its name meanwhile."""
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
        """Returns the mode of our file that the output replaces, or that of any new file."""
        if self.facts:
            return self.facts.st_mode & 0o777
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask

    def close(self):
        if self.folder >= 0:
            os.close(self.folder)
        self.folder = -1


class _Named(io.FileIO):
    """Names the file in the error of a write, which a full disk makes: the system's error names none."""

    def __init__(self, descriptor, path):
        super().__init__(descriptor, "wb")
        self._path = path

    def write(self, data):
        try:
            return super().write(data)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, self._path) from error


def _opened(descriptor, path):
    return io.BufferedWriter(_Named(descriptor, path))


def append_file(path):
    """Opens a file to append to; it need not exist yet."""
    place = _Place(path)
    try:
        if place.facts and stat.S_ISREG(place.facts.st_mode) and place.facts.st_nlink > 1:
            raise PermissionError(errno.EPERM, "a file with several names, of which another may be in use: nothing is written there", path)
        descriptor = place.open(os.O_WRONLY | os.O_APPEND | (0 if place.facts else os.O_CREAT | os.O_EXCL))
    finally:
        place.close()
    return _opened(descriptor, path)


# --- whole or as it was ---


class Output:
    """Is a file that is written beside the one that it replaces, and is put in its place by begin()."""

    def __init__(self, path):
        self._place = _Place(path)
        self._beside = ""
        try:
            descriptor = -1 if self._place.is_special() else self._open_beside()
            if descriptor < 0:  # written in place: a pipe, a device, or a folder that takes no other file
                descriptor = self._place.open(os.O_WRONLY | (0 if self._place.facts else os.O_CREAT | os.O_EXCL))
        except BaseException:
            self._place.close()
            raise
        self.file = _opened(descriptor, path)

    def _open_beside(self):
        if self._place.facts and not os.access(self._place.name, os.W_OK, dir_fd=self._place.folder):
            return -1  # the opening below reports the reason
        name = f".otelprof-{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._place.folder)
            self._beside = name
            return descriptor
        return -1

    def begin(self):
        """Puts the output in its place: the earlier contents are gone."""
        self.file.flush()
        if self._beside:
            os.fchmod(self.file.fileno(), self._place.mode())
            os.replace(self._beside, self._place.name, src_dir_fd=self._place.folder, dst_dir_fd=self._place.folder)
            self._beside = ""
        elif stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):
            self.file.truncate(self.file.tell())

    def close(self):
        """Closes the output. Without begin() the earlier file stays."""
        try:
            self.file.close()
        finally:
            if self._beside:
                os.unlink(self._beside, dir_fd=self._place.folder)
            self._place.close()


def drop_output():
    """Drops what standard output has not taken, so that Python does not write it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def whole_file(path):
    """Yields a file for bytes. It is put in place when it is whole: the output may be one of the files that are read,
    and a reading that fails or is interrupted leaves the earlier file. `-` is standard output."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    output = Output(path)
    try:
        yield output.file
        output.begin()
    finally:
        output.close()
