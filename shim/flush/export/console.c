#include "console.h"

#include "arena.h"
#include "encode/function_names.h"
#include "intern.h"
#include "shown_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 10, NUMBER_BYTES = 32, UNITS = 5 };

struct row {
    char name[FUNCTION_NAME_BYTES];
    double self;                          /* in the function itself */
    double total;                         /* in the function and in the functions that it calls */
    const struct harvest_sample *counted; /* last sample added to `total`: recursion counts once */
};

struct table {
    struct arena arena;
    struct intern names;
    struct arena_list rows; /* struct row */
    struct intern spans;
    double sum;
    double linked; /* part of `sum` that belongs to spans */
    /* part of `sum` that is in no row, because its threads only wait for work */
    double idle;
    double waits[WAIT_KINDS]; /* the rest of `sum`, by kind of wait */
};

/* --- rows --- */

static struct row *row_of(struct table *table, const char name[static FUNCTION_NAME_BYTES]) {
    bool is_new;
    const int32_t number = intern(&table->arena, &table->names, name, strlen(name) + 1, &is_new);
    if (number < 0)
        return NULL;
    if (!is_new)
        return (size_t)number < table->rows.count ? table->rows.items[number] : NULL;
    struct row *const row = arena_take(&table->arena, sizeof *row);
    if (!row || !arena_list_add(&table->arena, &table->rows, row))
        return NULL;
    memcpy(row->name, name, FUNCTION_NAME_BYTES);
    return row;
}

/* --- adding up --- */

static double weight_of(const struct harvest_sample *sample) {
    return sample->values[profile_shown(sample->kind)->index];
}

static void add_span(struct table *table, const struct harvest_sample *sample) {
    const struct sample_context *const context = sample->context;
    uint8_t ids[TRACE_ID_BYTES + SPAN_ID_BYTES];
    bool is_new;
    if (!context || !context_has_span(context))
        return;
    memcpy(ids, context->trace_id, TRACE_ID_BYTES);
    memcpy(ids + TRACE_ID_BYTES, context->span_id, SPAN_ID_BYTES);
    if (intern(&table->arena, &table->spans, ids, sizeof ids, &is_new) >= 0)
        table->linked += weight_of(sample);
}

static void add_rows(struct table *table, const struct capture_api *api,
                     struct symbolizer *symbolizer, const struct harvest_sample *sample) {
    const double weight = weight_of(sample);
    char functions[MAX_SYMBOL_LINES][FUNCTION_NAME_BYTES] = {{0}};
    for (uint32_t i = 0; i < sample->frame_count; i++) {
        const size_t depth =
            function_names(api, symbolizer, sample->frames[i], sample->interval, functions);
        for (size_t k = 0; k < depth; k++) {
            struct row *const row = row_of(table, functions[k]);
            if (!row)
                return;
            if (i == 0 && k == 0)
                row->self += weight;
            if (row->counted != sample)
                row->total += weight;
            row->counted = sample;
        }
    }
}

/* Accounts idle samples separately, because their rows would hide the other rows. */
static void console_add_sample(struct table *table, const struct capture_api *api,
                               struct symbolizer *symbolizer, const struct harvest_sample *sample) {
    const double weight = weight_of(sample);
    table->sum += weight;
    add_span(table, sample);
    if (sample->flags & SAMPLE_FLAG_IDLE) {
        table->idle += weight;
        return;
    }
    if (sample->wait)
        table->waits[sample->wait->kind] += weight;
    add_rows(table, api, symbolizer, sample);
}

static int hottest_first(const void *a, const void *b) {
    const struct row *const left = *(struct row *const *)a;
    const struct row *const right = *(struct row *const *)b;
    if (left->self != right->self)
        return left->self < right->self ? 1 : -1;
    return (left->total < right->total) - (left->total > right->total);
}

/* --- writing --- */

/* Writes the value with `places` decimal places, and a decimal point in every locale: printf()
 * would use the application's. Returns `text`. */
static const char *decimal(char text[static NUMBER_BYTES], double value, int places,
                           const char *unit) {
    uint64_t one = 1;
    for (int i = 0; i < places; i++)
        one *= 10;
    const uint64_t rounded = (uint64_t)(value * (double)one + 0.5);
    snprintf(text, NUMBER_BYTES, "%llu.%0*llu%s", (unsigned long long)(rounded / one), places,
             (unsigned long long)(rounded % one), unit);
    return text;
}

static const char *amount(char text[static NUMBER_BYTES], enum sample_kind kind, double value) {
    static const char *const units[UNITS] = {" B", " KiB", " MiB", " GiB", " TiB"};
    size_t unit = 0;
    if (strcmp(profile_shown_unit(kind), "count") == 0) {
        snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)(value + 0.5));
        return text;
    }
    if (strcmp(profile_shown_unit(kind), "nanoseconds") == 0)
        return decimal(text, value / 1e9, 3, " s");
    for (; value >= 1024 && unit + 1 < UNITS; unit++)
        value /= 1024;
    return decimal(text, value, 1, units[unit]);
}

