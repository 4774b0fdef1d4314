/* Reads small files of figures from the kernel, in /proc and control groups.
 *
 * The mounts there may be another user's, with any content: a malformed file counts as missing. The
 * caller must check that paths may be followed (by_path.h). Context: flush.
 */
#ifndef OTELPROF_KERNEL_TEXT_H
#define OTELPROF_KERNEL_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { KERNEL_TEXT_BYTES = 8192 };

/* Reads the text of a regular file, as far as it fits. Returns false if the file is missing or
 * empty. */
bool kernel_text(const char *folder, const char *name, char text[static KERNEL_TEXT_BYTES]);

/* Returns the number at the file's beginning. UINT64_MAX: the file is missing, or begins with no
 * number ("max", "-1"). */
uint64_t kernel_number(const char *folder, const char *name);

/* Returns the number after `key`, the first word of a line; 0: no line begins with it. */
uint64_t kernel_value(const char *text, const char *key);

#endif
