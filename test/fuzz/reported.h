/* Writes a file in which a runtime reports its code, from a fuzzer's input: in two parts. */
#ifndef OTELPROF_FUZZ_REPORTED_H
#define OTELPROF_FUZZ_REPORTED_H

#include "fuzz.h"

#include "symbolize/generated_name.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PROBES = 64 };

static inline int reported_file(const uint8_t *bytes, size_t size) {
    const int file = memfd_create("reported", MFD_CLOEXEC);
    promise(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    return file;
}

static inline void reported_append(int file, const uint8_t *bytes, size_t size) {
    promise(lseek(file, 0, SEEK_END) >= 0 && write(file, bytes, size) == (ssize_t)size);
}

/* Takes an address from the input itself: the eight bytes at `at`, or their meaning in
 * hexadecimal. */
static inline uint64_t reported_probe(const uint8_t *bytes, size_t size, size_t at, bool binary) {
    uint64_t address = 0;
    for (size_t i = 0; i < sizeof address && at + i < size; i++) {
        const uint8_t byte = bytes[at + i];
        if (binary)
            address |= (uint64_t)byte << 8 * i;
        else if (byte == ' ')
            break;
        else
            address = address << 4 | (byte <= '9' ? byte & 15u : (byte & 7u) + 9);
    }
    return address;
}

/* Checks the parts of a name. */
static inline void reported_name(const char *text) {
    struct arena arena = {0};
    struct generated_name name;
    promise(text[0] && strlen(text) < MAX_GENERATED_NAME);
    for (int i = RUNTIME_ANY; i <= RUNTIME_BEAM; i++) {
        generated_name_read(&arena, text, (enum runtime)i, &name);
        promise(name.line.function[0] && name.line.system_name && name.line.file && name.type);
        promise(name.line.start_line >= 0 && strlen(name.line.function) < MAX_GENERATED_NAME + 16);
    }
    arena_free(&arena);
}

#endif
