/* Holds a promise about foreign text: a log shows it as one line of UTF-8. */
#ifndef FUZZ_SHOWN_H
#define FUZZ_SHOWN_H

#include "fuzz.h"
#include "shown_text.h"
#include "utf8.h"

static inline void check_shown(const char *text) {
    char shown[SHOWN_MOST + 1];
    shown[shown_text(shown, SHOWN_MOST, text, strlen(text))] = 0;
    promise(is_one_line(shown));
    for (const char *at = shown; *at; at += utf8_sequence(at))
        promise(utf8_sequence(at));
}

#endif
