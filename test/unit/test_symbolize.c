/* Names of addresses in real files: made here with the compiler, stripped, split and packed in the
 * ways that distributions do. */
#include "unit.h"

#include "clock.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbolize.h"

#include <limits.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...) {
    char command[1024];
    va_list arguments;
    const int start = snprintf(command, sizeof command, "cd %s && ", folder);
    va_start(arguments, format);
    vsnprintf(command + start, sizeof command - (size_t)start, format, arguments);
    va_end(arguments);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static int make_files(void **state) {
    (void)state;
    strcpy(folder, "/tmp/otelprof-symbols-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    shell("cat > a.cpp <<'E'\n"
          "volatile int sink;\n"
          "static inline __attribute__((always_inline)) void inlined() { sink = sink * 3; }\n"
          "namespace shop { struct Cart { __attribute__((noinline)) void add(int); }; }\n"
          "void shop::Cart::add(int n) {\n"
          "    sink = n;\n"
          "    inlined();\n"
          "}\n"
          "static __attribute__((noinline, used)) void hidden() { sink = 5; }\n"
          "extern \"C\" void enter(shop::Cart *c) { c->add(3); hidden(); sink++; }\n"
          "E\n"
          "g++ -O1 -g -shared -fPIC -Wl,--build-id -o full.so a.cpp");
    shell("cp full.so stripped.so && strip stripped.so");
    shell("objcopy --only-keep-debug full.so linked.debug && cp stripped.so linked.so && "
          "objcopy --add-gnu-debuglink=linked.debug linked.so");
    shell("objcopy -S --remove-section .gnu_debugdata --only-keep-debug full.so mini && "
          "cp full.so mini && strip --strip-debug mini && xz -k mini && "
          "cp stripped.so packed.so && objcopy --add-section .gnu_debugdata=mini.xz packed.so");
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    shell("rm -rf %s", folder);
    return 0;
}

static uint64_t address_of(const char *file, const char *symbol) {
    char command[256];
    unsigned long address = 0;
    snprintf(command, sizeof command, "nm %s/%s | awk '$3 == \"%s\" { print $1 }'", folder, file,
             symbol);
    FILE *const pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%lx", &address), 1);
    pclose(pipe);
    return address;
}

static const uint64_t bias = 0x7f0000000000;

static struct harvest_module module_for(const char *file, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s/%s", folder, file);
    return (struct harvest_module){
        .load_bias = bias, .start = bias, .end = bias + 0x10000, .path = path};
}

static bool unguarded(void (*work)(void *arg), void *arg, const struct work_budget *budget) {
    (void)budget;
    work(arg);
    return true;
}

static size_t look_up(const char *file, enum symbols mode, uint64_t address,
                      struct symbol_line lines[MAX_SYMBOL_LINES], struct symbolizer **keep) {
    char path[PATH_MAX];
    const struct harvest_module module = module_for(file, path);
    *keep = symbolizer_open(mode, unguarded);
    return symbolizer_lines(*keep, &module, bias + address, lines, MAX_SYMBOL_LINES);
}

static void names_lines_and_inlined_functions(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const uint64_t start = address_of("full.so", "_ZN4shop4Cart3addEi");
    assert_int_equal(look_up("full.so", SYMBOLS_LINES, start, lines, &s), 1);
    assert_string_equal(lines[0].function, "shop::Cart::add");
    assert_string_equal(lines[0].system_name, "_ZN4shop4Cart3addEi");
    assert_int_equal(lines[0].line, 5);
    assert_int_equal(lines[0].start_line, 4);
    assert_non_null(strstr(lines[0].file, "a.cpp"));
    symbolizer_close(s);

    size_t chains = 0;
    for (uint64_t at = start; at < start + 64; at++) {
        const size_t count = look_up("full.so", SYMBOLS_LINES, at, lines, &s);
        if (count == 2 && strstr(lines[0].function, "inlined")) {
            assert_string_equal(lines[1].function, "shop::Cart::add");
            assert_int_equal(lines[0].line, 2);
            assert_int_equal(lines[1].line, 6);
            chains++;
        }
        symbolizer_close(s);
    }
    assert_true(chains > 0);
}

