/* Describes a descriptor of the helper's own table that the helper polls while it waits
 * (process/watched_descriptors.h). */
#ifndef OTELPROF_WATCHED_DESCRIPTOR_H
#define OTELPROF_WATCHED_DESCRIPTOR_H

/* Handles a descriptor that is ready. `ready` has the bits of poll(2). The function must not wait;
 * it may add and remove descriptors. Context: the helper, under the quiesce lock. */
typedef void descriptor_callback(void *arg, int descriptor, unsigned ready);

struct watched_descriptor {
    int descriptor;
    short events;
    descriptor_callback *on_ready;
    void *arg;
};

#endif
