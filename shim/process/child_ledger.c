#include "child_ledger.h"

#include "capture/capture.h"
#include "capture/kernel/first_page.h"
#include "capture/kernel/profiler_memory.h"
#include "capture/record/child_samples.h"
#include "clock.h"
#include "helper.h"
#include "open_flags.h"
#include "process_stat.h"
#include "process_tree.h"
#include "text_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    ENTRIES = 4096, /* most children at a time that have exported; further children count as lost */
    PATH_BYTES = 64,
    MOST_SEARCHES = 4, /* most searches for the ancestor's ledger before exports */
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
    OWN_LEDGERS = 4,
    TICK_NANO = 10 * 1000 * 1000, /* unit of process_stat.started */
};

static const uint32_t NO_ENTRY = UINT32_MAX;

/* Holds the report of one child, which the child writes and its ancestor reads. */
struct ledger_entry {
    _Atomic uint32_t pid; /* process id of the child; 0: the entry is free */
    _Atomic uint32_t parent;
    _Atomic uint64_t started; /* process_stat.started */
    _Atomic uint64_t exported_nano;
};

/* Holds a ledger, in the layout of its file. */
struct ledger {
    _Atomic uint32_t used; /* number of entries that were ever taken, from the first entry on */
    struct ledger_entry entries[ENTRIES];
};

IN_FIRST_PAGE static struct child_ledger {
    /* The helper makes a ledger with each table of descriptors that it gets; children that are
     * forked from now on use the last ledger. */
    struct ledger *own[OWN_LEDGERS];
    uint32_t own_count;
    struct file_identity marker; /* identity of the last ledger's file */
    struct ledger *ancestor;     /* the ledger of the nearest ancestor with a helper; NULL: none */
    struct ledger *stale;        /* a mapping inherited from further above */
    uint32_t searches;           /* number of searches for the ancestor's ledger so far */
    bool is_adopted;             /* the process has another parent than at its first report */
    bool is_unknown;             /* a table had no ledger, so children may have exported unseen */
    bool has_start;
    uint64_t nano_at_start; /* CPU time of children, in ns, before the process's own exec */
    uint64_t exported_nano; /* CPU time, in ns, that children have exported that are gone */
    uint32_t entry;         /* number of this process's entry in the ancestor's ledger */
    uint32_t parent;        /* parent's process id when the entry was taken */
} children;

/* Returns the CPU time of all children that were waited for, and of the children that these waited
 * for. */
static uint64_t waited_nano(void) {
    struct rusage usage;
    if (syscall(SYS_getrusage, RUSAGE_CHILDREN, &usage) != 0)
        return 0;
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NANO_PER_SECOND +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

void child_ledger_note_start(void) {
    if (!children.has_start)
        children.nano_at_start = waited_nano();
    children.has_start = true;
}

void child_ledger_after_fork(void) {
    if (children.own_count) {
        children.stale = children.ancestor;
        children.ancestor = children.own[children.own_count - 1];
    }
    children.own_count = 0;
    children.marker.known = false;
    children.is_unknown = false;
    children.searches = 0;
    children.is_adopted = false;
    children.has_start = true;
    children.nano_at_start = 0;
    children.exported_nano = 0;
    children.entry = NO_ENTRY;
    atomic_store(&capture.short_child_nano, 0);
}

/* --- the files --- */

/* Maps a ledger's file. Returns NULL if the file has another size, or a process could still shrink
 * it, so that a later access would fault. */
static struct ledger *map_sealed(int file) {
    struct stat status;
    const long seals = syscall(SYS_fcntl, file, F_GET_SEALS, 0);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || syscall(SYS_fstat, file, &status) != 0 ||
        status.st_size != sizeof(struct ledger))
        return NULL;
    void *const memory = (void *)syscall(SYS_mmap, NULL, sizeof(struct ledger),
                                         PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, sizeof(struct ledger), MADV_DONTDUMP);
    return memory;
}

