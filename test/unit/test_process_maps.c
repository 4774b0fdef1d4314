/* Tests the reader of this process's mappings, against a naive twin. */
#include "unit.h"

#include "process_maps.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, PAGES = 600, MOST_LINES = 2000 };

static void a_line_has_a_range_and_a_name(void **state) {
    const struct process_mapping file =
        process_mapping_parse("7f00-7f12b000 r-xp 00001000 fe:00 77    /tmp/a b (deleted)");
    const struct process_mapping none = process_mapping_parse("7f00-7f12 rw-p 00000000 00:00 0 ");
    const struct process_mapping nonsense = process_mapping_parse("7f00 rw-p");
    (void)state;
    assert_true(file.start == 0x7f00 && file.end == 0x7f12b000);
    assert_string_equal(process_mapping_name(&file), "/tmp/a b (deleted)");
    assert_string_equal(process_mapping_name(&none), "");
    assert_string_equal(nonsense.rest, "");
    assert_string_equal(process_mapping_name(&nonsense), "");
}

/* --- the list --- */

struct list {
    size_t count;
    uint64_t starts[MOST_LINES];
    uint64_t ends[MOST_LINES];
    char names[MOST_LINES][64];
};

static bool add(void *arg, const struct process_mapping *mapping) {
    struct list *const list = arg;
    if (list->count == MOST_LINES)
        return true;
    list->starts[list->count] = mapping->start;
    list->ends[list->count] = mapping->end;
    snprintf(list->names[list->count++], 64, "%s", process_mapping_name(mapping));
    return false;
}

static void add_by_stdio(struct list *list) {
    char line[2 * PATH_MAX];
    FILE *const maps = fopen("/proc/thread-self/maps", "re");
    assert_non_null(maps);
    while (list->count < MOST_LINES && fgets(line, sizeof line, maps)) {
        unsigned long start;
        unsigned long end;
        int at = 0;
        assert_int_equal(sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at), 2);
        line[strcspn(line, "\n")] = 0;
        list->starts[list->count] = start;
        list->ends[list->count] = end;
        snprintf(list->names[list->count++], 64, "%s", line + at);
    }
    fclose(maps);
}

static void each_line_is_visited_once(void **state) {
    static struct list list;
    static struct list twin;
    char *const memory = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(memory != MAP_FAILED);
    for (size_t i = 0; i < PAGES; i += 2) /* each page becomes a mapping */
        assert_int_equal(mprotect(memory + i * PAGE_BYTES, PAGE_BYTES, PROT_READ), 0);
    assert_false(process_maps_visit(add, &list));
    add_by_stdio(&twin);
    assert_true(list.count > PAGES);
    assert_memory_equal(&list, &twin, sizeof list);
    munmap(memory, (size_t)PAGES * PAGE_BYTES);
}

/* Reads from a socket, of which each read returns one of these pieces. */
static void a_line_may_come_in_pieces(void **state) {
    static const char *const pieces[] = {"10-20 r--p 0 0 0  /a\n2", "0-30 r--p 0 0 0  /b",
                                         "b\n30-40 r--p 0 0 0  /c\n", "40-50 r--p 0 0 0  /d\n"};
    static struct list list;
    int sockets[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        assert_true(write(sockets[0], pieces[i], strlen(pieces[i])) > 0);
    close(sockets[0]);
    assert_false(process_maps_visit_file(sockets[1], add, &list));
    close(sockets[1]);
    assert_int_equal(list.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(list.starts[i] == 16 * (i + 1) && list.ends[i] == 16 * (i + 2));
    assert_string_equal(list.names[0], "/a");
    assert_string_equal(list.names[1], "/bb");
    assert_string_equal(list.names[2], "/c");
    assert_string_equal(list.names[3], "/d");
}

/* --- long names --- */

static bool is_named(void *path, const struct process_mapping *mapping) {
    return strcmp(process_mapping_name(mapping), path) == 0;
}

/* Makes a path that is nearly as long as a path can be, folder by folder. */
static void a_name_is_whole(void **state) {
    enum { PART = 200, PARTS = PATH_MAX / (PART + 1) - 1 };
    char root[] = "/tmp/process-maps-XXXXXX";
    char part[PART + 1];
    char path[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s", root);
    memset(part, 'p', PART);
    part[PART] = 0;
    for (int i = 0; i < PARTS; i++) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", part);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path + strlen(path), sizeof path - strlen(path), "/file");
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0 && ftruncate(file, PAGE_BYTES) == 0);
    void *const page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
    assert_true(page != MAP_FAILED);
    const bool found = process_maps_visit(is_named, path);
    munmap(page, PAGE_BYTES);
    close(file);
    unlink(path);
    for (char *end; strlen(path) > strlen(root) && (end = strrchr(path, '/'));) {
        *end = 0;
        rmdir(path);
    }
    assert_true(found);
}

/* --- after the main thread's end --- */

static bool any(void *arg, const struct process_mapping *mapping) {
    (void)arg;
    return mapping->end != 0;
}

static pthread_t main_thread;

static void *visit_alone(void *arg) {
    char path[64];
    char text[256] = "";
    (void)arg;
    pthread_join(main_thread, NULL);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)getpid());
    /* the kernel clears the thread's id before it lets go of the thread's memory */
    while (!strstr(text, ") Z ")) {
        FILE *const file = fopen(path, "re");
        if (!file || !fgets(text, sizeof text, file))
            _exit(2);
        fclose(file);
        sched_yield();
    }
    _exit(process_maps_visit(any, NULL) ? 0 : 1);
}

static void the_main_threads_end_changes_nothing(void **state) {
    int status = 0;
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        pthread_t visitor;
        main_thread = pthread_self();
        if (pthread_create(&visitor, NULL, visit_alone, NULL) != 0)
            _exit(3);
        pthread_exit(NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_a_range_and_a_name),
        cmocka_unit_test(each_line_is_visited_once),
        cmocka_unit_test(a_line_may_come_in_pieces),
        cmocka_unit_test(a_name_is_whole),
        cmocka_unit_test(the_main_threads_end_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
