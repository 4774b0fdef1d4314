/* Publishes a process context (OTEP 4719): a process's description of itself, in a mapping named
 * OTEL_CTX. Readers in other processes, and the profiler's exporter, find it.
 *
 * A process has one: check whether there is one before publishing. Readers accept what they have
 * read if the time of publication was the same before and after, so a change never overwrites the
 * last publication. A forked child does not inherit its parent's.
 *
 * The mapping is named by prctl if the kernel can do that. Otherwise it is a memfd: then one
 * descriptor is open for a moment. No libc malloc, no lock: if threads share a publication, they
 * order their calls. Context of all: calm. errno is preserved.
 */
#ifndef OTELPROF_PROCESS_CONTEXT_PUBLISHER_H
#define OTELPROF_PROCESS_CONTEXT_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONTEXT_PUBLICATION_BYTES = 8000 }; /* of a payload at most */

/* An attribute: a text, or a list of texts. */
struct published_attribute {
    const char *key;
    const char *text;        /* NULL: `list` is its value */
    const char *const *list; /* ended by NULL */
};

struct published_attributes {
    const struct published_attribute *entries;
    size_t count;
};

/* A zeroed struct publishes nothing. */
struct process_context_publication {
    struct published_header *_Atomic header;
    unsigned turn; /* the one of two places that the next payload takes */
    pid_t owner;   /* a forked child has the struct, but not the mapping */
};

/* Writes the message ProcessContext with these attributes of the resource, and with those of
 * `beside` next to the resource. Returns its bytes; 0 if that is more than `room`. Pure. */
size_t process_context_payload(uint8_t *to, size_t room, struct published_attributes resource,
                               struct published_attributes beside);

/* Returns whether the process publishes a context, the profiler's or another. Reads
 * /proc/self/maps. */
bool process_context_is_published(void);

/* Returns whether the process publishes a context besides `own`, which another thread may be
 * changing. Reads /proc/self/maps, too. */
bool process_context_is_published_beside(const struct process_context_publication *own);

/* Publishes `size` bytes, which are copied, and replaces an earlier publication. false: too many,
 * or the kernel refused a mapping or its name; the earlier publication stays. */
bool process_context_publish(struct process_context_publication *publication,
                             const uint8_t *payload, size_t size);

/* Removes the publication, if there is one. */
void process_context_unpublish(struct process_context_publication *publication);

#endif