static struct ledger *make_own(const struct descriptor_table *table) {
    if (!table->marked.known || syscall(SYS_ftruncate, table->marker, sizeof(struct ledger)) != 0 ||
        syscall(SYS_fcntl, table->marker, F_ADD_SEALS, SEALS) != 0)
        return NULL;
    return map_sealed(table->marker);
}

/* Returns true for a regular file of this process's user: opening such a file has no effect,
 * whereas opening a device may have an effect. */
static bool is_own_file(int file) {
    struct stat status;
    return syscall(SYS_fstat, file, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == (uid_t)syscall(SYS_geteuid);
}

/* Opens the ancestor's ledger. Checks the file by a descriptor of this process, whose file cannot
 * change, and opens it by that descriptor: the ancestor may be another user's, and may put another
 * file in the place of the ledger. */
static struct ledger *open_ancestors(void) {
    char path[PATH_BYTES];
    uint32_t tid;
    const pid_t pid = process_tree_nearest_profiled(&tid);
    if (!pid)
        return NULL;
    char *at = number_write(stpcpy(path, "/proc/"), 10, (uint64_t)pid);
    at = number_write(stpcpy(at, "/task/"), 10, tid);
    at = number_write(stpcpy(at, "/fd/"), 10, DESCRIPTORS_FIRST_MARKER);
    *at = 0;
    const int found = (int)syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
    if (found < 0)
        return NULL;
    at = number_write(stpcpy(path, "/proc/thread-self/fd/"), 10, (uint64_t)found);
    *at = 0;
    const int file =
        is_own_file(found) ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | OPEN_SAFELY, 0) : -1;
    struct ledger *const ledger = file >= 0 ? map_sealed(file) : NULL;
    if (file >= 0)
        close(file);
    close(found);
    return ledger;
}

/* Makes a ledger, unless this table of descriptors has one already: after a suspension the helper
 * has another table. Children go on using the ledger that they have. */
static void begin_own(const struct descriptor_table *table) {
    if (children.marker.known && children.marker.inode == table->marked.inode)
        return;
    children.marker = table->marked;
    struct ledger *const made = children.own_count < OWN_LEDGERS ? make_own(table) : NULL;
    if (made)
        children.own[children.own_count++] = made;
    children.is_unknown |= !made;
}

static void search_ancestor(void) {
    if (children.ancestor || children.is_adopted)
        return;
    children.searches++;
    children.entry = NO_ENTRY;
    children.ancestor = open_ancestors();
}

void child_ledger_begin(const struct descriptor_table *table) {
    child_samples_share();
    /* forgets the mapping first: another thread may fork in between, and the child must not unmap
     * it again. The fence pairs with the fork's copy alone */
    struct ledger *const stale = children.stale;
    children.stale = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    if (stale)
        profiler_memory_unmap(stale, sizeof *stale);
    search_ancestor();
    begin_own(table);
}

/* --- a child's part --- */

static bool take_at(struct ledger *ledger, uint32_t i, uint32_t pid) {
    uint32_t free_entry = 0;
    return atomic_compare_exchange_strong(&ledger->entries[i].pid, &free_entry, pid);
}

/* Frees an entry. Stores the id last, so that the next process that takes the entry finds it
 * empty. */
static void free_entry(struct ledger_entry *entry) {
    atomic_store(&entry->exported_nano, 0);
    atomic_store(&entry->started, 0);
    atomic_store(&entry->parent, 0);
    atomic_store(&entry->pid, 0);
}

static uint32_t ledger_take_entry(struct ledger *ledger, uint32_t pid) {
    const uint32_t used = atomic_load(&ledger->used);
    for (uint32_t i = 0; i < used && i < ENTRIES; i++)
        if (take_at(ledger, i, pid))
            return i;
    const uint32_t i = used < ENTRIES ? atomic_fetch_add(&ledger->used, 1) : ENTRIES;
    return i < ENTRIES && take_at(ledger, i, pid) ? i : NO_ENTRY;
}

