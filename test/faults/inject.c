/* Numbers the system calls that the profiler makes in a program, and makes one of them fail.
 *
 * usage: inject list REPORT PROGRAM [ARGUMENTS...]
 *        inject all REPORT PROGRAM [ARGUMENTS...]
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
 * `all` counts the calls of the whole program, whoever makes them, by number: CALL COUNT. `fail`
 * makes that one call fail with ERRNO, unmade, and writes "met STACK" if it came. `deny` makes
 * every call of ours with that number fail, as a sandbox would; writes "met" likewise. The
 * program's output passes through; the status is the program's, 128 + signal if one killed it.
 */
/* flags: -ldw -lelf */
#define _GNU_SOURCE
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_TASKS = 256,
    MAX_PROCESSES = 64,
    MAX_COUNTERS = 4096,
    MAX_PLACES = 1 << 15,
    MAX_CALLS = 512,
    TEXT = 768,
    SITE = 96,
    FRAMES = 48,
    REPORTED_FRAMES = 9,
};

enum mode { LIST, ALL, DENY, FAIL };
static const char *const modes[] = {"list", "all", "deny", "fail"};
enum role { APP, HELPER };
static const char *const roles[] = {"app", "helper"};

struct process {
    pid_t pid;
    Dwfl *names;
    bool stale; /* its mappings have changed since `names` was filled */
};

/* Holds what is at an offset of an object: libdw is queried once, as it searches every symbol. */
struct place {
    char object[64];
    uint64_t offset;
    char function[64];
    bool exported;
};

/* Holds where a call comes from, innermost first. */
struct stack {
    struct process *process;
    int count;
    const struct place *frames[FRAMES];
};

struct task {
    pid_t tid;
    struct process *process;
    enum role role;
    bool waits;         /* its first stop came before its parent's event */
    bool creates;       /* in a clone of ours: the new thread is the helper */
    bool maps;          /* in a call that changes mappings */
    int error;          /* what its present call is to return */
    long new_end;       /* that a brk requested, and did not get */
    struct stack stack; /* stack of the call last walked */
};

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
static struct place places[MAX_PLACES];
static struct counter counters[MAX_COUNTERS];
static int counter_count;

static void die(const char *what) {
    perror(what);
    exit(125);
}

/* --- tasks and processes --- */

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
    *process = (struct process){.pid = pid, .stale = true};
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

/* --- where a call comes from --- */

static Dwfl *names_of(struct process *process) {
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo};
    if (process->names && !process->stale)
        return process->names;
    const bool attach = !process->names;
    if (attach)
        process->names = dwfl_begin(&callbacks);
    else
        dwfl_report_begin(process->names);
    dwfl_linux_proc_report(process->names, process->pid);
    dwfl_report_end(process->names, NULL, NULL);
    if (attach)
        dwfl_linux_proc_attach(process->names, process->pid, true);
    process->stale = false;
    return process->names;
}

