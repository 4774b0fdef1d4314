/* Numbers the system calls that the profiler makes in a program, and makes one of them fail.
 *
 * usage: inject list REPORT PROGRAM [ARGUMENTS...]
 *        inject all REPORT PROGRAM [ARGUMENTS...]
 *        inject check REPORT PROGRAM [ARGUMENTS...]
 *        inject deny REPORT CALL ERRNO PROGRAM [ARGUMENTS...]
 *        inject fail REPORT PROCESS ROLE CALL SITE NUMBER ERRNO PROGRAM [ARGUMENTS...]
 *
 * `list` writes a line for each call of ours: PROCESS ROLE CALL SITE NUMBER STACK.
 *   PROCESS  0 for the program, then its children in the order of their forks
 *   ROLE     "app": a thread of the program. A call is ours if the profiler made it for itself:
 *            the nearest frame outside libc and the loader is in libotelprof.so, and is no hook
 *            that only forwards the program's own call.
 *            "helper": the thread otelprof and what it created. Every call is ours.
 *   SITE     where the call was made: OBJECT+OFFSET of that frame
 *   NUMBER   which of the calls with all of that in common it is, from 1
 * `all` counts the calls of the whole program, whoever makes them, by number: CALL COUNT.
 * `check` compares each call of ours with allowed_calls.def and with the calls that the model in
 * seccomp_filter.c tries, and appends one line for each fault: WHAT ROLE CALL ARGUMENTS STACK.
 *   name       the call is not listed, or is made behind a filter though only `UNFILTERED` lists it
 *   arguments  the call is made behind a filter that the program has installed since its start, and
 *              the model would have passed a filter that kills for the call with these arguments
 * `fail` makes that one call fail with ERRNO, unmade, and writes "met STACK" if it came.
 * `deny` makes every call of ours with that number fail, as a sandbox would; writes "met" likewise.
 * The program's output passes through; the status is the program's, 128 + signal if one killed it.
 */
/* flags: -Ishim -Icommon -Icommon/arch/x86_64 -Ishim/capture/arch/x86_64 -ldw -lelf */
#define _GNU_SOURCE
#include "listed_calls.h"
#include "traced_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_TASKS = 256,
    MAX_PROCESSES = 4096,
    MAX_COUNTERS = 4096,
    MAX_CALLS = 512,
    SITE = 96,
    STACK_WORDS = 1024, /* scanned for a caller of ours */
};

enum mode { LIST, ALL, CHECK, DENY, FAIL };
static const char *const modes[] = {"list", "all", "check", "deny", "fail"};
static const char *const roles[] = {"app", "helper"};

struct wanted {
    int process;
    enum role role;
    long call;
    const char *site;
    long number;
    int error;
};

/* Counts how often a call came, by all that distinguishes it from others. */
struct counter {
    char key[192];
    long count;
};

static struct {
    enum mode mode;
    FILE *report;
    pid_t program;
    struct wanted wanted;
    bool done; /* the call has been met */
    long calls[MAX_CALLS];
} inject;

static struct process processes[MAX_PROCESSES];
static int process_count;
static struct task tasks[MAX_TASKS];
static struct counter counters[MAX_COUNTERS];
static int counter_count;

/* --- who is who --- */

static struct task *task_of(pid_t tid) {
    struct task *unused = NULL;
    for (int i = 0; i < MAX_TASKS; i++) {
        if (tasks[i].tid == tid)
            return &tasks[i];
        if (tasks[i].tid == 0 && !unused)
            unused = &tasks[i];
    }
    if (!unused)
        die("too many threads");
    *unused = (struct task){.tid = tid};
    return unused;
}

static struct process *new_process(pid_t pid) {
    if (process_count == MAX_PROCESSES)
        die("too many processes");
    struct process *const process = &processes[process_count++];
    *process = (struct process){.pid = pid, .stale = true, .maps_stale = true};
    return process;
}

static long count(const char *key) {
    int i = 0;
    while (i < counter_count && strcmp(counters[i].key, key) != 0)
        i++;
    if (i == MAX_COUNTERS)
        die("too many call sites");
    if (i == counter_count)
        snprintf(counters[counter_count++].key, sizeof counters->key, "%s", key);
    return ++counters[i].count;
}

/* --- calls --- */

static bool changes_mappings(long call) {
    return call == SYS_mmap || call == SYS_munmap || call == SYS_execve;
}

/* Writes "OBJECT+OFFSET" of the frame that made the call. Returns false if the call is not ours. */
static bool site_of(struct task *task, long call, char site[static SITE]) {
    const struct place *const frame = maker(task->role, walk(task, call));
    if (frame)
        snprintf(site, SITE, "%.64s+%lx", frame->object, (unsigned long)frame->offset);
    return frame != NULL;
}

