/* Finds CPython in this process, and decides whether its frames are read.
 *
 * An object that defines `_PyRuntime`, `Py_Version` and `PyCode_Type` is an interpreter: the
 * executable (Debian's), or a libpython. Only the first interpreter found is read. It is searched
 * at the start among the loaded objects, and later by the helper among newly loaded ones. Its
 * version determines the offsets (python_offsets.h); an unknown version, or a free-threaded build,
 * is not read. If the object may be unloaded, every walk holds it (modules_hold), and dlclose()
 * checks at its end whether the object is gone.
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
    struct python_functions *functions; /* made with the first interpreter, and never freed */
    struct python_page_sets *page_sets; /* made with the first interpreter, and never freed */
    _Atomic bool on;                    /* the following fields are valid */
    _Atomic bool busy;                  /* a thread is changing this struct */
    _Atomic bool is_old;                /* there is an interpreter of 3.7 to 3.10 */
    bool may_go;                        /* the object may be unloaded */
    uintptr_t object;    /* address of the object's program headers, which identify it */
    uintptr_t runtime;   /* _PyRuntime */
    uintptr_t code_type; /* PyCode_Type */
    /* offset of its thread-local variables from the thread pointer; 0: not in static TLS */
    intptr_t block;
    size_t block_bytes;
    /* if `block` is 0: its module number in each thread's vector; 0: not known */
    uint64_t block_module;
    struct python_offsets offsets;
    /* places where a thread may keep the pointer to its state (python_thread.h); 0: not learned
     * yet */
    _Atomic intptr_t slots[PYTHON_SLOTS];
    _Atomic uint32_t misses; /* number of walks that found no state there; wraps */
    /* the loader's counter at the helper's last scan; 0: scan again; guarded by `busy` */
    uint64_t adds;
};

/* Searches the loaded objects for an interpreter. `log` must stay valid. Context: calm, at
 * start; takes the loader's lock. */
void python_start(struct python *python, bool wanted, struct modules *modules,
                  const struct log *log);

/* Returns true if there is an interpreter whose threads may crash after it has ended and before the
 * process ends (CPython's take_gil() up to 3.10 uses the interpreter's freed memory). Context:
 * any. */
static inline bool python_ends_in_haste(const struct python *python) {
    return atomic_load_explicit(&python->is_old, memory_order_relaxed);
}

/* Scans again, if objects were loaded since the last scan and no interpreter is known. Context: the
 * helper, under the quiesce lock; takes the loader's lock, unless another thread holds it. */
void python_poll(struct python *python);

/* Stops reading an interpreter that dlclose() has unloaded. Call between dlclose() and
 * modules_end_unload(). Context: calm; takes the loader's lock. */
void python_forget_unloaded(struct python *python);

/* Resets the state that a thread of the parent may have been changing. Context: fork handler. */
void python_after_fork(struct python *python);

/* Holds the interpreter's object, so that the caller can read `struct python` and the interpreter's
 * memory. Returns false, without a hold, if there is no interpreter or an object is just being
 * unloaded. Cost: one load if there is no interpreter. Context: any. Async-signal-safe: yes. */
bool python_hold(struct python *python);
void python_release(struct python *python);

#endif
