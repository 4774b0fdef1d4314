/* Builds a sentence of a warning without vsnprintf, which may read the locale. A sentence that is
 * too long is cut. Context: any. Async-signal-safe: yes. */
#ifndef OTELPROF_SENTENCE_H
#define OTELPROF_SENTENCE_H

#include <stddef.h>
#include <stdint.h>

enum { SENTENCE_BYTES = 512 };

/* Holds a sentence. Initially {.length = 0}; `text` ends in NUL after the first addition. */
struct sentence {
    char text[SENTENCE_BYTES];
    size_t length;
};

/* Adds the profiler's own words. */
void sentence_add(struct sentence *sentence, const char *text);

/* Adds `size` bytes of foreign text, made printable as in shown_text.h: 128 bytes at most. */
void sentence_add_value(struct sentence *sentence, const char *value, size_t size);

void sentence_add_number(struct sentence *sentence, uint64_t number);

#endif
