/* Publishes its process context (OTEP 4719) by requests, and works: publishes_context FOLDER. The
 * file FOLDER/do is a request of one line; it is renamed to FOLDER/done when it has been served.
 *
 * - publish KIND HEX: KIND is memfd, shmem or anon; HEX is the payload; changes an existing mapping
 * - header VERSION SIZE PUBLISHED PAYLOAD: writes nonsense into the existing header
 * - withdraw
 * - end
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    _Atomic uint64_t published_nano;
    uint64_t payload;
};

enum { MAPPING_BYTES = 4096, MAX_PAYLOAD = 100000 };

static struct header *header;
static uint8_t payloads[2][MAX_PAYLOAD]; /* used in turns: the last payload is not overwritten */
static unsigned turn;

static uint64_t boot_nano(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct header *map(const char *kind) {
    int file = -1;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (strcmp(kind, "memfd") == 0) {
        file = memfd_create("OTEL_CTX", MFD_CLOEXEC);
        flags = MAP_SHARED;
        if (ftruncate(file, MAPPING_BYTES) != 0)
            exit(2);
    } else if (strcmp(kind, "shmem") == 0) {
        flags = MAP_SHARED | MAP_ANONYMOUS;
    }
    struct header *const at = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, flags, file, 0);
    if (at == MAP_FAILED)
        exit(2);
    if (file >= 0)
        close(file);
    madvise(at, MAPPING_BYTES, MADV_DONTFORK);
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, MAPPING_BYTES, "OTEL_CTX");
    return at;
}

static size_t decode(const char *hex, uint8_t *to) {
    size_t size = 0;
    unsigned byte;
    while (size < MAX_PAYLOAD && sscanf(hex + 2 * size, "%2x", &byte) == 1)
        to[size++] = (uint8_t)byte;
    return size;
}

static void publish(const char *kind, const char *hex) {
    uint8_t *const payload = payloads[turn++ % 2];
    const size_t size = decode(hex, payload);
    if (!header)
        header = map(kind);
    header->published_nano = 0;
    header->version = 2;
    header->payload_size = (uint32_t)size;
    header->payload = (uintptr_t)payload;
    memcpy(header->signature, "OTEL_CTX", sizeof header->signature);
    header->published_nano = boot_nano();
}

static void write_header(const char *line) {
    unsigned version;
    unsigned size;
    unsigned long published;
    unsigned long payload;
    if (sscanf(line, "header %u %u %lu %lu", &version, &size, &published, &payload) != 4)
        exit(2);
    header->published_nano = 0;
    header->version = version;
    header->payload_size = size;
    header->payload = payload;
    header->published_nano = published;
}

static void withdraw(void) {
    munmap(header, MAPPING_BYTES);
    header = NULL;
}

/* Returns false for the end. */
static int obey(char *line) {
    char kind[16] = "";
    int hex = 0;
    if (sscanf(line, "publish %15s %n", kind, &hex) == 1)
        publish(kind, line + hex);
    else if (strncmp(line, "header", 6) == 0)
        write_header(line);
    else if (strncmp(line, "withdraw", 8) == 0)
        withdraw();
    else
        return 0;
    return 1;
}

static volatile unsigned long sink;

int main(int count, char **arguments) {
    static char line[2 * MAX_PAYLOAD + 64];
    if (count != 2 || chdir(arguments[1]) != 0)
        return 2;
    for (;;) {
        for (unsigned i = 0; i < 1000000; i++)
            sink += i;
        FILE *const file = fopen("do", "r");
        if (!file)
            continue;
        const int more = fgets(line, sizeof line, file) && obey(line);
        fclose(file);
        rename("do", "done");
        if (!more)
            return 0;
    }
}
