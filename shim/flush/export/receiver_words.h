/* A receiver's own words, as a line of the log may have them: they say what must be changed, and
 * only the receiver knows.
 *
 * They are bounded, and what is too long loses its middle: at the front stands what is complained
 * of, at the end the limit. A receiver that repeats one of our headers would put a secret into the
 * log, where headers never are: such words are not shown, and none where the URL has credentials or
 * a query. What cannot be shown as it is, is for the log to escape (common/shown_text.h).
 * Context: flush.
 */
#ifndef OTELPROF_RECEIVER_WORDS_H
#define OTELPROF_RECEIVER_WORDS_H

#include "config.h"

#include <stddef.h>

/* Writes "what: words", or "what" where the receiver says no more, as at most `room` bytes to
 * `said`, the NUL included; with an empty `what` the words alone. Blanks and ends of lines around
 * the words are left out. */
void receiver_words(const struct config *config, const char *what, const char *words, char *said,
                    size_t room);

#endif