static struct place *slot_of(const char *object, uint64_t offset) {
    uint64_t hash = offset * 0x9e3779b97f4a7c15ull;
    for (const char *c = object; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    for (size_t i = 0; i < MAX_PLACES; i++) {
        struct place *const place = &places[(hash + i) % MAX_PLACES];
        if (!place->object[0] || (place->offset == offset && strcmp(place->object, object) == 0))
            return place;
    }
    errno = ENOSPC;
    die("places");
    return NULL;
}

static const struct place *place_of(Dwfl_Module *module, Dwarf_Addr at) {
    GElf_Off from_symbol;
    GElf_Sym symbol;
    Dwarf_Addr start;
    const char *const path = dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
    const char *const slash = strrchr(path, '/');
    char object[sizeof places->object];
    snprintf(object, sizeof object, "%s", slash ? slash + 1 : path);
    struct place *const place = slot_of(object, at - start);
    if (place->object[0])
        return place;
    const char *const function =
        dwfl_module_addrinfo(module, at, &from_symbol, &symbol, NULL, NULL, NULL);
    snprintf(place->object, sizeof place->object, "%s", object);
    snprintf(place->function, sizeof place->function, "%s", function ? function : "?");
    place->offset = at - start;
    place->exported = function && GELF_ST_BIND(symbol.st_info) != STB_LOCAL;
    return place;
}

static int add_frame(Dwfl_Frame *frame, void *arg) {
    static const struct place nowhere = {.object = "?", .function = "?"};
    struct stack *const stack = arg;
    Dwarf_Addr pc;
    bool exact;
    if (!dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    const Dwarf_Addr at = exact ? pc : pc - 1;
    Dwfl_Module *const module = dwfl_addrmodule(stack->process->names, at);
    stack->frames[stack->count++] = module ? place_of(module, at) : &nowhere;
    return stack->count == FRAMES ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static bool is_clone(long call) {
    return call == SYS_clone || call == SYS_clone3;
}

static bool is_in_pthread_create(const struct stack *stack) {
    for (int i = 0; i < stack->count; i++)
        if (strncmp(stack->frames[i]->function, "pthread_create", strlen("pthread_create")) == 0)
            return true;
    return false;
}

/* Walks a task's stack. glibc's clone has no caller for unwinders; but the call before it, which
 * blocks all signals, belongs to the same pthread_create. */
static const struct stack *walk(struct task *task, long call) {
    struct stack *const stack = &task->stack;
    if (is_clone(call) && is_in_pthread_create(stack))
        return stack;
    stack->process = task->process;
    stack->count = 0;
    dwfl_getthread_frames(names_of(task->process), task->tid, add_frame, stack);
    return stack;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_library_below(const struct place *frame) {
    return begins(frame->object, "libc.so") || begins(frame->object, "ld-linux") ||
           begins(frame->object, "[vdso");
}

/* Returns whether a function only forwards the program's own call, though it is not exported. */
static bool forwards(const struct place *frame) {
    static const char *const names[] = {
        "free_slow",      "realloc_slow", "boot_",        "malloc",      "calloc",
        "realloc",        "memalign",     "posix_mema",   "aligned_all", "set_handler",
        "set_action",     "take_signal",  "exit_at_once", "watched_sys", "main_and_end",
        "hooks_clone_by", "hooks_names",  "run_first",    "set_other"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(frame->function, names[i]))
            return true;
    return frame->exported;
}

static bool is_capture(const struct place *frame) {
    return strcmp(frame->object, "libotelprof.so") == 0;
}

/* Returns the frame that made the call; NULL if it is not ours. */
static const struct place *maker(enum role role, const struct stack *stack) {
    int i = 0;
    while (i < stack->count && (is_library_below(stack->frames[i]) ||
                                (is_capture(stack->frames[i]) && forwards(stack->frames[i]))))
        i++;
    if (role == HELPER)
        return stack->frames[i < stack->count ? i : 0];
    return i < stack->count && is_capture(stack->frames[i]) ? stack->frames[i] : NULL;
}

static void describe(const struct stack *stack, char text[static TEXT]) {
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < stack->count && i < REPORTED_FRAMES && at < TEXT; i++)
        at += (size_t)snprintf(text + at, TEXT - at, "%s%s", i ? "<" : "",
                               stack->frames[i]->function);
}

/* --- calls --- */

static bool changes_mappings(long call) {
    return call == SYS_mmap || call == SYS_munmap || call == SYS_execve;
}

/* Writes "OBJECT+OFFSET" of the frame that made the call; returns false if it is not ours. */
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

/* Returns whether a call is to be denied: glibc ends the process if a futex call of its own fails
 * as it never does. */
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

static void on_entry(struct task *task, long call) {
    task->maps = changes_mappings(call);
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
        task->process->stale = true;
    task->error = 0;
    task->maps = false;
    task->creates = false;
}

static void on_call(struct task *task) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        on_entry(task, (long)info.entry.nr);
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
    task->process->stale = true;
    memset(inject.calls, 0, sizeof inject.calls);
}

static void on_event(struct task *task, int event) {
    unsigned long created;
    ptrace(PTRACE_GETEVENTMSG, task->tid, NULL, &created);
    if (event == PTRACE_EVENT_EXEC)
        on_exec(task);
    else if (event == PTRACE_EVENT_CLONE)
        adopt((pid_t)created, task->process, task->creates ? HELPER : APP);
    else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
        adopt((pid_t)created, new_process((pid_t)created), APP);
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
    const bool is_own = status >> 16 || signal == (SIGTRAP | 0x80) || signal == SIGSTOP;
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
        *task_of(tid) = (struct task){.tid = 0};
        if (tid == inject.program)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
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
    ptrace(PTRACE_SETOPTIONS, inject.program, NULL,
           (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                    PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL));
    adopt(inject.program, new_process(inject.program), APP);
    go_on(inject.program, 0);
}

int main(int argc, char **argv) {
    int command = 3;
    if (argc < 4)
        return 125;
    while (inject.mode < FAIL && strcmp(argv[1], modes[inject.mode]) != 0)
        inject.mode++;
    inject.report = fopen(argv[2], "we");
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
    start(argv + command);
    const int result = run_to_the_end();
    for (int i = 0; inject.mode == ALL && i < MAX_CALLS; i++)
        if (inject.calls[i])
            fprintf(inject.report, "%d %ld\n", i, inject.calls[i]);
    fclose(inject.report);
    return result;
}