static void console_put_line(const struct capture_api *api, const char *line, int length) {
    const int descriptor = length > 0 ? log_open_stderr(api->log) : -1;
    if (descriptor < 0)
        return;
    (void)!write(descriptor, line, (size_t)length);
    log_close_stderr(descriptor);
}

static void console_write_row(const struct capture_api *api, enum sample_kind kind,
                              const struct row *row, double sum) {
    char self[NUMBER_BYTES];
    char self_share[NUMBER_BYTES];
    char total[NUMBER_BYTES];
    char total_share[NUMBER_BYTES];
    char name[FUNCTION_NAME_BYTES];
    char line[FUNCTION_NAME_BYTES + 4 * NUMBER_BYTES];
    name[shown_text(name, sizeof name - 1, row->name, strlen(row->name))] = 0;
    const int length = snprintf(
        line, sizeof line, "%12s %6s %12s %6s  %s\n", amount(self, kind, row->self),
        decimal(self_share, 100 * row->self / sum, 1, "%"), amount(total, kind, row->total),
        decimal(total_share, 100 * row->total / sum, 1, "%"), name);
    console_put_line(api, line, length);
}

static void write_spans(const struct capture_api *api, const struct table *table) {
    char share[NUMBER_BYTES];
    char line[96];
    const int length =
        snprintf(line, sizeof line, "libotelprof[%d] %s of it belongs to %d span%s\n",
                 (int)getpid(), decimal(share, 100 * table->linked / table->sum, 1, "%"),
                 table->spans.count, table->spans.count == 1 ? "" : "s");
    console_put_line(api, line, length);
}

static void write_idle(const struct capture_api *api, const struct table *table) {
    char share[NUMBER_BYTES];
    char line[128];
    const int length =
        snprintf(line, sizeof line,
                 "libotelprof[%d] %s of it is idle, in threads that only wait for work, and in no "
                 "line below\n",
                 (int)getpid(), decimal(share, 100 * table->idle / table->sum, 1, "%"));
    console_put_line(api, line, length);
}

/* Returns the largest wait that is not in `written`; WAIT_NONE if all are. */
static enum wait_kind next_wait(const struct table *table, unsigned written) {
    enum wait_kind found = WAIT_NONE;
    for (unsigned kind = WAIT_NONE + 1; kind < WAIT_KINDS; kind++)
        if (!(written >> kind & 1) && table->waits[kind] > 0 &&
            (!found || table->waits[kind] > table->waits[found]))
            found = (enum wait_kind)kind;
    return found;
}

static void write_waits(const struct capture_api *api, const struct table *table) {
    char share[NUMBER_BYTES];
    char line[32 * WAIT_KINDS + 64];
    unsigned written = 0;
    size_t length =
        (size_t)snprintf(line, sizeof line, "libotelprof[%d] waited for:", (int)getpid());
    enum wait_kind kind;
    while ((kind = next_wait(table, written))) {
        length += (size_t)snprintf(
            line + length, sizeof line - length, "%s %s %s", written ? "," : "",
            wait_kind_word(kind),
            decimal(share, 100 * table->waits[kind] / (table->sum - table->idle), 1, "%"));
        written |= 1u << kind;
    }
    line[length++] = '\n';
    if (written)
        console_put_line(api, line, (int)length);
}

static void write_rows(const struct capture_api *api, const struct table *table,
                       enum sample_kind kind) {
    char line[64];
    const int length = snprintf(line, sizeof line, "%19s %19s  %s\n", "self", "total", "function");
    console_put_line(api, line, length);
    for (size_t i = 0; i < table->rows.count && i < ROWS; i++)
        console_write_row(api, kind, table->rows.items[i], table->sum - table->idle);
}

static void write_table(const struct capture_api *api, const struct table *table,
                        enum sample_kind kind, double seconds) {
    char sum[NUMBER_BYTES];
    char interval[NUMBER_BYTES];
    char line[160];
    const int length = snprintf(line, sizeof line, "libotelprof[%d] %s: %s in %s\n", (int)getpid(),
                                profile_kinds[kind].title, amount(sum, kind, table->sum),
                                decimal(interval, seconds, 1, " s"));
    console_put_line(api, line, length);
    if (table->spans.count)
        write_spans(api, table);
    if (table->idle > 0)
        write_idle(api, table);
    write_waits(api, table);
    if (table->rows.count)
        write_rows(api, table, kind);
}

void console_write(const struct capture_api *api, struct symbolizer *symbolizer,
                   const struct merge *merge, double seconds) {
    for (int kind = 0; kind < SAMPLE_KINDS; kind++) {
        struct table table = {.sum = 0};
        for (size_t i = 0; i < merge->items.count; i++) {
            const struct harvest_sample *const sample = merge->items.items[i];
            if ((int)sample->kind == kind)
                console_add_sample(&table, api, symbolizer, sample);
        }
        if (table.rows.count > 1)
            qsort(table.rows.items, table.rows.count, sizeof *table.rows.items, hottest_first);
        if (table.sum > 0 && (table.rows.count || table.idle > 0))
            write_table(api, &table, (enum sample_kind)kind, seconds);
        arena_free(&table.arena);
    }
}
