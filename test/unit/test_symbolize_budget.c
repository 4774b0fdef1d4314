/* Tests names when memory runs out, when there is no time for all of them, and when debug
 * information must be inflated. */
#include "unit.h"

#include "clock.h"
#include "symbol_files.h"

#include <malloc.h>

/* --- memory that runs out --- */

/* Holds the number of the libraries' calls that succeed: memory runs out in the next one. */
static int calls_left;

static bool runs_out(void (*work)(void *arg), void *arg, const struct work_budget *budget) {
    if (budget->bytes < 2 << 20) { /* work for one name, which needs no library's memory */
        work(arg);
        return true;
    }
    if (calls_left-- > 0)
        work(arg);
    return calls_left >= 0;
}

/* Expects `count` names at each of two addresses if memory runs out after `good_calls` calls of the
 * libraries: at the second address the libraries have been abandoned. */
static void expect_names(int good_calls, size_t count) {
    struct symbol_line lines[MAX_SYMBOL_LINES];
    char path[PATH_MAX];
    const struct harvest_module module = module_for("full.so", path);
    const uint64_t address = bias + address_of("full.so", "_ZN4shop4Cart3addEi");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, runs_out);
    calls_left = good_calls;
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(symbolizer_lines(s, &module, address + i, lines, MAX_SYMBOL_LINES), count);
        assert_int_equal(calls_left, -1);
        if (count)
            assert_string_equal(lines[0].function, "shop::Cart::add");
        if (count)
            assert_string_equal(lines[0].file, "");
    }
    symbolizer_close(s);
}

/* --- the time for the names of an export --- */

static uint64_t used_cpu;

static uint64_t own_cpu(void) {
    return used_cpu;
}

static bool takes_a_second(void (*work)(void *arg), void *arg, const struct work_budget *budget) {
    used_cpu += budget->bytes > 2 << 20 ? NANO_PER_SECOND : 0;
    work(arg);
    return true;
}

static bool is_timed(void) {
    return true;
}

/* Uses two of the interval's three seconds for the first address: opening the file, and its
 * line. */
static void functions_without_time_are_named_in_the_next_export(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    char path[PATH_MAX];
    const struct config config = {.interval_ms = 3000};
    const struct log log = {.level = LOG_NONE, .file = ""};
    const struct capture_api api = {.config = &config,
                                    .log = &log,
                                    .guard = {.is_timed = is_timed},
                                    .counters = {.helper_cpu_nano = own_cpu}};
    const struct harvest_module module = module_for("full.so", path);
    const uint64_t address = bias + address_of("full.so", "_ZN4shop4Cart3addEi");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, takes_a_second);
    symbolizer_set_api(s, &api);
    for (uint64_t exports = 1; exports <= 2; exports++) {
        symbolizer_trim(s);
        for (uint64_t i = 0; i < 6; i++) {
            const bool named = symbolizer_lines(s, &module, address + i, lines, MAX_SYMBOL_LINES);
            assert_int_equal(named, i < (exports == 1 ? 2 : 5));
        }
    }
    symbolizer_close(s);
}

static void without_memory_to_open_a_file_nothing_is_named(void **state) {
    (void)state;
    expect_names(0, 0);
}

static void without_memory_for_lines_there_are_names(void **state) {
    (void)state;
    expect_names(1, 1);
}

/* --- debug information that must be inflated --- */

/* Returns the size of all pages that the process has mapped. */
static size_t mapped_bytes(void) {
    unsigned long pages = 0;
    FILE *const statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    return pages * 4096;
}

static size_t used_bytes(void) {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Makes twenty functions of two lines each, and one of twenty thousand, in megabytes of compressed
 * debug information. */
static void make_packed_file(void) {
    shell("(for i in $(seq 20); do printf "
          "'volatile int a_variable_of_long_name_%%d;\\n"
          "int f%%d(int a, int b) { int c = a * b + %%d; return c %%%% 7 + "
          "a_variable_of_long_name_%%d; }"
          "\\n' $i $i $i $i; done; echo 'void lines(void) {'; "
          "for i in $(seq 20000); do echo 'a_variable_of_long_name_1++;'; done; echo '}'; "
          "for i in $(seq 30000); do echo \"struct a_long_name_$i { int member_$i[$i]; };\"; done) "
          "> packed.c && "
          "gcc -O0 -g -fno-eliminate-unused-debug-types -shared -fPIC "
          "-Wl,--compress-debug-sections=zlib -o inflated.so packed.c");
}

static void export_is_over(struct symbolizer *s) {
    symbolizer_close_files(s);
    symbolizer_trim(s);
}

static int line_at(struct symbolizer *s, const struct harvest_module *module, uint64_t address,
                   const char *function) {
    struct symbol_line lines[MAX_SYMBOL_LINES];
    assert_int_equal(symbolizer_lines(s, module, bias + address, lines, MAX_SYMBOL_LINES), 1);
    assert_string_equal(lines[0].function, function);
    return lines[0].line;
}

static void inflated_sections_are_freed_with_the_export(void **state) {
    (void)state;
    enum { LITTLE = 512 << 10, INFLATED = 3 << 20 };
    char path[PATH_MAX];
    make_packed_file();
    const struct harvest_module module = module_for("inflated.so", path);
    const uint64_t first = address_of("inflated.so", "f10");
    const uint64_t second = address_of("inflated.so", "f20");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, unguarded);
    /* not yet: the process may be a short one */
    assert_int_equal(line_at(s, &module, first, "f10"), 0);
    for (int i = 0; i < 3; i++)
        export_is_over(s);
    const size_t used = used_bytes();
    assert_int_equal(line_at(s, &module, first, "f10"), 20);
    const size_t mapped = mapped_bytes();
    export_is_over(s);
    assert_true(mapped_bytes() + INFLATED <= mapped);
    assert_true(used_bytes() <= used + LITTLE);
    assert_int_equal(line_at(s, &module, first, "f10"), 20); /* the line is known */

    /* another address has its function at once, and its line when the first time has been paid for
     */
    assert_int_equal(line_at(s, &module, second, "f20"), 0);
    int exports = 0;
    do
        export_is_over(s);
    while (line_at(s, &module, second, "f20") == 0 && ++exports < 100);
    assert_true(exports < 100);
    assert_int_equal(line_at(s, &module, second, "f20"), 40);
    symbolizer_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inflated_sections_are_freed_with_the_export),
        cmocka_unit_test(functions_without_time_are_named_in_the_next_export),
        cmocka_unit_test(without_memory_to_open_a_file_nothing_is_named),
        cmocka_unit_test(without_memory_for_lines_there_are_names),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
