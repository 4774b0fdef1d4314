/* Prepares a receiver's message for the log, because the message often names the setting to change.
 *
 * The message is bounded. A long one loses its middle, because its front usually has the problem
 * and its end the limit. Headers are never logged. A receiver may repeat a header of the exporter's
 * in its message: then a sentence replaces the message. The same happens to every message if the
 * URL has credentials or a query. The log escapes unprintable characters (common/shown_text.h).
 * Context: flush.
 */
#ifndef OTELPROF_RECEIVER_WORDS_H
#define OTELPROF_RECEIVER_WORDS_H

#include "config.h"

#include <stddef.h>

/* Writes "what: words" to `shown`, or "what" if the receiver sent no words; with an empty `what`
 * the words alone. Writes at most `room` bytes, the NUL included; `what` must fit. Surrounding
 * blanks and line ends are removed. */
void receiver_words(const struct config *config, const char *what, const char *words, char *shown,
                    size_t room);

#endif
