/* Tests names of addresses in real files, as distributions strip, split and pack them. */
#include "unit.h"

#include "symbol_files.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbol_table.h"

#include <sys/stat.h>

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

/* Looks up a function with a public alias: it has the name by which other files call it, whether
 * debug information is read or not. */
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

static void an_address_that_no_symbol_covers_has_no_name(void **state) {
    (void)state;
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const uint64_t hidden = address_of("full.so", "_ZL6hiddenv");
    /* a file without local symbols: the exported function before the hidden one must not swallow
     * it */
    assert_int_equal(look_up("stripped.so", SYMBOLS_LINES, hidden + 2, lines, &s), 0);
    symbolizer_close(s);
    const uint64_t enter = address_of("full.so", "enter");
    assert_int_equal(look_up("stripped.so", SYMBOLS_LINES, enter, lines, &s), 1);
    assert_string_equal(lines[0].function, "enter");
    symbolizer_close(s);
    assert_int_equal(look_up("full.so", SYMBOLS_LINES, 0x10, lines, &s), 0);
    symbolizer_close(s);
}

/* Returns the name of the function at the address; "" = none. */
static const char *name_at(const char *file, uint64_t address) {
    static char name[MAX_SYMBOL_NAME];
    struct symbol_line lines[MAX_SYMBOL_LINES];
    struct symbolizer *s;
    const size_t count = look_up(file, SYMBOLS_FUNCTIONS, address, lines, &s);
    snprintf(name, sizeof name, "%s", count ? lines[0].function : "");
    symbolizer_close(s);
    return name;
}

static void a_symbol_without_a_size_names_no_other_code(void **state) {
    (void)state;
    shell("cat > labels.S <<'E'\n"
          ".text\n.globl bare, told, told_inside\n"
          "bare: ret\nstatic_code: nop; nop; ret\n"
          "told: .cfi_startproc; nop; nop\ntold_inside: nop; ret; .cfi_endproc\n"
          "after_told: nop; ret\n"
          ".section .note.GNU-stack,\"\",@progbits\n"
          "E\n"
          "gcc -shared -nostdlib -o labels.so labels.S && cp labels.so bare_labels.so && "
          "strip bare_labels.so");
    static const char *const files[] = {"labels.so", "bare_labels.so"};
    const uint64_t bare = address_of("labels.so", "bare");
    const uint64_t told = address_of("labels.so", "told");
    const uint64_t after = address_of("labels.so", "after_told");
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(name_at(files[i], bare), "bare");
        assert_string_equal(name_at(files[i], bare + 2), ""); /* static_code + 1 */
        for (uint64_t at = told; at < after; at++)
            assert_string_equal(name_at(files[i], at), "told");
        assert_string_equal(name_at(files[i], after + 1), "");
    }
    assert_string_equal(name_at("labels.so", bare + 1), "static_code");
    assert_string_equal(name_at("bare_labels.so", bare + 1), "");
    assert_string_equal(name_at("bare_labels.so", after), "");
}

static bool variable_of(const char *file, uint64_t address, char text[static 256]) {
    char path[PATH_MAX];
    struct symbol_line variable;
    const struct harvest_module module = module_for(file, path);
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, unguarded);
    const bool found = symbolizer_variable(s, &module, bias + address, &variable);
    if (found)
        snprintf(text, 256, "%s+%d", variable.function, (int)variable.offset);
    symbolizer_close(s);
    return found;
}

static void an_address_of_data_has_its_variables_name(void **state) {
    (void)state;
    char text[256];
    shell("cat > data.cpp <<'E'\n"
          "namespace shop { long stock[4] = {1}; }\n"
          "static long hidden_lock __attribute__((used));\n"
          "struct Table { long size; long lock; } table;\n"
          "extern \"C\" void code() { hidden_lock++; }\n"
          "E\n"
          "g++ -O1 -g -shared -fPIC -Wl,--build-id -o data.so data.cpp && "
          "cp data.so bare.so && strip bare.so && "
          "objcopy --only-keep-debug data.so split.debug && cp bare.so split.so && "
          "objcopy --add-gnu-debuglink=split.debug split.so");
    const uint64_t stock = address_of("data.so", "_ZN4shop5stockE");
    const uint64_t hidden = address_of("data.so", "_ZL11hidden_lock");
    const uint64_t table = address_of("data.so", "table");
    assert_true(variable_of("data.so", stock, text));
    assert_string_equal(text, "shop::stock+0");
    assert_true(variable_of("data.so", stock + 24, text));
    assert_string_equal(text, "shop::stock+24");
    assert_true(variable_of("data.so", hidden, text));
    assert_string_equal(text, "hidden_lock+0");
    assert_true(variable_of("split.so", hidden, text));
    assert_string_equal(text, "hidden_lock+0");
    assert_true(variable_of("bare.so", table + 8, text));
    assert_string_equal(text, "table+8");
    assert_false(variable_of("bare.so", hidden, text));
    assert_false(variable_of("data.so", table + 4096, text));
    assert_false(variable_of("data.so", address_of("data.so", "code"), text));
}

/* Looks up more variables than one export names: the next export names the others, too. A
 * variable's address is no function's. */
