/* Fuzzes the reader of perf maps with any text. The time and memory that it needs are bounded, and
 * a map that it reads in two parts gives the same names as one that it reads at once. Input: a byte
 * that says where to divide the map; then the map. */
#include "budget.h"
#include "reported.h"

#include "symbolize/perf_map.h"

static const double most_seconds = 1;
static const size_t most_bytes = (size_t)16 << 20;

static bool ask(struct perf_map *map, uint64_t address, char name[static MAX_GENERATED_NAME]) {
    uint32_t number;
    name[0] = 0;
    return perf_map_find(map, address, &number) && perf_map_name(map, address, number, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    const size_t part = (size_t)take_byte(&input) * input.left / 256;
    struct perf_map parted;
    struct perf_map whole;
    const struct budget budget = budget_begin(most_seconds, most_bytes);
    perf_map_init(&parted);
    perf_map_init(&whole);
    const int file = reported_file(input.at, part);
    perf_map_read_file(&parted, dup(file));
    reported_append(file, input.at + part, input.left - part);
    promise(perf_map_read_file(&parted, dup(file)) == PERF_MAP_READ);
    promise(perf_map_read_file(&whole, file) == PERF_MAP_RESTARTED);
    for (size_t i = 0; i < PROBES; i++) {
        char names[2][MAX_GENERATED_NAME];
        const size_t at = i * input.left / PROBES;
        const uint64_t address = reported_probe(input.at, input.left, at, i % 2);
        promise(ask(&parted, address, names[0]) == ask(&whole, address, names[1]));
        promise(strcmp(names[0], names[1]) == 0);
        if (names[0][0])
            reported_name(names[0]);
    }
    promise(!whole.line_changed && !parted.line_changed);
    perf_map_close(&parted);
    perf_map_close(&whole);
    budget_end(&budget);
    return 0;
}
