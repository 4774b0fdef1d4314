/* Tests the process's memory and limits, as /proc reports them. */
#include "unit.h"

#include "files/process_memory.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void sizes_are_pages_of_the_text(void **state) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct process_memory memory;
    (void)state;
    assert_true(process_memory_parse("1000 200 150 7 0 300 0\n", &memory));
    assert_int_equal(memory.space, 1000 * page);
    assert_int_equal(memory.resident, 200 * page);
    assert_int_equal(memory.data, 300 * page);
    assert_false(process_memory_parse("", &memory));
    assert_false(process_memory_parse("nonsense\n", &memory));
    assert_false(process_memory_parse("1000 200 150\n", &memory));
}

static void a_limit_is_missing_or_a_number(void **state) {
    const struct process_limits none = process_limits_parse("");
    const struct process_limits some =
        process_limits_parse("Limit                     Soft Limit           Hard Limit\n"
                             "Max data size             0                    unlimited\n"
                             "Max address space         unlimited            unlimited\n");
    (void)state;
    assert_true(none.space == UINT64_MAX && none.data == UINT64_MAX);
    assert_true(some.space == UINT64_MAX && some.data == 0);
}

static void the_kernels_texts_have_this_form(void **state) {
    struct process_memory memory;
    struct process_limits limits;
    struct rlimit data;
    (void)state;
    assert_true(process_memory_read(&memory));
    assert_true(process_limits_read(&limits));
    assert_int_equal(getrlimit(RLIMIT_DATA, &data), 0);
    assert_true(memory.resident > 0 && memory.space > memory.resident && memory.data > 0);
    assert_true(limits.data == data.rlim_cur); /* RLIM_INFINITY is UINT64_MAX */
}

/* --- after the main thread's end --- */

static char groups_before[KERNEL_TEXT_BYTES];
static pthread_t main_thread;

/* Waits for the end of the main thread, and ends the process with 0 if the texts are those of a
 * process that runs. */
static void *read_alone(void *arg) {
    (void)arg;
    struct process_memory memory;
    char groups[KERNEL_TEXT_BYTES];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", (int)getpid());
    pthread_join(main_thread, NULL);
    /* the kernel clears the thread's id before it lets go of the thread's memory and groups */
    while (!kernel_text(path, "stat", groups) || !strstr(groups, ") Z "))
        sched_yield();
    if (!process_memory_read(&memory) || memory.resident == 0)
        _exit(1);
    _exit(process_groups_read(groups) && strcmp(groups, groups_before) == 0 ? 0 : 2);
}

static void the_main_threads_end_changes_nothing(void **state) {
    int status = 0;
    (void)state;
    assert_true(process_groups_read(groups_before));
    const pid_t child = fork();
    if (child == 0) {
        pthread_t reader;
        main_thread = pthread_self();
        if (pthread_create(&reader, NULL, read_alone, NULL) != 0)
            _exit(3);
        pthread_exit(NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_pages_of_the_text),
        cmocka_unit_test(a_limit_is_missing_or_a_number),
        cmocka_unit_test(the_kernels_texts_have_this_form),
        cmocka_unit_test(the_main_threads_end_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
