/* The flags by which we open files, so that no call forgets one. A file may be another one than we
 * expect: in another root a path of /proc may be a terminal, which would become the controlling
 * terminal of a process that leads a session (O_NOCTTY), or a pipe without a writer
 * (O_NONBLOCK). Both do nothing to a regular file. A program that the process starts must not
 * inherit the file (O_CLOEXEC).
 *
 * test_opens.py refuses each open in the sources without them, but by O_PATH, which opens no
 * device, or by O_DIRECTORY, which opens nothing else. */
#ifndef OTELPROF_OPEN_FLAGS_H
#define OTELPROF_OPEN_FLAGS_H

#include <fcntl.h>

enum {
    OPEN_SAFELY = O_CLOEXEC | O_NOCTTY | O_NONBLOCK, /* with O_WRONLY or O_RDWR */
    OPEN_TO_READ = O_RDONLY | OPEN_SAFELY
};

#endif
