/* Reads what libotelprof-cpp.so publishes for the calling thread (OTEP 4947). */
#pragma once

#include "span.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

struct Record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t flags;
    uint16_t attributes_bytes;
};

enum : uint64_t { NO_SPAN = 0, GARBAGE = ~0ull };

/* Returns the loaded object that $ADAPTOR names, or NULL before it is loaded. */
inline void *adaptor() {
    static void *library;
    const char *const path = std::getenv("ADAPTOR");
    if (!library && path)
        library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return library;
}

/* Returns the number that the active span was made with. */
inline uint64_t published() {
    void *const library = adaptor();
    Record *const *const variable =
        library ? static_cast<Record **>(dlsym(library, "otel_thread_ctx_v1")) : nullptr;
    const Record *const record = variable ? *variable : nullptr;
    uint64_t number = 0;
    uint64_t of_trace = 0;
    if (!record || record->valid != 1)
        return NO_SPAN;
    std::memcpy(&number, record->span_id, sizeof number);
    std::memcpy(&of_trace, record->trace_id + 8, sizeof of_trace);
    const bool whole = number == of_trace && record->trace_id[0] == 0x0a && record->flags == 1 &&
                       record->attributes_bytes == 0;
    return whole ? number : static_cast<uint64_t>(GARBAGE);
}

/* Returns how long to wait: $WAIT_MS, else 30 s. */
inline int wait_ms() {
    const char *const given = std::getenv("WAIT_MS");
    return given ? std::atoi(given) : 30000;
}

/* Waits until the spans of this program are published. */
inline bool is_followed() {
    for (int i = 0; i < wait_ms() / 10; i++) {
        api::trace::Scope scope(make_span(99));
        if (published() == 99)
            return true;
        usleep(10000);
    }
    return false;
}