/* As it is called, not as its own file has it: one name whether debug information is read or not.
 */
static void a_function_has_its_public_name(void **state) {
    (void)state;
    static const enum symbols modes[] = {SYMBOLS_LINES, SYMBOLS_FUNCTIONS};
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    shell("cat > alias.c <<'E'\n"
          "volatile int sink;\n"
          "static __attribute__((used)) void own_name(void) { sink = 4; }\n"
          "void called(void) __attribute__((alias(\"own_name\")));\n"
          "static __attribute__((used)) void own_too(void) { sink = 5; }\n"
          "E\n"
          "gcc -O1 -g -shared -fPIC -o alias.so alias.c");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(look_up("alias.so", modes[i], address_of("alias.so", "called"), lines, &s),
                         1);
        assert_string_equal(lines[0].function, "called");
        assert_int_equal(lines[0].line, i == 0 ? 2 : 0);
        symbolizer_close(s);
        assert_int_equal(
            look_up("alias.so", modes[i], address_of("alias.so", "own_too"), lines, &s), 1);
        assert_string_equal(lines[0].function, "own_too");
        symbolizer_close(s);
    }
}

static void functions_alone(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const uint64_t start = address_of("full.so", "_ZL6hiddenv");
    assert_int_equal(look_up("full.so", SYMBOLS_FUNCTIONS, start + 2, lines, &s), 1);
    assert_string_equal(lines[0].function, "hidden");
    assert_int_equal(lines[0].line, 0);
    assert_string_equal(lines[0].file, "");
    symbolizer_close(s);
    assert_int_equal(look_up("full.so", SYMBOLS_NONE, start + 2, lines, &s), 0);
    symbolizer_close(s);
}

static void what_no_symbol_covers_has_no_name(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const uint64_t hidden = address_of("full.so", "_ZL6hiddenv");
    /* stripped of local symbols: the exported function before it must not swallow it */
    assert_int_equal(look_up("stripped.so", SYMBOLS_LINES, hidden + 2, lines, &s), 0);
    symbolizer_close(s);
    const uint64_t enter = address_of("full.so", "enter");
    assert_int_equal(look_up("stripped.so", SYMBOLS_LINES, enter, lines, &s), 1);
    assert_string_equal(lines[0].function, "enter");
    symbolizer_close(s);
    assert_int_equal(look_up("full.so", SYMBOLS_LINES, 0x10, lines, &s), 0);
    symbolizer_close(s);
}

static void debug_file_by_link(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const uint64_t hidden = address_of("full.so", "_ZL6hiddenv");
    assert_int_equal(look_up("linked.so", SYMBOLS_LINES, hidden, lines, &s), 1);
    assert_string_equal(lines[0].function, "hidden");
    assert_int_equal(lines[0].line, 8);
    symbolizer_close(s);
    /* a debug file of another build is not believed */
    shell("cp linked.debug kept && sed s/hidden/other/g a.cpp | g++ -O1 -g -shared -fPIC "
          "-Wl,--build-id -xc++ -o linked.debug -");
    assert_int_equal(look_up("linked.so", SYMBOLS_LINES, hidden, lines, &s), 0);
    symbolizer_close(s);
    shell("mv kept linked.debug");
}

static void symbols_in_gnu_debugdata(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const uint64_t hidden = address_of("full.so", "_ZL6hiddenv");
    assert_int_equal(look_up("packed.so", SYMBOLS_FUNCTIONS, hidden, lines, &s), 1);
    assert_string_equal(lines[0].function, "hidden");
    symbolizer_close(s);
}

