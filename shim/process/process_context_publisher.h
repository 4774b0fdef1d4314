/* Publishes a process context (OTEP 4719): a process's description of itself, in a mapping named
 * OTEL_CTX. Readers in other processes, and the profiler's exporter, find it.
 *
 * A process has only one context: before it publishes, the caller must check that there is none.
 * Readers accept data if the time of publication was the same before and after the read. So a
 * change does not overwrite the last payload. A forked child does not inherit the parent's context.
 *
 * prctl names the mapping if the kernel supports that. Otherwise the mapping is of a memfd, and one
 * descriptor is open for a moment. No function calls libc's malloc or takes a lock: threads that
 * share a publication must order their calls. Context of all: calm. errno is preserved.
 */
#ifndef OTELPROF_PROCESS_CONTEXT_PUBLISHER_H
#define OTELPROF_PROCESS_CONTEXT_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONTEXT_PUBLICATION_BYTES = 8000 }; /* largest payload */

/* Describes an attribute: a text, or a list of texts. */
struct published_attribute {
    const char *key;
    const char *text;        /* NULL: `list` has the value */
    const char *const *list; /* ends in NULL */
};

struct published_attributes {
    const struct published_attribute *entries;
    size_t count;
};

/* Describes a publication. Initially zero: no context is published. */
struct process_context_publication {
    struct published_header *_Atomic header;
    unsigned turn; /* number of the next of two places that payloads take in turn */
    pid_t owner;   /* the publishing process; a forked child has the struct, but not the mapping */
};

/* Writes the message ProcessContext with these attributes of the resource, and with those of
 * `beside` next to the resource. Returns the number of its bytes; 0 if it does not fit into `room`.
 * Pure. */
size_t process_context_payload(uint8_t *to, size_t room, struct published_attributes resource,
                               struct published_attributes beside);

/* Returns whether the process publishes a context, the profiler's or another one. Reads
 * /proc/thread-self/maps. */
bool process_context_is_published(void);

/* Returns whether the process publishes a context besides `own`; another thread may be changing
 * `own`. Reads /proc/thread-self/maps, too. */
bool process_context_is_published_beside(const struct process_context_publication *own);

/* Publishes a copy of `size` bytes, and replaces an earlier publication. Returns false if `size` is
 * too large, or the kernel refused a mapping or its name; then the earlier publication stays. */
bool process_context_publish(struct process_context_publication *publication,
                             const uint8_t *payload, size_t size);

/* Removes the publication, if there is one. */
void process_context_unpublish(struct process_context_publication *publication);

#endif
