/* Fuzzes the reader of jitdump files with any records. The time and memory that it needs are
 * bounded, and a file that it reads in two parts gives the same names and lines as one that it
 * reads at once. Input: a byte that says where to divide the file; then the file. */
#include "budget.h"
#include "reported.h"

#include "symbolize/jitdump.h"

static const double most_seconds = 1;
static const size_t most_bytes = (size_t)16 << 20;

struct said {
    char name[MAX_GENERATED_NAME];
    char file[PATH_MAX];
    int line;
};

static void ask(struct jitdump *dump, uint64_t address, struct said *said) {
    uint32_t number;
    memset(said, 0, sizeof *said);
    if (!jitdump_find(dump, address, &number))
        return;
    if (!jitdump_name(dump, number, said->name))
        said->name[0] = 0;
    said->line = jitdump_line(dump, number, address, said->file);
    promise(said->line >= 0 && strlen(said->file) < sizeof said->file);
}

/* Compares both ways of reading. Neither finds a name in a file without a valid head. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct said says[2];
    static struct jitdump parted;
    static struct jitdump whole;
    struct input input = {data, size};
    const size_t part = (size_t)take_byte(&input) * input.left / 256;
    const struct budget budget = budget_begin(most_seconds, most_bytes);
    jitdump_init(&parted);
    jitdump_init(&whole);
    const int file = reported_file(input.at, part);
    jitdump_read_file(&parted, dup(file));
    reported_append(file, input.at + part, input.left - part);
    jitdump_read_file(&parted, dup(file));
    jitdump_read_file(&whole, file);
    for (size_t i = 0; i < PROBES; i++) {
        const uint64_t address =
            reported_probe(input.at, input.left, i * input.left / PROBES / 4 * 4, true);
        ask(&parted, address, &says[0]);
        ask(&whole, address, &says[1]);
        promise(strcmp(says[0].name, says[1].name) == 0 && says[0].line == says[1].line);
        promise(strcmp(says[0].file, says[1].file) == 0);
        if (says[0].name[0])
            reported_name(says[0].name);
    }
    jitdump_close(&parted);
    jitdump_close(&whole);
    budget_end(&budget);
    return 0;
}