static void list_call(struct task *task, long call) {
    const int process = (int)(task->process - processes);
    char site[SITE];
    char key[sizeof site + 64];
    char text[TEXT];
    if (!site_of(task, call, site))
        return;
    snprintf(key, sizeof key, "%d %d %ld %s", process, task->role, call, site);
    describe(&task->stack, text);
    fprintf(inject.report, "%d %s %ld %s %ld %s\n", process, roles[task->role], call, site,
            count(key), text);
}

static bool is_at_wanted_site(struct task *task, long call) {
    char site[SITE];
    return site_of(task, call, site) && strcmp(site, inject.wanted.site) == 0;
}

static bool is_the_one(struct task *task, long call) {
    const struct wanted *const wanted = &inject.wanted;
    return !inject.done && call == wanted->call && task->role == wanted->role &&
           task->process - processes == wanted->process && is_at_wanted_site(task, call) &&
           count("wanted") == wanted->number;
}

/* Returns true if the call is to be denied. glibc's own futex calls are not: they never fail so,
 * and glibc would end the process. */
static bool is_denied(struct task *task, long call) {
    char site[SITE];
    return call == inject.wanted.call && site_of(task, call, site) &&
           (call != SYS_futex || strcmp(task->stack.frames[0]->function, "syscall") == 0);
}

static bool is_wanted(struct task *task, long call) {
    char text[TEXT];
    if (!(inject.mode == DENY ? is_denied(task, call) : is_the_one(task, call)))
        return false;
    describe(&task->stack, text);
    if (!inject.done)
        fprintf(inject.report, "met %s\n", text);
    inject.done = true;
    return true;
}

/* Sets a register; returns its former value. */
static long set_register(const struct task *task, size_t which, long value) {
    const long before = ptrace(PTRACE_PEEKUSER, task->tid, which, NULL);
    ptrace(PTRACE_POKEUSER, task->tid, which, value);
    return before;
}

/* --- the comparison with the list --- */

static bool is_in_capture(const struct process *process, uint64_t address) {
    return address - process->start < process->end - process->start;
}

static void find_capture(struct process *process) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", process->pid);
    FILE *const maps = fopen(path, "re");
    process->maps_stale = false;
    process->start = process->end = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (!strstr(line, "/libotelprof.so") || sscanf(line, "%lx-%lx", &start, &end) != 2)
            continue;
        if (!process->start)
            process->start = start;
        process->end = end;
    }
    if (maps)
        fclose(maps);
}

/* Returns true if the library is on the stack, or may be: an address of its code is among the words
 * there. */
static bool may_be_ours(struct task *task, const struct __ptrace_syscall_info *info) {
    static uint64_t words[STACK_WORDS];
    struct process *const process = task->process;
    if (process->maps_stale)
        find_capture(process);
    if (is_in_capture(process, info->instruction_pointer))
        return true;
    for (size_t bytes = sizeof words; bytes >= 512; bytes /= 2) { /* the stack may end before */
        const struct iovec here = {words, bytes};
        const struct iovec there = {(void *)(uintptr_t)info->stack_pointer, bytes};
        const ssize_t got = process_vm_readv(task->tid, &here, 1, &there, 1, 0);
        for (ssize_t i = 0; i < got / (ssize_t)sizeof *words; i++)
            if (is_in_capture(process, words[i]))
                return true;
        if (got > 0)
            break;
    }
    return false;
}

/* Returns the number of seccomp filters of the thread. */
static int filters_of(const struct task *task) {
    char path[64], line[256];
    int filters = 0;
    snprintf(path, sizeof path, "/proc/%d/status", task->tid);
    FILE *const status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Seccomp_filters: %d", &filters) == 1)
            break;
    if (status)
        fclose(status);
    return filters;
}

static void report_once(const char *what, struct task *task, const struct made_call *made) {
    char text[TEXT];
    char key[sizeof counters->key];
    describe(&task->stack, text);
    snprintf(key, sizeof key, "%s %d %d %x %x %x %x", what, task->role, made->number,
             made->arguments[0], made->arguments[1], made->arguments[2], made->arguments[3]);
    if (count(key) > 1)
        return;
    fprintf(inject.report, "%s %s %d %x,%x,%x,%x %s\n", what, roles[task->role], made->number,
            made->arguments[0], made->arguments[1], made->arguments[2], made->arguments[3], text);
    fflush(inject.report);
}

