/* Has functions whose names no demangler finishes: a conversion operator in the template arguments
 * of another, each of which a demangler tries twice. uses_library loads this library.
 */
#include "cpu_work.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A name of 158 bytes takes a second, one of 363 bytes takes for ever. */
#define LONG_NAME                                                                                  \
    "_ZcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT"             \
    "_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IiEEEEEEEEEEEEEEEEEEEEEEEEEv"
#define ENDLESS_NAME                                                                               \
    "_ZcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT"             \
    "_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT"             \
    "_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT"             \
    "_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IcvT_IiEEEEEEEEEEEEEEEEE"             \
    "EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEv"

NOIPA void long_name(uint64_t ns) __asm__(LONG_NAME);
NOIPA void endless_name(uint64_t ns) __asm__(ENDLESS_NAME);
NOIPA void add(uint64_t ns) __asm__("_ZN4shop4Cart3addEi");
void *work_of_a(int milliseconds, int unused);

static void *volatile object;

NOIPA void long_name(uint64_t ns) {
    object = malloc(100);
    WORK_FOR(ns);
    free(object);
}

NOIPA void endless_name(uint64_t ns) {
    object = malloc(100);
    WORK_FOR(ns);
    free(object);
}

NOIPA void add(uint64_t ns) {
    object = malloc(100);
    WORK_FOR(ns);
    free(object);
}

void *work_of_a(int milliseconds, int unused) {
    (void)unused;
    for (int i = 0; i < milliseconds; i += 30) {
        long_name(10 * NS_PER_MS);
        endless_name(10 * NS_PER_MS);
        add(10 * NS_PER_MS);
    }
    return NULL;
}
