#include "helper_rights.h"

#include "bare_syscall.h"
#include "capture/capture.h"
#include "capture/thread_life.h"
#include "helper.h"
#include "process_file.h"
#include "seccomp_state.h"
#include "text_numbers.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

static const uint64_t id_capabilities = BIT(CAP_SETUID) | BIT(CAP_SETGID);
static const uint64_t needed = BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_IPC_LOCK);

struct capabilities {
    uint64_t effective;
    uint64_t permitted;
    uint64_t inheritable;
};

/* Reads the capabilities of a thread; 0 means the calling thread. */
static bool read_capabilities(uint32_t thread, struct capabilities *capabilities) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, (int)thread};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    capabilities->effective = data[0].effective | (uint64_t)data[1].effective << 32;
    capabilities->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    capabilities->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
    return true;
}

/* Gives up all capabilities except `kept`. The kernel also removes capabilities that are no longer
 * inheritable from the ambient set. */
static void keep_capabilities(uint64_t kept) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct capabilities own;
    if (!read_capabilities(0, &own) || !((own.permitted & ~kept) || own.inheritable))
        return;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        data[i].effective = (uint32_t)((own.effective & kept) >> 32 * i);
        data[i].permitted = (uint32_t)((own.permitted & kept) >> 32 * i);
    }
    (void)bare_syscall(SYS_capset, (long)&header, (long)data, 0, 0, 0, 0);
}

void helper_rights_drop(void) {
    if (!seccomp_is_filtered())
        keep_capabilities(needed);
    /* a bare call, because prctl() may be the program's own function */
    bare_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
}

/* --- comparison by the application's threads --- */

/* Holds the capabilities of the calling thread, and of the helper. */
struct pair {
    struct capabilities own;
    struct capabilities helpers;
};

static bool read_both(struct pair *pair) {
    const uint32_t thread = atomic_load(&helper.tid);
    return thread && read_capabilities(0, &pair->own) && read_capabilities(thread, &pair->helpers);
}

static bool has_helper_of_process(void) {
    return atomic_load(&helper.state) != HELPER_NONE && capture_is_of_this_thread();
}

/* Returns true if the helper still has all capabilities of the thread that created it; it gives
 * them up when it first runs. */
static bool has_not_begun(void) {
    return helper_state_is_running(atomic_load(&helper.state)) && !atomic_load(&helper.tid);
}

bool helper_rights_differ(void) {
    struct pair pair;
    return has_helper_of_process() &&
           (has_not_begun() || atomic_load(&helper.follows_ids) ||
            (read_both(&pair) &&
             ((pair.own.effective ^ pair.helpers.effective) & id_capabilities)));
}

bool helper_rights_exceed(void) {
    struct pair pair;
    return has_helper_of_process() &&
           (has_not_begun() ||
            (read_both(&pair) && (pair.helpers.permitted & ~pair.own.permitted)));
}

/* --- comparison by the helper --- */

enum { REAL, EFFECTIVE, SAVED, IDS };

/* Holds values of /proc/PID/status. */
struct thread_status {
    uint64_t users[IDS];
    uint64_t groups[IDS];
    uint64_t filters; /* number of seccomp filters; 1 for any number before Linux 5.9 */
    uint64_t permitted;
};

enum { STATUS_BYTES = 4096, LINK_BYTES = 64 };

static bool read_numbers(const char *text, const char *name, unsigned base, uint64_t *numbers,
                         size_t count) {
    const char *at = process_text_value(text, name, '\t');
    for (size_t i = 0; at && i < count; i++) {
        at = number_read(at, base, &numbers[i]);
        if (at && i + 1 < count)
            at = *at == '\t' ? at + 1 : NULL;
    }
    return at;
}

/* Parses the status. Returns false for a thread that has ended, too, because it gives up no more
 * rights. */
static bool parse_status(const char *text, struct thread_status *status) {
    return !strstr(text, "\nState:\tZ") && read_numbers(text, "Uid:", 10, status->users, IDS) &&
           read_numbers(text, "Gid:", 10, status->groups, IDS) &&
           read_numbers(text, "CapPrm:", 16, &status->permitted, 1) &&
           (read_numbers(text, "Seccomp_filters:", 10, &status->filters, 1) ||
            read_numbers(text, "Seccomp:", 10, &status->filters, 1));
}

static bool read_status(const char *path, struct thread_status *status) {
    char text[STATUS_BYTES];
    return process_file_text(process_file_open_path(path), text, sizeof text) &&
           parse_status(text, status);
}

static bool read_both_statuses(struct thread_status *main, struct thread_status *own) {
    return read_status("/proc/self/status", main) && read_status("/proc/thread-self/status", own);
}

