/* A sentence of a warning, put together by hand: vsnprintf may read the locale. It is cut where it
 * would be longer than its room. Context: any. Async-signal-safe: yes. */
#ifndef OTELPROF_SENTENCE_H
#define OTELPROF_SENTENCE_H

#include <stddef.h>
#include <stdint.h>

enum { SENTENCE_BYTES = 512 };

/* Begins as {.length = 0}; `text` ends in NUL from the first word on. */
struct sentence {
    char text[SENTENCE_BYTES];
    size_t length;
};

/* Adds our own words. */
void sentence_say(struct sentence *sentence, const char *text);

/* Adds what somebody else wrote, `size` bytes of it: as shown_text.h has it, 128 bytes at most. */
void sentence_say_value(struct sentence *sentence, const char *value, size_t size);

void sentence_say_number(struct sentence *sentence, uint64_t number);

#endif
