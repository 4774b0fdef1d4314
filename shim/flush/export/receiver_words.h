/* A receiver's own words, as a line of the log may have them: they say what must be changed, and
 * only the receiver knows.
 *
 * They are bounded. A text that is too long loses its middle, because its front says what is wrong
 * and its end what the limit is. Headers are never logged, and a receiver may repeat one of ours:
 * words that contain one are not shown, and no words are where the URL has credentials or a query.
 * The log escapes what cannot be shown as it is (common/shown_text.h).
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