/* Returns true if both links are the same, or if one of them cannot be read. */
static bool is_same_link(const char *a, const char *b) {
    char names[2][LINK_BYTES] = {"", ""};
    return readlink(a, names[0], LINK_BYTES - 1) <= 0 ||
           readlink(b, names[1], LINK_BYTES - 1) <= 0 || strcmp(names[0], names[1]) == 0;
}

static bool is_in_same_place(void) {
    return is_same_link("/proc/self/ns/mnt", "/proc/thread-self/ns/mnt") &&
           is_same_link("/proc/self/ns/net", "/proc/thread-self/ns/net");
}

/* --- ids --- */

static bool is_among(uint64_t id, const uint64_t *ids) {
    return id == ids[REAL] || id == ids[EFFECTIVE] || id == ids[SAVED];
}

/* Returns true if the real and the saved id of `own` are still among `ids`. Ignores the effective
 * id, which may change back and forth. */
static bool are_kept(const uint64_t *own, const uint64_t *ids) {
    return is_among(own[REAL], ids) && is_among(own[SAVED], ids);
}

static bool has_ids_still(const struct thread_status *main, const struct thread_status *own) {
    return are_kept(own->users, main->users) && are_kept(own->groups, main->groups);
}

static bool has_same_ids(const struct thread_status *a, const struct thread_status *b) {
    return memcmp(a->users, b->users, sizeof a->users) == 0 &&
           memcmp(a->groups, b->groups, sizeof a->groups) == 0;
}

static void set_ids(long number, const uint64_t *ids) {
    bare_syscall(number, (long)ids[REAL], (long)ids[EFFECTIVE], (long)ids[SAVED], 0, 0, 0);
}

/* Sets the user first, to its saved id, which may set the others. After a change of user the kernel
 * forbids dumps and tracers of the process; the program may have allowed them since its own change,
 * so this function allows them again. */
static void set_own_ids(const struct thread_status *own, const struct thread_status *ids) {
    const long dumpable = bare_syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0, 0);
    bare_syscall(SYS_setresuid, -1, (long)own->users[SAVED], -1, 0, 0, 0);
    set_ids(SYS_setresgid, ids->groups);
    set_ids(SYS_setresuid, ids->users);
    if (dumpable == 1)
        bare_syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0);
}

/* Returns true if the helper has given up ids that the main thread is about to give up. libc's
 * setuid() and its like have every other thread make the call first, and the calling thread last,
 * which takes long on a busy machine. */
static bool is_ahead(const struct thread_status *main, const struct thread_status *own) {
    return (main->permitted & id_capabilities) && !has_ids_still(main, own);
}

/* Reads the status of both threads. If the helper is ahead of the main thread, waits up to 5 s for
 * it. */
static bool read_stable(struct thread_status *main, struct thread_status *own) {
    enum { STATUS_PROBES = 500, NANO_BETWEEN = 10 * 1000 * 1000 };
    const struct timespec between = {.tv_nsec = NANO_BETWEEN};
    bool is_known = read_both_statuses(main, own);
    for (int probe = 1; probe < STATUS_PROBES && is_known && is_ahead(main, own); probe++) {
        bare_syscall(SYS_nanosleep, (long)(uintptr_t)&between, 0, 0, 0, 0, 0);
        is_known = read_both_statuses(main, own);
    }
    return is_known;
}

/* Gives the helper the main thread's ids. Returns false if the helper cannot get them, or has ids
 * that the main thread has given up. From now on libc's setuid() and its like suspend the helper,
 * because its ids may lag behind. */
static bool take_over_ids(struct thread_status *main, struct thread_status *own) {
    atomic_store(&helper.follows_ids, true);
    if (!read_stable(main, own) || !has_ids_still(main, own))
        return false;
    set_own_ids(own, main);
    return read_status("/proc/thread-self/status", own) && has_same_ids(main, own);
}

/* Makes the helper's ids those of the program. Returns false if the helper has ids that the program
 * has given up, or cannot get the program's.
 */
static bool follow_ids(struct thread_status *main, struct thread_status *own) {
    return has_same_ids(main, own) || (!seccomp_is_filtered() && take_over_ids(main, own));
}

bool helper_rights_hold(void) {
    /* the file of the process, /proc/PID/status, has the main thread's status */
    struct thread_status main;
    struct thread_status own;
    if (!read_stable(&main, &own))
        return true;
    if (own.permitted & ~main.permitted) {
        if (seccomp_is_filtered())
            return false;
        keep_capabilities(main.permitted & needed);
    }
    if (!follow_ids(&main, &own))
        return false;
    return atomic_load(&capture.live_threads) > 1 ||
           (own.filters >= main.filters && is_in_same_place());
}
