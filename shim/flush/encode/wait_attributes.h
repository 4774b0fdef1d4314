/* Converts a sample's wait (wait_detail.h) to attributes.
 *
 * Pyroscope turns every text and integer into a label, and each of the label's values into a
 * series. So data with many values has another form: a holder's stack is a list of names, outermost
 * function first, and a duration is a number with a fraction. Context: flush.
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
    /* wait whose holder's stack was listed last; it is kept because samples of threads that wait
     * for one lock are neighbours */
    const struct wait_detail *last;
    int32_t last_stack;
};

/* Adds the attribute to the dictionary, and returns its reference; 0 if it does not belong to
 * waits, or the sample does not have it. */
int32_t wait_attribute(struct wait_attributes *waits, const struct harvest_sample *sample,
                       enum sample_attribute attribute);

#endif
