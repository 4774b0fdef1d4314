/* Finds where a system call of a traced thread comes from, and whether the profiler made it. */
#ifndef TRACED_CALLS_H
#define TRACED_CALLS_H

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_PLACES = 1 << 15,
    TEXT = 768,
    FRAMES = 48,
    REPORTED_FRAMES = 9,
};

enum role { APP, HELPER };

struct process {
    pid_t pid;
    Dwfl *names;
    bool stale; /* its mappings have changed since libdw read them */
    bool maps_stale;
    int filters;         /* that were there at its exec */
    uint64_t start, end; /* of libotelprof.so, if it is mapped */
};

/* Describes the code at an offset of an object. Each place is looked up by libdw only once, because
 * libdw scans every symbol. */
struct place {
    char object[64];
    uint64_t offset;
    char function[64];
    bool exported;
};

/* Lists the frames of a call, innermost first. */
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
    bool creates;       /* is in a clone of ours: the new thread is the helper */
    bool maps;          /* is in a call that changes mappings */
    int error;          /* what the call that it is in is to return */
    long new_end;       /* that a brk was called with, and did not get */
    struct stack stack; /* of the call last walked */
};

static struct place places[MAX_PLACES];

static void die(const char *what) {
    perror(what);
    exit(125);
}

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

/* Returns the stack of the thread's call. libdw finds no caller of glibc's clone: in a
 * pthread_create, returns the stack of the call before, which blocks all signals and comes from the
 * same pthread_create. */
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

/* Returns true if the function only forwards the program's own call: it is exported, or its name
 * begins with one of these. */
static bool forwards(const struct place *frame) {
    static const char *const names[] = {
        "free_slow",      "realloc_slow", "boot_",        "malloc",       "calloc",
        "realloc",        "memalign",     "posix_mema",   "aligned_all",  "set_handler",
        "set_action",     "take_signal",  "exit_at_once", "watched_sys",  "main_and_end",
        "hooks_clone_by", "hooks_names",  "blocking_",    "wait_pthread", "wait_sem",
        "wait_mtx",       "wait_cnd",     "wait_by_numb", "main_has_ret", "run_first",
        "set_other"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(frame->function, names[i]))
            return true;
    return frame->exported;
}

static bool is_capture(const struct place *frame) {
    return strcmp(frame->object, "libotelprof.so") == 0;
}

/* Returns the frame that made the call; NULL if the call is not ours. Every call of the helper is
 * ours. */
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

#endif
