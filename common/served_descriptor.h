/* A descriptor of the helper's own table that is looked at while the helper waits
 * (process/served_descriptors.h). */
#ifndef OTELPROF_SERVED_DESCRIPTOR_H
#define OTELPROF_SERVED_DESCRIPTOR_H

/* `ready` is as poll(2) has it. It must not wait; it may add and remove descriptors. Context: the
 * helper, under the quiesce lock. */
typedef void serve_descriptor(void *arg, int descriptor, unsigned ready);

struct served_descriptor {
    int descriptor;
    short events;
    serve_descriptor *serve;
    void *arg;
};

#endif
