// flags: -rdynamic
/* Publishes the context of its thread as instrumentations do (OTEP 4947), and works for one span:
 *     publishes_spans TIMES [HEX]
 * HEX: the payload of the process context (OTEP 4719), which has the names of the labels' keys;
 * without HEX there is none. The labels have the keys 0, 1, 1 again, and 9. It works once before
 * that, until an export is made: by then the profiler has found what it searches for. */
#define _GNU_SOURCE
#include "../../shim/otelprof.h"
#include "cpu_sample.h"
#include "flush_timeout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MILLISECONDS = 5, MAPPING_BYTES = 4096, MAX_PAYLOAD = 2048 };

struct __attribute__((packed)) record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t trace_flags;
    uint16_t attribute_bytes;
    uint8_t attributes[64];
};

struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_nano;
    uint64_t payload;
};

extern __thread const struct record *volatile otel_thread_ctx_v1;
__thread const struct record *volatile otel_thread_ctx_v1;

static struct record record = {.trace_id = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3,
                                            0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36},
                               .span_id = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7},
                               .valid = 1};

static void add(uint8_t key, const char *value) {
    uint8_t *const entry = record.attributes + record.attribute_bytes;
    entry[0] = key;
    entry[1] = (uint8_t)strlen(value);
    memcpy(entry + 2, value, entry[1]);
    record.attribute_bytes += (uint16_t)(2 + entry[1]);
}

static void publish(const char *hex) {
    static uint8_t payload[MAX_PAYLOAD];
    uint32_t size = 0;
    unsigned byte;
    while (size < MAX_PAYLOAD && sscanf(hex + 2 * size, "%2x", &byte) == 1)
        payload[size++] = (uint8_t)byte;
    const int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, MAPPING_BYTES) != 0)
        exit(2);
    struct header *const header =
        mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (header == MAP_FAILED)
        exit(2);
    close(file);
    *header = (struct header){.version = 2, .payload_size = size, .payload = (uintptr_t)payload};
    memcpy(header->signature, "OTEL_CTX", sizeof header->signature);
    __atomic_store_n(&header->published_nano, clock_ns(CLOCK_BOOTTIME), __ATOMIC_RELEASE);
}

SAMPLED_BURNER(works_for_a, MILLISECONDS)
SAMPLED_BURNER(works_for_none, MILLISECONDS)

int main(int count, char **arguments) {
    if (count < 2)
        return 2;
    add(0, "/a");
    add(1, "first");
    add(1, "last");
    add(9, "nobody knows its key");
    if (count > 2)
        publish(arguments[2]);
    works_for_none();
    if (!otelprof_flush(FLUSH_TIMEOUT_MS))
        return 3;
    cpu_samples_await();
    for (int i = atoi(arguments[1]); i > 0; i--) {
        works_for_none();
        otel_thread_ctx_v1 = &record;
        works_for_a();
        otel_thread_ctx_v1 = NULL;
    }
    puts("worked");
    return 0;
}
