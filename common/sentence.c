#include "sentence.h"

#include "shown_text.h"
#include "text_numbers.h"

#include <string.h>

enum { SHOWN_BYTES = 128 };

void sentence_add(struct sentence *sentence, const char *text) {
    const size_t room = SENTENCE_BYTES - 1 - sentence->length;
    const size_t size = strnlen(text, room);
    memcpy(sentence->text + sentence->length, text, size);
    sentence->length += size;
    sentence->text[sentence->length] = 0;
}

void sentence_add_value(struct sentence *sentence, const char *value, size_t size) {
    char shown[SHOWN_BYTES + 1];
    shown[shown_text(shown, SHOWN_BYTES, value, size)] = 0;
    sentence_add(sentence, shown);
}

void sentence_add_number(struct sentence *sentence, uint64_t number) {
    char digits[NUMBER_BYTES];
    (void)number_write(digits, 10, number);
    sentence_add(sentence, digits);
}
