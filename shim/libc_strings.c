/* Defines the profiler's own versions of libc's functions for short texts and for sets of signals.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Returns a character. Reads volatile: a compiler that recognises the loop would replace it by a
 * call of the same function. */
static char at(const char *text, size_t place) {
    return ((const volatile char *)text)[place];
}

/* --- texts --- */

size_t strnlen(const char *text, size_t most) {
    size_t size = 0;
    while (size < most && at(text, size))
        size++;
    return size;
}

char *stpcpy(char *to, const char *from) {
    const size_t size = strlen(from);
    memcpy(to, from, size + 1);
    return to + size;
}

char *strchr(const char *text, int wanted) {
    while (at(text, 0) != (char)wanted)
        if (!at(text++, 0))
            return NULL;
    return (char *)(uintptr_t)text;
}

char *strrchr(const char *text, int wanted) {
    const char *found = NULL;
    for (;; text++) {
        if (at(text, 0) == (char)wanted)
            found = text;
        if (!at(text, 0))
            return (char *)(uintptr_t)found;
    }
}

/* Returns true if `set` contains the character. Does not use strchr(), which would find the text's
 * final 0 in every set. */
static bool byte_is_one_of(char c, const char *set) {
    while (at(set, 0) && at(set, 0) != c)
        set++;
    return at(set, 0);
}

size_t strspn(const char *text, const char *set) {
    size_t size = 0;
    while (byte_is_one_of(at(text, size), set))
        size++;
    return size;
}

size_t strcspn(const char *text, const char *set) {
    size_t size = 0;
    while (at(text, size) && !byte_is_one_of(at(text, size), set))
        size++;
    return size;
}

char *strpbrk(const char *text, const char *set) {
    text += strcspn(text, set);
    return at(text, 0) ? (char *)(uintptr_t)text : NULL;
}

void *memchr(const void *bytes, int wanted, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (at(bytes, i) == (char)wanted)
            return (char *)(uintptr_t)bytes + i;
    return NULL;
}

char *strstr(const char *text, const char *wanted) {
    return memmem(text, strlen(text), wanted, strlen(wanted));
}

/* --- sets of signals: bit 0 of the first word is signal 1 --- */

enum { WORD_BITS = 8 * sizeof(unsigned long), SIGNALS = 64 };
/* Numbers the signals by which libc interrupts threads: sigfillset() leaves them out (nptl(7),
 * "NPTL and signals").
 */
enum { LIBC_SIGNALS_FROM = 32, LIBC_SIGNALS = 2 };

static unsigned long *sigset_word(const sigset_t *set, int number) {
    return (unsigned long *)(uintptr_t)set + (number - 1) / WORD_BITS;
}

static unsigned long sigset_bit(int number) {
    return 1UL << (number - 1) % WORD_BITS;
}

static bool is_signal(int number) {
    if (number >= 1 && number <= SIGNALS)
        return true;
    errno = EINVAL;
    return false;
}

int sigemptyset(sigset_t *set) {
    memset(set, 0, sizeof *set);
    return 0;
}

int sigaddset(sigset_t *set, int number) {
    if (!is_signal(number))
        return -1;
    *sigset_word(set, number) |= sigset_bit(number);
    return 0;
}

int sigdelset(sigset_t *set, int number) {
    if (!is_signal(number))
        return -1;
    *sigset_word(set, number) &= ~sigset_bit(number);
    return 0;
}

int sigismember(const sigset_t *set, int number) {
    return is_signal(number) ? (*sigset_word(set, number) & sigset_bit(number)) != 0 : -1;
}

int sigfillset(sigset_t *set) {
    memset(set, -1, sizeof *set);
    for (int i = 0; i < LIBC_SIGNALS; i++)
        (void)sigdelset(set, LIBC_SIGNALS_FROM + i);
    return 0;
}