/* Of a mapping this would be SIGBUS. */
static void the_file_of_an_unloaded_library_may_be_shortened(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct symbol_line lines[MAX_SYMBOL_LINES];
    const uint64_t start = address_of("full.so", "_ZN4shop4Cart3addEi");
    shell("cp full.so shortened.so");
    struct harvest_module module = module_for("shortened.so", path);
    module.unloaded = true;
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, unguarded);
    assert_int_equal(symbolizer_lines(s, &module, bias + start, lines, MAX_SYMBOL_LINES), 1);
    shell(": >shortened.so");
    assert_int_equal(symbolizer_lines(s, &module, bias + start + 1, lines, MAX_SYMBOL_LINES), 1);
    assert_string_equal(lines[0].function, "shop::Cart::add");
    symbolizer_close(s);
}

static void a_replaced_file_is_not_believed(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct symbol_line lines[MAX_SYMBOL_LINES];
    const uint64_t enter = address_of("full.so", "enter");
    struct harvest_module module = module_for("full.so", path);
    struct elf_file file;
    assert_true(elf_file_open(&file, &module));
    uint8_t loaded[64];
    assert_int_equal(elf_sections_build_id(&file.parts[PART_MAIN], loaded), 20);
    elf_file_close(&file);

    module.build_id = loaded;
    module.build_id_size = 20;
    struct symbolizer *s = symbolizer_open(SYMBOLS_LINES, unguarded);
    assert_int_equal(symbolizer_lines(s, &module, bias + enter, lines, MAX_SYMBOL_LINES), 1);
    symbolizer_close(s);
    loaded[3] ^= 1;
    s = symbolizer_open(SYMBOLS_LINES, unguarded);
    assert_int_equal(symbolizer_lines(s, &module, bias + enter, lines, MAX_SYMBOL_LINES), 0);
    symbolizer_close(s);
}

static int open_descriptors(void) {
    int count = 0;
    for (int i = 0; i < 256; i++) {
        struct stat status;
        count += fstat(i, &status) == 0;
    }
    return count;
}

static void no_descriptor_is_open_between_exports(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const uint64_t enter = address_of("full.so", "enter");
    const int before = open_descriptors();
    (void)look_up("linked.so", SYMBOLS_LINES, enter, lines, &s);
    assert_true(open_descriptors() > before);
    symbolizer_rest(s);
    assert_int_equal(open_descriptors(), before);
    symbolizer_close(s);
}

/* htlhash, against another implementation. */
static void hash_of_the_file(void **state) {
    (void)state;
    char path[PATH_MAX];
    char expected[64] = "";
    const struct harvest_module module = module_for("full.so", path);
    shell(
        "/usr/bin/python3 -c \"import hashlib; b = open('full.so', 'rb').read(); "
        "print(hashlib.sha256(b[:4096] + b[-4096:] + len(b).to_bytes(8, 'big')).hexdigest()[:32], "
        "end='')\" > hash");
    char hash_path[128];
    snprintf(hash_path, sizeof hash_path, "%s/hash", folder);
    FILE *const file = fopen(hash_path, "r");
    assert_non_null(file);
    assert_non_null(fgets(expected, sizeof expected, file));
    fclose(file);
    struct symbolizer *const s = symbolizer_open(SYMBOLS_NONE, unguarded);
    assert_string_equal(symbolizer_htlhash(s, &module), expected);
    symbolizer_close(s);
}

/* As a program does that loads ever new libraries: none is left unnamed, and files do not stay. */
static void files_that_nobody_asks_for_are_closed(void **state) {
    (void)state;
    enum { COPIES = 1200, AN_EXPORT = 5 };
    struct symbol_line lines[MAX_SYMBOL_LINES];
    char path[PATH_MAX];
    char kept_path[PATH_MAX];
    char name[64];
    const struct harvest_module kept = module_for("full.so", kept_path);
    const uint64_t enter = bias + address_of("full.so", "enter");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, unguarded);
    const int before = open_descriptors();
    for (int i = 0; i < COPIES; i++) {
        snprintf(name, sizeof name, "copy_%d.so", i);
        const struct harvest_module module = module_for(name, path);
        assert_int_equal(link(kept_path, path), 0);
        if (i % AN_EXPORT == 0) {
            symbolizer_rest(s);
            assert_int_equal(open_descriptors(), before);
            symbolizer_trim(s);
        }
        assert_int_equal(symbolizer_lines(s, &kept, enter, lines, MAX_SYMBOL_LINES), 1);
        assert_int_equal(symbolizer_lines(s, &module, enter, lines, MAX_SYMBOL_LINES), 1);
        assert_string_equal(lines[0].function, "enter");
        assert_int_equal(unlink(path), 0);
    }
    symbolizer_close(s);
    assert_int_equal(open_descriptors(), before);
}