static bool is_on_stack(const struct task *task, const char *function) {
    for (int i = 0; i < task->stack.count; i++)
        if (begins(task->stack.frames[i]->function, function))
            return true;
    return false;
}

static void check_call(struct task *task, const struct __ptrace_syscall_info *info) {
    const struct made_call made = made_call(info->entry.nr, info->entry.args);
    const bool creates = is_clone(made.number) || made.number == SYS_rt_sigprocmask;
    const enum listed listed = listed_by_name(made.number);
    /* the helper returns from handlers of libc's alone, as each thread does */
    const bool as_thread = task->role == APP || made.number == SYS_rt_sigreturn;
    bool asked = listed_is_asked(&made, as_thread ? BY_THREAD : BY_HELPER);
    if (listed == LISTED && asked && !(creates && task->role == APP))
        return;
    if (task->role == APP && !may_be_ours(task, info))
        return;
    if (!maker(task->role, walk(task, made.number)))
        return;
    if (is_on_stack(task, "__nptl_setxid_sighandler")) /* the program's own setuid */
        return;
    if (is_on_stack(task, "helper_start") || is_on_stack(task, "quiesce_suspend"))
        asked = asked || listed_is_asked(&made, BY_HELPER); /* a helper takes another's place */
    if (is_on_stack(task, "log_write"))
        asked = asked || listed_is_asked(&made, BY_LOGGING_THREAD);
    const int filters = filters_of(task);
    const bool own_filter = filters > task->process->filters;
    if (listed == NOT_LISTED || (listed == LISTED_UNFILTERED && filters && !(own_filter && asked)))
        report_once("name", task, &made);
    else if (!asked && own_filter)
        report_once("arguments", task, &made);
}

static void on_entry(struct task *task, const struct __ptrace_syscall_info *info) {
    const long call = (long)info->entry.nr;
    task->maps = changes_mappings(call);
    if (inject.mode == CHECK) {
        check_call(task, info);
        if (is_clone(call))
            task->creates = task->role == HELPER ||
                            (may_be_ours(task, info) && maker(task->role, walk(task, call)));
        return;
    }
    if (inject.mode == ALL) {
        if (call >= 0 && call < MAX_CALLS)
            inject.calls[call]++;
        return;
    }
    if (inject.mode == LIST)
        list_call(task, call);
    else if (call == SYS_rt_sigprocmask && task->role == APP)
        walk(task, call); /* a clone may follow */
    if (is_clone(call))
        task->creates = task->role == HELPER || maker(task->role, walk(task, call));
    if (inject.mode == LIST || !is_wanted(task, call))
        return;
    task->creates = false;
    if (call == SYS_brk) { /* brk returns no error, but the old end */
        task->new_end = set_register(task, offsetof(struct user_regs_struct, rdi), 0);
        return;
    }
    task->error = inject.wanted.error;
    set_register(task, offsetof(struct user_regs_struct, orig_rax), -1);
}

static void on_exit_of_call(struct task *task) {
    if (task->error)
        set_register(task, offsetof(struct user_regs_struct, rax), -task->error);
    if (task->new_end)
        set_register(task, offsetof(struct user_regs_struct, rdi), task->new_end);
    task->new_end = 0;
    if (task->maps)
        task->process->stale = task->process->maps_stale = true;
    task->error = 0;
    task->maps = false;
    task->creates = false;
}

static void on_call(struct task *task) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        on_entry(task, &info);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        on_exit_of_call(task);
}

/* --- threads and processes --- */

static void go_on(pid_t tid, int signal) {
    ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)signal);
}

static void adopt(pid_t tid, struct process *process, enum role role) {
    struct task *const task = task_of(tid);
    task->process = process;
    task->role = role;
    if (task->waits)
        go_on(tid, 0);
    task->waits = false;
}

static void on_exec(struct task *task) {
    dwfl_end(task->process->names);
    task->process->names = NULL;
    task->process->stale = task->process->maps_stale = true;
    task->process->filters = filters_of(task);
    memset(inject.calls, 0, sizeof inject.calls);
}

static struct process *child_of(const struct process *parent, pid_t pid) {
    struct process *const child = new_process(pid);
    child->filters = parent->filters;
    return child;
}

static void on_event(struct task *task, int event) {
    unsigned long created;
    ptrace(PTRACE_GETEVENTMSG, task->tid, NULL, &created);
    if (event == PTRACE_EVENT_EXEC)
        on_exec(task);
    else if (event == PTRACE_EVENT_CLONE)
        adopt((pid_t)created, task->process, task->creates ? HELPER : APP);
    else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
        adopt((pid_t)created, child_of(task->process, (pid_t)created), APP);
}

