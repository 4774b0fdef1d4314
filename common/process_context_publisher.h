/* Publishing a process context (OTEP 4719): what a process says about itself, in a mapping named
 * OTEL_CTX that readers of other processes, and our exporter, find.
 *
 * A process has one: whoever wants to publish looks first whether there is one already. Readers
 * believe what they have read if the time of publication was the same before and after, so a change
 * never writes over what was published last. A forked child has nothing of its parent's.
 *
 * The mapping is named by prctl where the kernel can do that, and is a memfd elsewhere: then one
 * descriptor is open for a moment. No libc malloc, no lock: who shares a publication between
 * threads orders its calls. Context of all: calm. errno is preserved.
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

/* Zeroed: nothing is published. */
struct process_context_publication {
    struct published_header *_Atomic header;
    unsigned turn; /* which of two places the next payload takes */
    pid_t owner;   /* a forked child has the struct, and not the mapping */
};

/* Writes the message ProcessContext with these attributes of the resource, and these beside it.
 * Returns its bytes; 0 if that is more than `room`. Pure. */
size_t process_context_payload(uint8_t *to, size_t room, struct published_attributes resource,
                               struct published_attributes beside);

/* Whether the process publishes one, whoever did. Reads /proc/self/maps. */
bool process_context_is_published(void);

/* Whether somebody else publishes one, beside `ours`, which may be another thread's. Likewise. */
bool process_context_is_published_beside(const struct process_context_publication *ours);

/* Publishes `size` bytes, which are copied; again: in the place of what was there. false: too many,
 * or the kernel refused a mapping or its name; what was published before stays. */
bool process_context_publish(struct process_context_publication *publication,
                             const uint8_t *payload, size_t size);

/* Takes it back. Nothing happens where nothing is published. */
void process_context_withdraw(struct process_context_publication *publication);

#endif
