/* Leaves frames of code that no table describes: generated, or of an object whose tables leave it
 * out.
 *
 * Its instructions (code_rule.h) are tried first, then a frame record. Both are guesses, so a
 * return address is believed only behind a call, on a stack that only goes up; where neither leads
 * to one the walk ends. The instructions of generated code are read where a frame record cannot be
 * trusted: in the leaf, and where there is none.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_UNDESCRIBED_H
#define OTELPROF_UNDESCRIBED_H

#include "unwind.h"
#include "walk_frame.h"

/* Out of code outside of objects, or in a large gap of an object's tables. Cost: in a leaf about
 * 2 µs, otherwise 0.2 µs. */
enum step step_out_of_generated(const struct unwinder *unwinder, struct unwind *u,
                                struct frame *frame);

/* Leaves code of an object; `rule` is the result of code_rule(). */
enum step step_out_of_object(const struct unwinder *unwinder, struct unwind *u, struct frame *frame,
                             struct rule rule);

#endif