/* The same addresses in one file and in another that came after it was closed. */
static void what_comes_later_has_names_of_its_own(void **state) {
    (void)state;
    enum { FILES = 600 };
    struct symbol_line lines[MAX_SYMBOL_LINES];
    char paths[2][PATH_MAX];
    char path[PATH_MAX];
    char name[64];
    const uint64_t enter = bias + address_of("full.so", "enter");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_FUNCTIONS, unguarded);
    shell("objcopy --redefine-sym enter=begin full.so renamed.so");
    (void)module_for("full.so", paths[0]);
    (void)module_for("renamed.so", paths[1]);
    for (int i = 0; i < FILES; i++) {
        const int renamed = i / 7 % 2;
        snprintf(name, sizeof name, "later_%d.so", i);
        const struct harvest_module module = module_for(name, path);
        assert_int_equal(link(paths[renamed], path), 0);
        symbolizer_rest(s);
        symbolizer_trim(s);
        assert_int_equal(symbolizer_lines(s, &module, enter, lines, MAX_SYMBOL_LINES), 1);
        assert_string_equal(lines[0].function, renamed ? "begin" : "enter");
        assert_int_equal(unlink(path), 0);
    }
    symbolizer_close(s);
}

/* How many calls of the libraries are made before memory runs out, in the next one. */
static int calls_left;

static bool runs_out(void (*work)(void *arg), void *arg, const struct work_budget *budget) {
    if (budget->bytes < 2 << 20) { /* a name's, which is no library that needs memory */
        work(arg);
        return true;
    }
    if (calls_left-- > 0)
        work(arg);
    return calls_left >= 0;
}

/* Names found when memory runs out in that call of the libraries, at two addresses: at the second
 * the libraries have been abandoned. */
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

/* Two of the interval's three seconds are gone with the first: opening the file, and its line. */
static void what_there_is_no_time_for_is_named_in_the_next_export(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    char path[PATH_MAX];
    const struct config config = {.interval_ms = 3000};
    const struct log log = {.level = LOG_NONE, .file = ""};
    const struct capture_api api = {
        .config = &config, .log = &log, .own_cpu_nano = own_cpu, .is_timed = is_timed};
    const struct harvest_module module = module_for("full.so", path);
    const uint64_t address = bias + address_of("full.so", "_ZN4shop4Cart3addEi");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, takes_a_second);
    symbolizer_attend(s, &api);
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

/* 3,000 functions close together, and one so far away that they fall into one of the table's spans.
 */
static void every_function_of_a_large_file_is_found(void **state) {
    (void)state;
    shell("for i in $(seq 3000); do echo \".type f$i,@function; f$i: ret; .size f$i,1\"; done > "
          "f.s && "
          "shuf -o f.s --random-source=f.s f.s && "
          "echo '.section .far,\"ax\"; .type far,@function; far: ret; .size far,1' >> f.s && "
          "gcc -c -o f.o f.s && gcc -nostdlib -shared -Wl,--section-start=.far=0x40000000 -o f.so "
          "f.o");
    char path[PATH_MAX];
    const struct harvest_module module = module_for("f.so", path);
    struct elf_file file;
    struct symbol_table table = {0};
    char name[MAX_SYMBOL_NAME];
    assert_true(elf_file_open(&file, &module));
    symbol_table_load(&table, &file);
    assert_int_equal(table.count, 3001);
    assert_true(symbol_table_name(&table, &table.symbols[3000], &file, name));
    assert_string_equal(name, "far");
    const uint64_t first = table.symbols[0].start;
    for (uint64_t i = 0; i < 3000; i++) {
        const struct symbol *const found = symbol_table_find(&table, first + i);
        assert_ptr_equal(found, &table.symbols[i]);
        assert_int_equal(found->start, first + i);
    }
    symbol_table_free(&table);
    elf_file_close(&file);
}

