/* Implements the call by which the program describes itself: the resource of its profiles. */
#define OTELPROF_IMPLEMENTATION
#include "otelprof.h"

#include "capture/capture.h"
#include "capture/thread_life.h"
#include "process/cpp_programs.h"
#include "process/process_context_publisher.h"

enum { MOST_ATTRIBUTES = 64 };

static struct {
    struct process_context_publication publication;
    /* is neither on the program's stack nor in its allocator's memory */
    uint8_t payload[CONTEXT_PUBLICATION_BYTES];
} resource;

static bool is_mine(void) {
    return resource.publication.header && resource.publication.owner == capture.pid;
}

int otelprof_resource_publish(const struct otelprof_attribute *attributes, size_t count) {
    struct published_attribute entries[MOST_ATTRIBUTES];
    if (!atomic_load(&capture.armed) || !profiler_tls.thread || !capture_is_of_this_thread() ||
        count > MOST_ATTRIBUTES ||
        (!is_mine() && process_context_is_published_beside(cpp_programs_publication())))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!attributes[i].key || !attributes[i].value)
            return 0;
        entries[i] =
            (struct published_attribute){.key = attributes[i].key, .text = attributes[i].value};
    }
    const size_t size = process_context_payload(resource.payload, sizeof resource.payload,
                                                (struct published_attributes){entries, count},
                                                (struct published_attributes){NULL, 0});
    return size > 0 && process_context_publish(&resource.publication, resource.payload, size);
}
