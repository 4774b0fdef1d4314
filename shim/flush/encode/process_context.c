#include "process_context.h"

#include "clock.h"
#include "files/by_path.h"
#include "safe_read.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CONTEXT_VERSION = 2,
    TRIES = 4, /* number of reads, because an application may publish at the same moment */
    SEARCH_FRACTION = 1000, /* the share of the time that searches may take: 1/1000 */
};

/* Has the layout of the OTEP: native byte order, naturally aligned. */
struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_nano; /* 0: the application is changing the data */
    uint64_t payload;
};
_Static_assert(sizeof(struct header) == 32, "the header of OTEP 4719");

enum outcome {
    CONTEXT_READ,    /* the payload was read, and is new */
    CONTEXT_SAME,    /* the data is unchanged */
    CONTEXT_BUSY,    /* the application is changing the data */
    CONTEXT_GONE,    /* there is no such mapping at the address */
    CONTEXT_GARBAGE, /* there is such a mapping, but its data is not valid */
};

/* --- reading --- */

static bool read_header(uint64_t address, struct header *header) {
    return safe_read(address, header, sizeof *header) &&
           memcmp(header->signature, "OTEL_CTX", sizeof header->signature) == 0 &&
           header->version == CONTEXT_VERSION;
}

/* Returns true if nothing was published since `*before` was read. */
static bool is_unchanged(uint64_t address, const struct header *before) {
    struct header now = {.version = 0};
    /* pairs with the publisher's fences around its changes */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return read_header(address, &now) && memcmp(&now, before, sizeof now) == 0;
}

/* Replaces `*set` and the names by the payload's attributes and names; by none if the payload is
 * not valid. Changes nothing if the application publishes meanwhile (CONTEXT_BUSY). */
static enum outcome read_payload(struct process_context *c, uint64_t address,
                                 const struct header *header, struct attribute_set *set) {
    const size_t size = header->payload_size;
    uint8_t *const bytes = size <= CONTEXT_PAYLOAD_BYTES ? malloc(size + 1) : NULL;
    const bool complete = bytes && (size == 0 || safe_read(header->payload, bytes, size));
    enum outcome outcome = CONTEXT_BUSY;
    if (is_unchanged(address, header)) {
        attributes_clear(set);
        outcome =
            complete && context_payload_read(bytes, size, set) ? CONTEXT_READ : CONTEXT_GARBAGE;
        context_payload_names(bytes, complete ? size : 0, &c->names);
    }
    free(bytes);
    return outcome;
}

static enum outcome process_context_read_once(struct process_context *c, uint64_t address,
                                              struct attribute_set *set) {
    struct header header = {.version = 0};
    if (!read_header(address, &header))
        return CONTEXT_GONE;
    if (header.published_nano == 0)
        return CONTEXT_BUSY;
    if (address == c->address && header.published_nano == c->published_nano)
        return CONTEXT_SAME;
    /* pairs with the publisher's fences, as in is_unchanged() */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    const enum outcome outcome = read_payload(c, address, &header, set);
    if (outcome != CONTEXT_BUSY)
        /* stores the time, so that invalid data is not read again */
        c->published_nano = header.published_nano;
    return outcome;
}

static enum outcome process_context_read_at(struct process_context *c, uint64_t address,
                                            struct attribute_set *set) {
    enum outcome outcome = CONTEXT_BUSY;
    for (int i = 0; i < TRIES && outcome == CONTEXT_BUSY; i++)
        outcome = process_context_read_once(c, address, set);
    return outcome;
}

/* --- searching --- */

uint64_t process_context_mapping(const struct process_mapping *mapping) {
    static const char *const names[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
                                        "/memfd:OTEL_CTX"};
    const char *const name = process_mapping_name(mapping);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return mapping->start;
    return 0;
}

struct search {
    struct process_context *context;
    struct attribute_set *set;
    enum outcome outcome;
};

static bool read_context_mapping(void *arg, const struct process_mapping *mapping) {
    struct search *const search = arg;
    const uint64_t address = process_context_mapping(mapping);
    if (address == 0)
        return false;
    search->outcome = process_context_read_at(search->context, address, search->set);
    search->context->address = search->outcome == CONTEXT_GONE ? 0 : address;
    return search->outcome != CONTEXT_GONE;
}

/* Reads the first mapping named OTEL_CTX with a valid header. Returns CONTEXT_GONE without a search
 * if the last search was too recent. */
static enum outcome process_context_search(struct process_context *c, struct attribute_set *set) {
    const uint64_t start = thread_cpu_nano();
    if (monotonic_nano() < c->no_search_before)
        return CONTEXT_GONE;
    struct search search = {c, set, CONTEXT_GONE};
    if (may_open_by_path())
        (void)process_maps_visit(read_context_mapping, &search);
    c->no_search_before = monotonic_nano() + (thread_cpu_nano() - start) * SEARCH_FRACTION;
    return search.outcome;
}

/* --- updating --- */

void process_context_expect(struct process_context *c) {
    if (!c->address && !c->expected)
        c->no_search_before = 0;
    c->expected = true;
}

void process_context_clear(struct process_context *c) {
    key_names_clear(&c->names);
}

bool process_context_update(struct process_context *c, struct attribute_set *set) {
    const bool had_any = set->count != 0;
    enum outcome outcome = c->address ? process_context_read_at(c, c->address, set) : CONTEXT_GONE;
    if (outcome == CONTEXT_GONE) {
        if (c->address)
            c->no_search_before = 0; /* the mapping may have moved, so a search is due at once */
        c->address = 0;
        c->published_nano = 0;
        outcome = process_context_search(c, set);
        c->expected = c->expected && !c->address;
    }
    switch (outcome) {
    case CONTEXT_READ:
        log_debug(c->log, "the application publishes %zu attributes about itself", set->count);
        return true;
    case CONTEXT_GARBAGE:
        if (!c->unreadable_logged)
            log_debug(c->log, "the process context that the application publishes (OTEL_CTX) "
                              "cannot be read; going on without its attributes");
        c->unreadable_logged = true;
        return had_any;
    case CONTEXT_GONE:
        attributes_clear(set);
        key_names_clear(&c->names);
        return had_any;
    default:
        return false;
    }
}
