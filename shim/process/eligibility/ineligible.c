#include "ineligible.h"

#include "arch_emulator.h"
#include "arch_memory.h"
#include "bare_syscall.h"
#include "capture/symbols/definition.h"
#include "capture/symbols/next_symbol.h"
#include "capture/symbols/object_symbols.h"
#include "program_path.h"
#include "text_numbers.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    ASAN_GAP = 0x10000, /* distance, in bytes, below the shadow at which no page is mapped */
    OLDEST_GLIBC_MINOR = 34,
};

/* --- an older glibc --- */

/* Rejects older glibcs, because the profiler needs threads in libc.so.6. */
static bool has_older_glibc(const struct log *log) {
    const char *const version = gnu_get_libc_version();
    uint64_t minor = 0;
    if (strncmp(version, "2.", 2) != 0)
        return false;
    (void)number_read(version + 2, 10, &minor);
    if (minor >= OLDEST_GLIBC_MINOR)
        return false;
    log_debug(log, "the program's glibc is %s, 2.%d or newer is needed; nothing is profiled",
              version, OLDEST_GLIBC_MINOR);
    return true;
}

/* --- not preloaded --- */

/* Detects that the C library itself is the program: executed as a program it prints its version,
 * and it precedes the preload. */
static bool is_libc_alone(const struct log *log) {
    const struct link_map *const executable = object_symbols_first();
    if (!executable || !object_symbols_defines(executable, "gnu_get_libc_version"))
        return false;
    log_debug(log, "the C library itself is the program; nothing is profiled");
    return true;
}

/* Rejects a profiler that dlopen has loaded: it could be unloaded under its own signal handler, and
 * would see only some of the program's calls. */
static bool is_loaded_late(const struct log *log) {
    if (next_symbols_follow_profiler())
        return false;
    log_warn(log, "libotelprof.so was loaded by dlopen; it works by LD_PRELOAD only; "
                  "nothing is profiled");
    return true;
}

/* --- another copy of the profiler --- */

const char profiler_version[] = OTELPROF_VERSION;

/* Finds the first loaded copy, by its exported name. (Unit tests have no copy.) */
extern const char *otelprof_version(void) __attribute__((weak));

/* Returns true if another copy profiles the process. A process may have two copies: one from
 * /etc/ld.so.preload, another from LD_PRELOAD. Only the copy from LD_PRELOAD, which the loader
 * finds first, profiles; otherwise every sample would be sent twice. */
static bool has_another_copy(const struct log *log) {
    if (!otelprof_version || otelprof_version() == profiler_version)
        return false;
    log_debug(log, "another libotelprof.so is loaded before this one; this one profiles nothing");
    return true;
}

/* --- short of memory --- */

/* Detects too little memory: the program may need the memory that the profiler would map. So under
 * a limit the process is profiled only if nearly four times the measured use with all profiles on
 * is left. That use is at most 167 MiB of address space, 57 MiB of it writable. Most of it is the
 * range that the helper's heap reserves and never touches (capture/helper_heap/helper_heap.c: less
 * than without a limit). */
static bool is_short_of_memory(const struct log *log) {
    static const struct {
        __rlimit_resource_t resource;
        const char *name;
        unsigned mebibytes;
    } needs[] = {{RLIMIT_AS, "RLIMIT_AS", 640}, {RLIMIT_DATA, "RLIMIT_DATA", 200}};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        struct rlimit limit;
        if (getrlimit(needs[i].resource, &limit) != 0 ||
            limit.rlim_cur >= (rlim_t)needs[i].mebibytes << 20)
            continue;
        log_debug(log,
                  "%s is %lu MiB, less than %u: the program gets all of it, nothing is profiled",
                  needs[i].name, (unsigned long)(limit.rlim_cur >> 20), needs[i].mebibytes);
        return true;
    }
    return false;
}

/* --- built with a sanitizer --- */

/* Returns true if a page is mapped, even one without access. madvise fails with ENOMEM on an
 * unmapped page, and this advice has no effect on a mapped one. mincore would do, too, but filters
 * kill for it. */
static bool is_mapped(uintptr_t page) {
    return syscall(SYS_madvise, page, 1, MADV_WILLNEED) == 0 || errno != ENOMEM;
}

/* Returns true for a symbol to which every sanitizer runtime refers, in case the program defines
 * it. */
static bool is_sanitizer_symbol(const char *name) {
    return strcmp(name, "__sanitizer_print_memory_profile") == 0;
}

/* Returns the mark of a sanitizer, or NULL. Sanitizers replace malloc, intercept signals and unwind
 * themselves. */
