/* Finds the program that this process emulates if the process runs qemu-user: `qemu-ARCH [options]
 * program [arguments]`, or the same by way of binfmt_misc. The operator knows the process by the
 * name of that program, not by qemu's. The rule for options is that of qemu's linux-user/main.c.
 * Context: flush.
 */
#ifndef OTELPROF_EMULATED_PROGRAM_H
#define OTELPROF_EMULATED_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if a process that runs this file is qemu-user, by the file's name. */
bool emulates_a_program(const char *executable);

/* Returns the program's path as qemu got it: a text within `arguments`. Returns NULL if the process
 * is not qemu-user, or if the arguments name no program. `executable`: the path of the process's
 * file. `arguments`: `size` bytes as /proc/self/cmdline has them. */
const char *emulated_program(const char *executable, const char *arguments, size_t size);

#endif
