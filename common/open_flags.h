/* Defines the flags with which the profiler opens files. A path may lead to another file than the
 * profiler expects. In another root a path of /proc may be a terminal: with O_NOCTTY it does not
 * become the controlling terminal of a process that leads a session. The path may be a pipe without
 * a writer: with O_NONBLOCK the open does not wait for one. Both flags do nothing to a regular
 * file. With O_CLOEXEC a program that the process starts does not inherit the file.
 *
 * test_opens.py refuses each open in the sources without these flags, except with O_PATH, which
 * opens no device, and with O_DIRECTORY, which opens only folders. */
#ifndef OTELPROF_OPEN_FLAGS_H
#define OTELPROF_OPEN_FLAGS_H

#include <fcntl.h>

enum {
    OPEN_SAFELY = O_CLOEXEC | O_NOCTTY | O_NONBLOCK, /* with O_WRONLY or O_RDWR */
    OPEN_TO_READ = O_RDONLY | OPEN_SAFELY
};

#endif
