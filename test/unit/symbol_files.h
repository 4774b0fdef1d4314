/* Makes files with symbols by the compiler, and strips, splits and packs them as distributions
 * do. */
#ifndef OTELPROF_TEST_SYMBOL_FILES_H
#define OTELPROF_TEST_SYMBOL_FILES_H

#include "symbolize/symbolize.h"

#include <limits.h>
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

__attribute__((unused)) static struct harvest_module module_for(const char *file,
                                                                char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s/%s", folder, file);
    return (struct harvest_module){
        .load_bias = bias, .start = bias, .end = bias + 0x10000, .path = path};
}

__attribute__((unused)) static bool unguarded(void (*work)(void *arg), void *arg,
                                              const struct work_budget *budget) {
    (void)budget;
    work(arg);
    return true;
}

#endif