/* --- debug information that must be inflated --- */

/* Pages that the process has mapped, and bytes that malloc has given out. */
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

/* Five thousand functions of two lines each, in megabytes of debug information that is compressed.
 */
static void make_packed_file(void) {
    shell("for i in $(seq 5000); do printf "
          "'volatile int a_variable_of_long_name_%%d;\\n"
          "int f%%d(int a, int b) { int c = a * b + %%d; return c %%%% 7 + "
          "a_variable_of_long_name_%%d; }"
          "\\n' $i $i $i $i; done > packed.c && "
          "gcc -O1 -g3 -shared -fPIC -Wl,--compress-debug-sections=zlib -o inflated.so packed.c");
}

static void export_is_over(struct symbolizer *s) {
    symbolizer_rest(s);
    symbolizer_trim(s);
}

static int line_at(struct symbolizer *s, const struct harvest_module *module, uint64_t address,
                   const char *function) {
    struct symbol_line lines[MAX_SYMBOL_LINES];
    assert_int_equal(symbolizer_lines(s, module, bias + address, lines, MAX_SYMBOL_LINES), 1);
    assert_string_equal(lines[0].function, function);
    return lines[0].line;
}

static void what_was_inflated_goes_with_the_export(void **state) {
    (void)state;
    enum { LITTLE = 512 << 10, INFLATED = 1 << 20 };
    char path[PATH_MAX];
    make_packed_file();
    const struct harvest_module module = module_for("inflated.so", path);
    const uint64_t first = address_of("inflated.so", "f10");
    const uint64_t second = address_of("inflated.so", "f20");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, unguarded);
    assert_int_equal(line_at(s, &module, first, "f10"), 0); /* not yet: it may be a short process */
    for (int i = 0; i < 3; i++)
        export_is_over(s);
    const size_t used = used_bytes();
    assert_int_equal(line_at(s, &module, first, "f10"), 20);
    const size_t mapped = mapped_bytes();
    export_is_over(s);
    assert_true(mapped_bytes() + INFLATED <= mapped);
    assert_true(used_bytes() <= used + LITTLE);
    assert_int_equal(line_at(s, &module, first, "f10"), 20); /* known */

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
        cmocka_unit_test(what_was_inflated_goes_with_the_export),
        cmocka_unit_test(every_function_of_a_large_file_is_found),
        cmocka_unit_test(names_lines_and_inlined_functions),
        cmocka_unit_test(a_function_has_its_public_name),
        cmocka_unit_test(functions_alone),
        cmocka_unit_test(what_no_symbol_covers_has_no_name),
        cmocka_unit_test(debug_file_by_link),
        cmocka_unit_test(symbols_in_gnu_debugdata),
        cmocka_unit_test(the_file_of_an_unloaded_library_may_be_shortened),
        cmocka_unit_test(a_replaced_file_is_not_believed),
        cmocka_unit_test(no_descriptor_is_open_between_exports),
        cmocka_unit_test(what_there_is_no_time_for_is_named_in_the_next_export),
        cmocka_unit_test(without_memory_to_open_a_file_nothing_is_named),
        cmocka_unit_test(without_memory_for_lines_there_are_names),
        cmocka_unit_test(hash_of_the_file),
        cmocka_unit_test(files_that_nobody_asks_for_are_closed),
        cmocka_unit_test(what_comes_later_has_names_of_its_own),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
