/* Implements the call by which the program describes itself: the resource of its profiles. */
#define OTELPROF_IMPLEMENTATION
#include "otelprof.h"

#include "capture/capture.h"
#include "capture/thread_life.h"
#include "process/cpp_programs.h"
#include "process_context_publisher.h"

enum { MOST_ATTRIBUTES = 64 };

static struct process_context_publication publication;

static bool is_mine(void) {
    return publication.header && publication.owner == capture.pid;
}

/* Keeps the payload off the program's stack, and out of its allocator. */
static uint8_t payload[CONTEXT_PUBLICATION_BYTES];

int otelprof_resource_publish(const struct otelprof_attribute *attributes, size_t count) {
    struct published_attribute entries[MOST_ATTRIBUTES];
    if (!atomic_load(&capture.armed) || !own_tls.thread || !capture_is_of_this_thread() ||
        count > MOST_ATTRIBUTES ||
        (!is_mine() && process_context_is_published_beside(cpp_programs_publication())))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!attributes[i].key || !attributes[i].value)
            return 0;
        entries[i] =
            (struct published_attribute){.key = attributes[i].key, .text = attributes[i].value};
    }
    const size_t size = process_context_payload(payload, sizeof payload,
                                                (struct published_attributes){entries, count},
                                                (struct published_attributes){NULL, 0});
    return size > 0 && process_context_publish(&publication, payload, size);
}
