/* Finds CPython in this process, and decides if its frames are read.
 *
 * An object that defines `_PyRuntime`, `Py_Version` and `PyCode_Type` is an interpreter: the
 * executable (Debian's), or a libpython. Only the first one found is read: at the start among the
 * loaded objects, later whenever the helper scans newly loaded ones. Its version determines the
 * offsets (python_offsets.h); an unknown version, or a free-threaded build, is not read. If the
 * object may be unloaded every walk holds it (modules_hold), and dlclose() ends with a check if it
 * is gone.
 */
#ifndef OTELPROF_PYTHON_H
#define OTELPROF_PYTHON_H

#include "log.h"
#include "python_functions.h"
#include "python_offsets.h"
#include "unwind/modules.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PYTHON_SLOTS = 2 };

struct python {
    bool wanted; /* set by the settings; false: no interpreter is read */
    struct modules *modules;
    const struct log *log;
    struct python_functions *functions; /* made with the first interpreter; then it stays, */
    struct python_page_sets *page_sets; /* as this does */
    _Atomic bool on;                    /* the following fields are set */
    _Atomic bool busy;                  /* a thread is changing it */
    _Atomic bool is_old;                /* there is one of 3.7 to 3.10 */
    bool may_go;                        /* the object may be unloaded */
    uintptr_t object;                   /* its program headers: which one it is */
    uintptr_t runtime;                  /* _PyRuntime */
    uintptr_t code_type;                /* PyCode_Type */
    intptr_t block; /* its thread-local variables, from the thread pointer; 0: not in static TLS */
    size_t block_bytes;
    uint64_t block_module; /* then: their number in each thread's vector; 0: not known */
    struct python_offsets offsets;
    /* python_thread.h: where a thread keeps the pointer to its state; 0: not learned yet */
    _Atomic intptr_t slots[PYTHON_SLOTS];
    _Atomic uint32_t misses; /* walks that found no state there; wraps */
    uint64_t adds;           /* the helper's: the loader's counter at the last scan */
};

/* Searches the loaded objects for an interpreter. `log` must stay valid. Context: calm, at
 * start; takes the loader's lock. */
void python_start(struct python *python, bool wanted, struct modules *modules,
                  const struct log *log);

/* Returns true if there is a Python whose threads may crash between its end and the process's end
 * (CPython's take_gil() up to 3.10 uses the interpreter's freed memory). Context: any. */
static inline bool python_ends_in_haste(const struct python *python) {
    return atomic_load_explicit(&python->is_old, memory_order_relaxed);
}

/* Scans again, if objects were loaded since the last scan and no interpreter is known. Context: the
 * helper, under the quiesce lock; takes the loader's lock, unless another thread holds it. */
void python_poll(struct python *python);

/* Stops reading an interpreter that dlclose() has unloaded. Call between dlclose() and
 * modules_end_unload(). Context: calm; takes the loader's lock. */
void python_forget_unloaded(struct python *python);

/* Context: fork handler. */
void python_after_fork(struct python *python);

/* Holds the interpreter's object while the caller reads `struct python` or the interpreter's
 * memory. Returns false, and holds nothing, if there is no interpreter, or an object is just being
 * unloaded. Cost: one load if there is no interpreter. Context: any. Async-signal-safe: yes. */
bool python_hold(struct python *python);
void python_release(struct python *python);

#endif
