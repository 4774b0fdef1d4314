/* Describes a descriptor of the helper's own table that the helper polls while it waits
 * (process/served_descriptors.h). */
#ifndef OTELPROF_SERVED_DESCRIPTOR_H
#define OTELPROF_SERVED_DESCRIPTOR_H

/* Handles a descriptor that is ready. `ready` has the bits of poll(2). The function must not wait;
 * it may add and remove descriptors. Context: the helper, under the quiesce lock. */
typedef void serve_descriptor(void *arg, int descriptor, unsigned ready);

struct served_descriptor {
    int descriptor;
    short events;
    serve_descriptor *serve;
    void *arg;
};

#endif
