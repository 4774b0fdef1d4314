/* Finds the file of the program that this process runs.
 *
 * /proc/self/exe is the file that was given to exec. If that is the dynamic loader
 * (`/lib64/ld-linux-x86-64.so.2 ./app`: nix, AppImage, relocatable bundles), the program is another
 * file, which the loader has mapped. Then AT_BASE is 0, because the kernel had no interpreter to
 * load, and glibc has set AT_PHDR to the program's headers. Without /proc the file is found by its
 * name (started_file.h). Context: calm, no allocation.
 */
#ifndef OTELPROF_PROGRAM_PATH_H
#define OTELPROF_PROGRAM_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the dynamic loader was started as a program. Makes no system call. */
bool program_is_run_by_loader(void);

/* Writes the absolute path that a link of /proc leads to. Returns its length; 0, and "", if the
 * link cannot be read, or its path does not fit. */
size_t program_link(const char *link, char *path, size_t size);

/* Writes the absolute path of the program's file. Returns its length; 0, and "", if it is unknown
 * or does not fit. */
size_t program_path(char *path, size_t size);

#endif
