#include "span_table.h"

#include "hash.h"

#include <stdlib.h>
#include <string.h>

enum { FEWEST_PLACES = 64, SPAN_WORDS = (TRACE_ID_BYTES + SPAN_ID_BYTES) / 8 };

struct span_entry {
    uint64_t ids[SPAN_WORDS];
    struct span_seen seen; /* last_nano 0: the entry is free */
};

static size_t most_in(size_t places) {
    return places / 4 * 3;
}

/* Returns the span's entry, or the free entry where it belongs. */
static struct span_entry *find_entry(const struct span_table *table,
                                     const uint64_t ids[static SPAN_WORDS]) {
    size_t at = hash_words(0, ids, SPAN_WORDS) & (table->places - 1);
    while (table->entries[at].seen.last_nano &&
           memcmp(table->entries[at].ids, ids, sizeof table->entries->ids) != 0)
        at = (at + 1) & (table->places - 1);
    return &table->entries[at];
}

static void read_ids(const struct sample_context *context, uint64_t ids[static SPAN_WORDS]) {
    memcpy(ids, context->trace_id, TRACE_ID_BYTES);
    memcpy(&ids[TRACE_ID_BYTES / 8], context->span_id, SPAN_ID_BYTES);
}

/* Moves the spans seen at `since` or later into a table with `places` places. Returns false without
 * memory. */
static bool span_table_move(struct span_table *table, size_t places, uint64_t since) {
    struct span_table moved = *table;
    moved.entries = calloc(places, sizeof *moved.entries);
    moved.places = places;
    moved.count = 0;
    if (!moved.entries)
        return false;
    for (size_t i = 0; i < table->places; i++) {
        const struct span_entry *const entry = &table->entries[i];
        if (!entry->seen.last_nano || entry->seen.last_nano < since)
            continue;
        *find_entry(&moved, entry->ids) = *entry;
        moved.count++;
    }
    free(table->entries);
    *table = moved;
    return true;
}

static size_t count_since(const struct span_table *table, uint64_t since) {
    size_t count = 0;
    for (size_t i = 0; i < table->places; i++)
        count += table->entries[i].seen.last_nano && table->entries[i].seen.last_nano >= since;
    return count;
}

size_t span_table_forget(struct span_table *table, uint64_t nano) {
    const size_t before = table->count;
    const size_t kept = count_since(table, nano);
    size_t places = FEWEST_PLACES;
    while (most_in(places) < kept)
        places *= 2;
    if (kept == before || !span_table_move(table, places, nano))
        return 0;
    return before - kept;
}

static bool span_table_has_room(struct span_table *table) {
    if (table->count == SPANS_MOST && !table->removed_old) {
        table->lost += span_table_forget(table, table->recent_nano);
        table->removed_old = true;
    }
    if (table->count == SPANS_MOST)
        return false;
    if (table->count < most_in(table->places))
        return true;
    return span_table_move(table, table->places ? table->places * 2 : FEWEST_PLACES, 0);
}

void span_table_begin(struct span_table *table, uint64_t nano) {
    table->recent_nano = nano;
    table->removed_old = false;
}

void span_table_record(struct span_table *table, const struct sample_context *context,
                       struct span_seen seen) {
    uint64_t ids[SPAN_WORDS];
    if (!seen.last_nano)
        return;
    read_ids(context, ids);
    struct span_entry *entry = table->places ? find_entry(table, ids) : NULL;
    if (!entry || !entry->seen.last_nano) {
        if (!span_table_has_room(table)) {
            table->lost++;
            return;
        }
        /* finds the entry again, because span_table_has_room() may have moved the table */
        entry = find_entry(table, ids);
        memcpy(entry->ids, ids, sizeof entry->ids);
        table->count++;
    }
    span_seen_add(&entry->seen, seen);
}

uint64_t span_table_length(const struct span_table *table, const struct sample_context *context) {
    uint64_t ids[SPAN_WORDS];
    if (!table->places)
        return 0;
    read_ids(context, ids);
    const struct span_seen seen = find_entry(table, ids)->seen;
    return seen.last_nano > seen.first_nano ? seen.last_nano - seen.first_nano : 0;
}

void span_table_close(struct span_table *table) {
    free(table->entries);
    *table = (struct span_table){.entries = NULL};
}