static const char *sanitizer_mark(void) {
    static const char *const marks[] = {"__asan_init", "__tsan_init", "__msan_init",
                                        "__hwasan_init", "__lsan_init"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (first_symbol(marks[i]))
            return marks[i];
    /* GCC's ThreadSanitizer, linked statically, exports functions of libc only. */
    const struct link_map *const executable = object_symbols_first();
    if (executable && object_symbols_defines(executable, "malloc") &&
        object_symbols_refers(executable, is_sanitizer_symbol))
        return "linked statically";
    /* AddressSanitizer, if linked statically, exports no symbol, but its shadow always begins at
     * this address. Chromium has a mapping there, too, but also below it, because it reserves all
     * of the low memory. */
    const bool shadow = is_mapped(ARCH_ASAN_SHADOW) && !is_mapped(ARCH_ASAN_SHADOW - ASAN_GAP);
    return shadow ? "AddressSanitizer's shadow memory" : NULL;
}

static bool has_sanitizer(const struct log *log) {
    const char *const mark = sanitizer_mark();
    if (mark)
        log_debug(log, "the program is built with a sanitizer (%s); nothing is profiled", mark);
    return mark != NULL;
}

/* --- run by valgrind --- */

static bool is_loaded(const char *part_of_path) {
    const struct link_map *object = object_symbols_first();
    while (object && !strstr(object->l_name, part_of_path))
        object = object->l_next;
    return object != NULL;
}

/* Returns true under valgrind, whose tools all preload an object of that name (valgrind's
 * coregrind/vg_preloaded.c). */
bool is_under_valgrind(const struct log *log) {
    if (!is_loaded("/vgpreload_core-"))
        return false;
    log_debug(log,
              "the program runs under valgrind, which OTEL_PROFILER_EXCLUDE's default excludes; "
              "nothing is profiled");
    return true;
}

/* --- run by heaptrack --- */

/* Detects heaptrack, whose malloc precedes the profiler's and writes on the calling thread to a
 * descriptor of the program's. On the helper, which has its own descriptor table, such a write
 * would reach another file and corrupt it. */
static bool has_heaptrack(const struct log *log) {
    if (!is_loaded("/libheaptrack_preload"))
        return false;
    log_debug(log, "heaptrack records the program's allocations, and would record the profiler's; "
                   "nothing is profiled");
    return true;
}

/* --- single-threaded programs --- */

/* Returns true for an argument by which Chromium, and programs built on it (QtWebEngine, Electron),
 * pass a child's kind. Children from which others are forked, or that put themselves into a
 * sandbox, exit at once when they find a second thread. */
static bool is_kind_of_chromium(const char *argument) {
    static const char *const kinds[] = {"zygote", "renderer",     "gpu-process", "utility",
                                        "ppapi",  "ppapi-broker", "nacl-loader", "nacl-broker"};
    static const char option[] = "--type=";
    if (strncmp(argument, option, sizeof option - 1) != 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argument + sizeof option - 1, kinds[i]) == 0)
            return true;
    return false;
}

static bool has_malloc_for_one_thread(const struct log *log) {
    if (!definition_of_malloc_is_for_one_thread())
        return false;
    log_debug(log, "the program defines its own malloc and is not linked to use threads, but the "
                   "profiler needs a thread; nothing is profiled");
    return true;
}

static bool is_child_of_chromium(const struct log *log, char *const *arguments) {
    while (arguments && *arguments && !is_kind_of_chromium(*arguments))
        arguments++;
    if (!arguments || !*arguments)
        return false;
    log_debug(log, "%s is a child of Chromium's, which must have one thread; nothing is profiled",
              *arguments);
    return true;
}

/* --- emulated by qemu-user --- */

/* Returns true if QEMU emulates this program alone, and not a whole machine. In an emulated machine
 * the kernel shows the same executable for the process and for its thread. qemu-user shows the
 * guest's program for the process, but passes the thread's link on, which leads to qemu. Without
 * /proc the vDSO decides, which the kernel of an emulated machine maps. */
static bool is_emulated_alone(void) {
    static const char tasks[] = "/proc/self/task/";
    char link[sizeof tasks + sizeof "4294967295/exe"];
    char process[PATH_MAX];
    char thread[PATH_MAX];
    memcpy(link, tasks, sizeof tasks);
    char *const end = number_write(link + sizeof tasks - 1, 10,
                                   (uint64_t)bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0));
    memcpy(end, "/exe", sizeof "/exe");
    if (!program_link("/proc/self/exe", process, sizeof process) ||
        !program_link(link, thread, sizeof thread))
        return getauxval(AT_SYSINFO_EHDR) == 0;
    return strcmp(process, thread) != 0;
}

/* Detects a process under qemu-user. qemu itself, which the kernel knows by the same process id,
 * has the preload and the CPU time, too, so both would report that time. And a helper in each
 * forked child of the guest's would meet a fault of qemu's that ends the child. */
static bool is_under_qemu(const struct log *log) {
    if (!arch_cpu_is_emulated() || !is_emulated_alone())
        return false;
    log_debug(log, "qemu emulates the program; nothing is profiled in it, only in the process of "
                   "qemu's, if that has the preload, too");
    return true;
}

/* --- all of them --- */

bool is_ineligible(const struct log *log, char *const *arguments) {
    return has_older_glibc(log) || is_libc_alone(log) || is_loaded_late(log) ||
           has_another_copy(log) || is_short_of_memory(log) || has_sanitizer(log) ||
           has_heaptrack(log) || has_malloc_for_one_thread(log) ||
           is_child_of_chromium(log, arguments) || is_under_qemu(log);
}
