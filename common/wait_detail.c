#include "wait_detail.h"

const char *wait_kind_word(enum wait_kind kind) {
    static const char *const words[WAIT_KINDS] = {
        [WAIT_NONE] = "",
#define WAIT_KIND(constant, word, idle, meaning) [constant] = (word),
#include "wait_kinds.def"
    };
    return words[kind];
}