/* Returns the CPU time of children since the process's own exec. */
static uint64_t childrens_nano(void) {
    const uint64_t waited = waited_nano();
    return waited > children.nano_at_start ? waited - children.nano_at_start : 0;
}

/* Returns the CPU time that the process's exports will cover after the next export: the process's
 * own since the profiler's start, and that of its children, which they or this process account
 * for. */
static uint64_t accounted_nano(void) {
    const uint64_t used = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t own = used > helper.start_cpu_nano ? used - helper.start_cpu_nano : 0;
    return own + childrens_nano();
}

/* Stores the process's time in its entry. Frees the entry of a process that has another parent by
 * now, because the new parent waits for it. */
static void report(void) {
    struct ledger *const ledger = children.ancestor;
    struct process_stat stat;
    if (!ledger || !process_stat_read(&stat))
        return;
    const uint32_t parent = stat.parent;
    if (children.entry == NO_ENTRY) {
        children.entry = ledger_take_entry(ledger, stat.pid);
        children.parent = parent;
    }
    if (children.entry == NO_ENTRY)
        return;
    struct ledger_entry *const entry = &ledger->entries[children.entry];
    if (atomic_load(&entry->pid) != stat.pid)
        return;
    atomic_store(&entry->started, stat.started);
    atomic_store(&entry->parent, parent);
    atomic_store(&entry->exported_nano, accounted_nano());
    if (parent == children.parent)
        return;
    free_entry(entry);
    children.is_adopted = true;
    children.ancestor = NULL;
    profiler_memory_unmap(ledger, sizeof *ledger);
}

/* Reports to the ancestor. Searches for the ancestor's ledger first, because the ancestor's helper
 * may have started later than this process's helper. */
void child_ledger_report(void) {
    search_ancestor();
    report();
}

/* --- the parent's part --- */

static uint32_t ledger_used(const struct ledger *ledger) {
    const uint32_t used = atomic_load(&ledger->used);
    return used < ENTRIES ? used : ENTRIES;
}

static bool has_entry(const struct ledger *ledger, uint32_t pid) {
    for (uint32_t i = 0; i < ledger_used(ledger); i++)
        if (atomic_load(&ledger->entries[i].pid) == pid)
            return true;
    return false;
}

static bool ledger_process_is_there(uint32_t pid) {
    struct process_stat stat;
    return process_stat_read_of((pid_t)pid, &stat);
}

/* Returns true if the entry's process has been waited for. Its id may belong to another process by
 * now. */
static bool is_gone(const struct ledger_entry *entry) {
    struct process_stat stat;
    return !process_stat_read_of((pid_t)atomic_load(&entry->pid), &stat) ||
           stat.started != atomic_load(&entry->started);
}

/* Returns true if the entry of a process with that parent counts for this process: the parent is
 * this process, or has no entry. If the parent has an entry, that contains the time of its
 * children. */
static bool ledger_entry_counts(const struct ledger *ledger, uint32_t parent, uint32_t own) {
    return parent == own || !has_entry(ledger, parent);
}

/* Counts an entry and frees it, if its process, and a parent other than this process, are gone. An
 * entry without a parent was never completed, or is of another pid namespace: it is freed without
 * being counted. */
static void count_entry(struct ledger *ledger, struct ledger_entry *entry, uint32_t own,
                        bool of_child) {
    const uint32_t pid = atomic_load(&entry->pid);
    const uint32_t parent = atomic_load(&entry->parent);
    const bool is_child = parent == own;
    if (!pid || is_child != of_child)
        return;
    if (parent ? !is_gone(entry) || (!is_child && ledger_process_is_there(parent))
               : ledger_process_is_there(pid))
        return;
    if (parent && ledger_entry_counts(ledger, parent, own))
        children.exported_nano += atomic_load(&entry->exported_nano);
    free_entry(entry);
}

