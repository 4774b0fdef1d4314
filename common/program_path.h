/* Finds out which program this process runs.
 *
 * /proc/self/exe is the file that was given to exec. If that is the dynamic loader
 * (`/lib64/ld-linux-x86-64.so.2 ./app`: nix, AppImage, relocatable bundles), the program is another
 * file, which the loader has mapped. The kernel then had no interpreter to load, so AT_BASE is 0,
 * and glibc has replaced AT_PHDR by the program's. Context: calm, no allocation.
 */
#ifndef OTELPROF_PROGRAM_PATH_H
#define OTELPROF_PROGRAM_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the dynamic loader was started as a program. No system call. */
bool program_is_run_by_loader(void);

/* Writes the absolute path of the program's file. Returns its length; 0, and "", if it is unknown
 * or does not fit. */
size_t program_path(char *path, size_t size);

#endif
