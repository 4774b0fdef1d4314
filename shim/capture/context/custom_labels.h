/* Reads the labels that a program sets by one of the custom-labels libraries (Polar Signals),
 * version 1.
 *
 * A thread-local variable, custom_labels_current_set, points to the thread's labels, or is NULL:
 * {labels, count, capacity}; a label is a key and a value, each {length, bytes}. A NULL key marks a
 * label that was removed; of several labels with one key the first counts. The library publishes
 * its version in custom_labels_abi_version. Its writes are ordered so that a signal handler on the
 * thread can read the data at any moment.
 */
#ifndef OTELPROF_CUSTOM_LABELS_H
#define OTELPROF_CUSTOM_LABELS_H

#include "context_outcome.h"
#include "foreign_memory.h"
#include "sample_context.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Bounds the labels that are read. */
enum { CUSTOM_LABELS = 64 };

/* Returns true if `object` is a custom-labels library of version 1: by the file's name in `path`,
 * and by the version that it publishes. Context: calm, while the object stays loaded. */
bool custom_labels_are_of(const struct dl_phdr_info *object, const char *path);

/* Reads the labels of the pointer at `variable` (readable memory) as attributes with names. This
 * source has no span. A label with a key or a value of more than 255 bytes does not fit. Context:
 * signal. Async-signal-safe: yes. */
enum context_outcome custom_labels_read(uintptr_t variable, struct foreign_memory *memory,
                                        struct sample_context *context);

#endif
