#include "helper_load.h"

#include "capture/capture.h"
#include "helper.h"
#include "object_file.h"
#include "open_flags.h"
#include "process_maps.h"
#include "process_tree.h"
#include "quiesce_lock.h"
#include "release.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

static bool file_exists(const char *path) {
    struct stat status;
    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0;
}

static bool is_installed_release(void *arg, const struct process_mapping *mapping) {
    (void)arg;
    return strstr(mapping->rest, "/" OTELPROF_RELEASE "/libotelprof.so") != NULL;
}

/* Returns the path of the flush library: in the folder of this release if the file is there, else
 * beside libotelprof.so. If neither file exists any more, chooses by the kernel's record of the
 * profiler's mapping. */
static const char *flush_path(void) {
    if (file_exists(helper.release_path))
        return helper.release_path;
    if (file_exists(helper.flush_path))
        return helper.flush_path;
    return process_maps_visit(is_installed_release, NULL) ? helper.release_path : helper.flush_path;
}

/* Loads a library, and compares the release that its symbol names with this one. Sets `loading`
 * during the load, so that a fork waits; a caller may have set it already. */
static void *open_library(const char *path, const char *release_symbol, bool *other_release) {
    const bool was_loading = atomic_exchange(&helper.loading, true);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *const release = library ? dlsym(library, release_symbol) : NULL;
    *other_release = library && (!release || strcmp(release, OTELPROF_RELEASE) != 0);
    atomic_store(&helper.loading, was_loading);
    return library;
}

static void load_library(void) {
    const char *const path = flush_path();
    if (!object_file_is_whole(path))
        return;
    void *const library = open_library(path, FLUSH_RELEASE_SYMBOL, &helper.other_release);
    void *const found = library && !helper.other_release ? dlsym(library, FLUSH_MAIN_SYMBOL) : NULL;
    memcpy(&helper.run, &found, sizeof found);
}

void *helper_load_beside(const char *name, const char *release, const char **why) {
    char path[PATH_BYTES];
    const char *const flush = flush_path();
    const size_t folder = (size_t)(strrchr(flush, '/') - flush) + 1;
    const size_t size = strlen(name) + 1;
    bool other_release = false;
    *why = "its path is too long";
    if (folder + size > sizeof path)
        return NULL;
    memcpy(path, flush, folder);
    memcpy(path + folder, name, size);
    *why = "the file is cut short";
    if (!object_file_is_whole(path))
        return NULL;
    void *const library = open_library(path, release, &other_release);
    *why = library ? "it is of another build" : dlerror();
    return other_release ? NULL : library;
}

/* Returns true if the file cannot be opened although its mode allows reading. */
static bool is_kept_from_reading(const char *path) {
    if (syscall(SYS_faccessat, AT_FDCWD, path, R_OK) != 0)
        return false;
    const int file = (int)syscall(SYS_openat, AT_FDCWD, path, OPEN_TO_READ, 0);
    const bool refused = file < 0 && (errno == EACCES || errno == EPERM);
    if (file >= 0)
        close(file);
    return refused;
}

/* Returns true if the program has restricted itself (landlock) or was started in a sandbox: in a
 * sandbox the library may be out of reach, and so may the libraries that it needs, which are beside
 * libc. */
static bool is_sandboxed(const char *path) {
    const struct harvest_module *const libc =
        modules_find(&capture.modules, (uintptr_t)(void *)getpid);
    return is_kept_from_reading(path) || (libc && is_kept_from_reading(libc->path));
}

static void report_not_loaded(void) {
    const char *const path = flush_path();
    const char *const why = helper.other_release         ? NULL
                            : object_file_is_whole(path) ? dlerror()
                                                         : "the file is cut short";
    const enum log_level level =
        is_sandboxed(path) ? LOG_DEBUG : log_level_in_tree(helper.log, LOG_INSTALLATION, LOG_ERROR);
    if (helper.other_release)
        log_write(helper.log, level,
                  "%s is of another build than libotelprof.so, which is %s and was "
                  "perhaps replaced while this process ran; nothing is profiled",
                  path, OTELPROF_RELEASE);
    else
        log_write(helper.log, level, "%s cannot be loaded (%s); nothing is profiled", path,
                  why ? why : "symbol missing");
}

/* Loads under the quiesce lock: a child forked meanwhile would inherit a loader in the middle of
 * its work, with half-loaded libraries or held locks. Keeps the result, so that a forked child
 * needs no loader for a library that its parent has loaded. */
static flush_main *find_flush_main(void) {
    /* An allocator that precedes the profiler's may create a thread in its first call, under its
     * lock (heaptrack), and a new thread needs the loader. After this allocation such a first call
     * is over, so the loader cannot deadlock with it on this thread. malloc is called by the name
     * that libraries use, with neither a lock of the loader nor the quiesce lock held. */
    void *volatile object = malloc(1);
    free(object);
    if (!quiesce_lock_enter())
        return NULL;
    if (!helper.run)
        load_library();
    quiesce_lock_leave();
    return helper.run;
}

bool helper_may_open_by_path(void) {
    return file_root_is(&helper.root);
}

flush_main *helper_load_flush(void) {
    if (helper.other_release) /* the failure was logged already, and is permanent */
        return NULL;
    /* behind another root the loader would take the library, and the libraries that it needs, from
     * unknown files */
    if (!atomic_load(&helper.initialised) && !helper_may_open_by_path()) {
        log_debug(helper.log,
                  "the program has changed its root or its mounts before the exporter was "
                  "loaded; nothing is profiled");
        return NULL;
    }
    flush_main *const run = find_flush_main();
    if (!run && atomic_load(&helper.request) != REQUEST_ABANDON)
        report_not_loaded();
    return run;
}