static void many_variables_are_named_in_several_exports(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct symbol_line variable;
    shell("echo 'long locks[40];' > many.c && gcc -shared -fPIC -o many.so many.c");
    const struct harvest_module module = module_for("many.so", path);
    const uint64_t locks = bias + address_of("many.so", "locks");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, unguarded);
    size_t named[2] = {0};
    for (int export = 0; export < 2; export ++) {
        symbolizer_trim(s);
        for (uint64_t i = 0; i < 40; i++)
            named[export] += symbolizer_variable(s, &module, locks + 8 * i, &variable);
    }
    assert_int_equal(named[0], 32);
    assert_int_equal(named[1], 40);
    assert_int_equal(symbolizer_lines(s, &module, locks, &variable, 1), 0);
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

/* Returns the number of addresses of shop::Cart::add with the inlined function and both lines, in
 * the first export. */
static size_t chains_of(const char *file) {
    char path[PATH_MAX];
    struct symbol_line lines[MAX_SYMBOL_LINES];
    const struct harvest_module module = module_for(file, path);
    const uint64_t start = bias + address_of("full.so", "_ZN4shop4Cart3addEi");
    struct symbolizer *const s = symbolizer_open(SYMBOLS_LINES, unguarded);
    size_t chains = 0;
    for (uint64_t at = start; at < start + 64; at++)
        chains += symbolizer_lines(s, &module, at, lines, MAX_SYMBOL_LINES) == 2 &&
                  strstr(lines[0].function, "inlined") && lines[0].line == 2 && lines[1].line == 6;
    symbolizer_close(s);
    return chains;
}

static void debug_information_packed_in_each_way_gives_lines(void **state) {
    (void)state;
    static const char *const forms[] = {"none", "zlib", "zlib-gnu", "zstd"};
    const size_t chains = chains_of("full.so");
    char file[32];
    assert_true(chains > 0);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        shell("objcopy --compress-debug-sections=%1$s full.so %1$s.so && "
              "objcopy --only-keep-debug %1$s.so %1$s.debug && cp stripped.so split_%1$s.so && "
              "objcopy --add-gnu-debuglink=%1$s.debug split_%1$s.so",
              forms[i]);
        snprintf(file, sizeof file, "%s.so", forms[i]);
        assert_int_equal(chains_of(file), chains);
        snprintf(file, sizeof file, "split_%s.so", forms[i]);
        assert_int_equal(chains_of(file), chains);
    }
}

/* Reading a mapping of the file would raise SIGBUS here. */
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
    symbolizer_close_files(s);
    assert_int_equal(open_descriptors(), before);
    symbolizer_close(s);
}

/* Compares htlhash with another implementation. */
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

/* Acts as a program that keeps loading new libraries: each gets its names, and no file stays open
 * after an export. */
static void unused_files_are_closed(void **state) {
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
            symbolizer_close_files(s);
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

/* Reads the same addresses in one file and in another that came after the first was closed. */
static void a_later_file_has_names_of_its_own(void **state) {
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
        symbolizer_close_files(s);
        symbolizer_trim(s);
        assert_int_equal(symbolizer_lines(s, &module, enter, lines, MAX_SYMBOL_LINES), 1);
        assert_string_equal(lines[0].function, renamed ? "begin" : "enter");
        assert_int_equal(unlink(path), 0);
    }
    symbolizer_close(s);
}

/* Makes 3,000 functions close together, and one so far away that they fall into one of the table's
 * spans.
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
    struct symbol found;
    assert_int_equal(table.count, 3001);
    assert_true(symbol_table_find(&table, &file, symbol_table_start(&table, 3000), &found));
    assert_true(symbol_table_name(&table, &found, &file, name));
    assert_string_equal(name, "far");
    const uint64_t first = symbol_table_start(&table, 0);
    for (uint64_t i = 0; i < 3000; i++) {
        assert_true(symbol_table_find(&table, &file, first + i, &found));
        assert_int_equal(found.at, i);
        assert_int_equal(found.start, first + i);
    }
    symbol_table_free(&table);
    elf_file_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_of_a_large_file_is_found),
        cmocka_unit_test(names_lines_and_inlined_functions),
        cmocka_unit_test(a_function_has_its_public_name),
        cmocka_unit_test(functions_alone),
        cmocka_unit_test(an_address_that_no_symbol_covers_has_no_name),
        cmocka_unit_test(a_symbol_without_a_size_names_no_other_code),
        cmocka_unit_test(an_address_of_data_has_its_variables_name),
        cmocka_unit_test(many_variables_are_named_in_several_exports),
        cmocka_unit_test(debug_file_by_link),
        cmocka_unit_test(symbols_in_gnu_debugdata),
        cmocka_unit_test(debug_information_packed_in_each_way_gives_lines),
        cmocka_unit_test(the_file_of_an_unloaded_library_may_be_shortened),
        cmocka_unit_test(a_replaced_file_is_not_believed),
        cmocka_unit_test(no_descriptor_is_open_between_exports),
        cmocka_unit_test(hash_of_the_file),
        cmocka_unit_test(unused_files_are_closed),
        cmocka_unit_test(a_later_file_has_names_of_its_own),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