static void on_stop(pid_t tid, int status) {
    struct task *const task = task_of(tid);
    const int signal = WSTOPSIG(status);
    if (!task->process) { /* its parent's event has still to come */
        task->waits = true;
        return;
    }
    if (status >> 16)
        on_event(task, status >> 16);
    else if (signal == (SIGTRAP | 0x80))
        on_call(task);
    if (status >> 16 == PTRACE_EVENT_STOP && signal != SIGTRAP) { /* the process is stopped */
        ptrace(PTRACE_LISTEN, tid, NULL, NULL);
        return;
    }
    const bool is_own =
        status >> 16 || signal == (SIGTRAP | 0x80) || (signal == SIGSTOP && inject.mode != CHECK);
    go_on(tid, is_own ? 0 : signal);
}

static int run_to_the_end(void) {
    for (;;) {
        int status;
        const pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == ECHILD)
            return 125;
        if (WIFSTOPPED(status)) {
            on_stop(tid, status);
            continue;
        }
        struct task *const task = task_of(tid);
        if (task->process && task->process->pid == tid) {
            dwfl_end(task->process->names);
            task->process->names = NULL;
        }
        *task = (struct task){.tid = 0};
        if (tid == inject.program && inject.mode != CHECK)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

enum {
    TRACED_EVENTS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                    PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL,
    MOST_DESCRIPTORS = 1024,
};

/* Closes the program's descriptors in the tracer, except `kept` and the report, so that a process
 * that waits for the ends of the descriptors waits for the program alone. Also leaves the program's
 * session. */
static void leave_descriptors(int kept) {
    const int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < MOST_DESCRIPTORS; fd++)
        if (fd <= STDERR_FILENO)
            dup2(nothing, fd);
        else if (fd != kept && fd != fileno(inject.report))
            close(fd);
    setsid();
}

/* Becomes the program in this process, and returns in the tracer. The tracer is a grandchild that
 * the program does not know, so the program has the id and the parent that it would have without a
 * tracer. */
static void start_above(char **command) {
    int ends[2];
    int status;
    char attached = 0;
    inject.program = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("pipe");
    const pid_t child = fork();
    if (child > 0) {
        waitpid(child, NULL, 0);
        close(ends[1]);
        if (read(ends[0], &attached, 1) == 1)
            execvp(command[0], command);
        _exit(127);
    }
    if (fork() > 0)
        _exit(0);
    leave_descriptors(ends[1]);
    if (ptrace(PTRACE_SEIZE, inject.program, NULL, (void *)TRACED_EVENTS) != 0)
        _exit(125);
    ptrace(PTRACE_INTERRUPT, inject.program, NULL, NULL);
    waitpid(inject.program, &status, __WALL);
    adopt(inject.program, new_process(inject.program), APP);
    go_on(inject.program, 0);
    (void)!write(ends[1], &attached, 1);
    close(ends[1]);
}

static void start(char **command) {
    int status;
    inject.program = fork();
    if (inject.program == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execvp(command[0], command);
        _exit(127);
    }
    waitpid(inject.program, &status, 0);
    ptrace(PTRACE_SETOPTIONS, inject.program, NULL, (void *)TRACED_EVENTS);
    adopt(inject.program, new_process(inject.program), APP);
    go_on(inject.program, 0);
}

int main(int argc, char **argv) {
    int command = 3;
    if (argc < 4)
        return 125;
    while (inject.mode < FAIL && strcmp(argv[1], modes[inject.mode]) != 0)
        inject.mode++;
    inject.report = fopen(argv[2], inject.mode == CHECK ? "ae" : "we");
    if (!inject.report)
        die(argv[2]);
    if (inject.mode == FAIL && argc > 9) {
        inject.wanted = (struct wanted){atoi(argv[3]), argv[4][0] == 'h' ? HELPER : APP,
                                        atol(argv[5]), argv[6],
                                        atol(argv[7]), atoi(argv[8])};
        command = 9;
    } else if (inject.mode == DENY && argc > 5) {
        inject.wanted = (struct wanted){.call = atol(argv[3]), .error = atoi(argv[4])};
        command = 5;
    }
    if (inject.mode == CHECK)
        start_above(argv + command);
    else
        start(argv + command);
    const int result = run_to_the_end();
    for (int i = 0; inject.mode == ALL && i < MAX_CALLS; i++)
        if (inject.calls[i])
            fprintf(inject.report, "%d %ld\n", i, inject.calls[i]);
    fclose(inject.report);
    return result;
}
