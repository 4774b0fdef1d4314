/* Small files in which the kernel tells figures, of /proc and of control groups.
 *
 * What is mounted there may be others' and say anything: what has not the form that it should have
 * is as if it was not there. Who calls has asked whether the path may be followed (by_path.h).
 * Context: flush.
 */
#ifndef OTELPROF_KERNEL_TEXT_H
#define OTELPROF_KERNEL_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { KERNEL_TEXT_BYTES = 8192 };

/* The text of a regular file, or what fits of it. false: it is not there, or says nothing. */
bool kernel_text(const char *folder, const char *name, char text[static KERNEL_TEXT_BYTES]);

/* What a file begins with. UINT64_MAX: it is not there, or it is no number ("max", "-1"). */
uint64_t kernel_number(const char *folder, const char *name);

/* The number behind a line's first word in a text; 0: no line begins so. */
uint64_t kernel_value(const char *text, const char *key);

#endif
