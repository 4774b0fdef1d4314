/* What a sample says about a wait (wait_detail.h), as attributes.
 *
 * Pyroscope makes a label, and for each of its values a series, of what is text or a whole number.
 * What has many values is neither: a holder's stack is a list of names, outermost function first,
 * and a duration is a number with a fraction. Context: flush.
 */
#ifndef OTELPROF_WAIT_ATTRIBUTES_H
#define OTELPROF_WAIT_ATTRIBUTES_H

#include "harvest.h"
#include "otlp_writer.h"
#include "symbolize/symbolize.h"

struct wait_attributes {
    const struct capture_api *api;
    struct otlp_writer *writer;
    struct symbolizer *symbolizer;
    /* the stack that was listed last: threads that wait for one lock come one after another */
    const struct wait_detail *last;
    int32_t last_stack;
};

/* Lists that attribute in the dictionary. 0: it is none of a wait's, or the sample does not have
 * it. */
int32_t wait_attribute(struct wait_attributes *waits, const struct harvest_sample *sample,
                       enum sample_attribute attribute);

#endif
