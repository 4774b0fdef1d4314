/* Finds the offsets, in bytes, of the CPython fields that a walk of frames reads, for one version.
 *
 * CPython 3.11 and 3.12 do not publish them: their offsets are those of Debian's python3.11-dev
 * 3.11.2 and of 3.11.7 and 3.12.1 as built from source (Include/internal/pycore_frame.h,
 * pycore_runtime.h and cpython/pystate.h, code.h, unicodeobject.h), and patch releases keep them.
 * From 3.13 on the interpreter has a table of its own at the beginning of `_PyRuntime`
 * (`_Py_DebugOffsets`): only that table is used, if its values are plausible.
 */
#ifndef OTELPROF_PYTHON_OFFSETS_H
#define OTELPROF_PYTHON_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python_offsets {
    uint32_t version; /* PY_VERSION_HEX: 0x030b02f0 is 3.11.2 */

    /* fields of _PyRuntime and PyInterpreterState */
    uint32_t interpreters_head;
    uint32_t interpreter_next;
    uint32_t threads_head;
    uint32_t lock_holder; /* 3.11: the thread state that holds the interpreter's lock */

    /* fields of PyThreadState */
    uint32_t thread_next;
    uint32_t thread_id;        /* pthread_self() */
    uint32_t native_thread_id; /* gettid() of the thread */
    uint32_t current_frame;    /* 3.13 on */
    uint32_t frames_chunk; /* before 3.13: where the current chunk of the frame stack begins, and,
                              in the word behind it, where the newest frame ends */
    /* earlier versions: leads to a _PyCFrame in the C frame of the eval loop */
    uint32_t cframe;

    /* a field of _PyCFrame, before 3.13 */
    uint32_t cframe_frame;
    uint32_t cframe_previous;

    /* fields of _PyInterpreterFrame */
    uint32_t code; /* the code object; 3.14 on: with a tag in the two lowest bits */
    uint32_t previous;
    uint32_t instruction; /* the pointer to the current instruction */
    uint32_t owner;       /* one byte: the kind of the frame's owner */
    uint32_t is_entry;    /* 3.11, one byte: the eval loop was entered with this frame */
    /* 3.12 on: a frame with this owner, or a higher one, belongs to no function: it is the eval
     * loop's own, on the C stack */
    uint8_t first_entry_owner;

    /* fields of PyObject and PyVarObject */
    uint32_t type;
    uint32_t var_size; /* number of bytes of an object of bytes, or of units of a code object */

    /* fields of PyCodeObject */
    uint32_t code_filename;
    uint32_t code_name;
    uint32_t code_qualname;
    uint32_t code_linetable;
    uint32_t code_first_line; /* an int */
    uint32_t code_units;      /* co_code_adaptive: the instructions begin here */

    /* fields of PyBytesObject (its size: var_size) and PyUnicodeObject */
    uint32_t bytes_data;
    uint32_t string_length;
    uint32_t string_state; /* 32 bits: interned, kind, compact, ascii */
    uint32_t string_ascii; /* the characters of a compact ASCII string begin here */
    uint32_t string_wide;  /* the characters of any other compact string begin here */
};

/* States how many bytes are read at once of a frame, and of the head of an object with a size. */
enum { PYTHON_FRAME_BYTES = 80, PYTHON_HEAD_BYTES = 24 };
enum { PYTHON_TABLE_BYTES = 768 }; /* bytes read of _PyRuntime: no version's table is longer */

/* Finds the offsets of the interpreter of that PY_VERSION_HEX, whose `_PyRuntime` begins with
 * `table` (PYTHON_TABLE_BYTES, aligned). Returns false if the version is not known, or if the table
 * is not plausible or of a free-threaded build. Context: any. Async-signal-safe: yes. */
bool python_offsets_find(uint32_t version, const void *table, struct python_offsets *offsets);

#endif