/* Counts all entries, children last: the entry of a process is needed to judge the entries of its
 * children. */
static void ledger_count_entries(struct ledger *ledger, uint32_t own) {
    for (int of_child = 0; of_child <= 1; of_child++)
        for (uint32_t i = 0; i < ledger_used(ledger); i++)
            count_entry(ledger, &ledger->entries[i], own, of_child);
}

/* Returns the time of this process's children that exported before this process had a ledger of its
 * own. */
static uint64_t exported_above(uint32_t own) {
    const struct ledger *const ledger = children.ancestor;
    uint64_t nano = 0;
    for (uint32_t i = 0; ledger && i < ledger_used(ledger); i++) {
        const struct ledger_entry *const entry = &ledger->entries[i];
        if (atomic_load(&entry->pid) && atomic_load(&entry->parent) == own && is_gone(entry))
            nano += atomic_load(&entry->exported_nano);
    }
    return nano;
}

/* Counts the time that is lost. Reads the total first: a child that is waited for meanwhile is then
 * subtracted too early, which the next count corrects; the other order would count it as lost. */
static void ledger_count_lost(uint32_t own) {
    const uint64_t total = childrens_nano();
    for (uint32_t i = 0; i < children.own_count; i++)
        ledger_count_entries(children.own[i], own);
    const uint64_t exported = children.exported_nano + exported_above(own);
    const uint64_t lost = total > exported ? total - exported : 0;
    if (lost <= atomic_load(&capture.short_child_nano))
        return;
    atomic_store(&capture.short_child_nano, lost);
    atomic_store(&capture.recorder.dropped[DROP_SHORT_CHILD], lost / NANO_PER_SECOND);
}

/* --- children that ended before they had a helper --- */

/* Returns true if /proc shows the ids that this process has for others, and other users' processes:
 * a process that is not there has ended. */
static bool proc_shows_all(void) {
    struct process_stat stat;
    return process_stat_read(&stat) && stat.pid == (uint32_t)capture.pid &&
           process_stat_read_of(1, &stat);
}

/* Returns true if no process has the id. Asks without /proc, which may hide the process of another
 * user, or not be readable at the moment. */
static bool is_free(uint32_t pid) {
    return pid > INT_MAX || (syscall(SYS_tgkill, pid, pid, 0) != 0 && errno == ESRCH);
}

/* Returns true if the process has ended, whether its parent has waited for it or not, or runs
 * another program: it writes no sample any more. `start_nano`: CLOCK_MONOTONIC, a moment when the
 * process existed; 0: not known. A process that began later has the id of one that has ended. */
static bool ledger_process_has_ended(uint32_t pid, uint64_t start_nano) {
    struct process_stat stat;
    if (!proc_shows_all())
        return false;
    if (!process_stat_read_of((pid_t)pid, &stat))
        return is_free(pid);
    if (stat.is_dead || stat.has_called_exec)
        return true;
    const uint64_t suspended_nano = clock_nano(CLOCK_BOOTTIME) - monotonic_nano();
    return start_nano && stat.started * TICK_NANO > start_nano + suspended_nano + TICK_NANO;
}

void child_ledger_count_lost(const struct ended_child *child) {
    children.exported_nano -=
        child->cpu_nano < children.exported_nano ? child->cpu_nano : children.exported_nano;
}

/* Counts and reports. Without /proc no process can state how much it has exported, so nothing is
 * counted as lost. */
void child_ledger_poll(void) {
    struct process_stat stat;
    if (children.searches < MOST_SEARCHES)
        search_ancestor();
    report();
    children.exported_nano += child_samples_find_ended(ledger_process_has_ended);
    if (children.own_count && !children.is_unknown && process_stat_read(&stat))
        ledger_count_lost(stat.pid);
}
