#include "python_thread.h"

#include "arch_machine.h"

#include <pthread.h>

enum {
    INTERPRETERS = 4,       /* at most so many interpreters are searched for a thread's state */
    THREADS = 16,           /* in each, so many of the newest threads are searched */
    DESCRIPTOR_HIGH = 1536, /* the searched range of glibc's struct pthread ends behind the values
                               of the first 32 keys (nptl/descr.h) */
    SEQUENCE_USED = 1,      /* pthread_key_data.seq is odd while the key is used */
    /* largest plausible number of times that a key was created and deleted */
    MOST_SEQUENCE = 1 << 20,
    MOST_BLOCK_BYTES = 1 << 14 /* at most so many bytes of thread-local variables are searched */
};

static uintptr_t python_thread_id(void) {
    return (uintptr_t)pthread_self();
}

static bool python_state_is_own(const struct python *python, struct python_reader *reader,
                                uintptr_t state) {
    uintptr_t id;
    return python_read_word(reader, state + python->offsets.thread_id, &id) &&
           id == python_thread_id();
}

/* --- learning --- */

/* Returns the address of a word that may hold the pointer. Small values of `slot` are words of the
 * thread's descriptor, which has the values of keys, or of the static TLS beside it; greater values
 * are words of the interpreter's own TLS block, unless that is in static TLS. */
static uintptr_t python_slot_address(const struct python *python, intptr_t slot) {
    if (slot < DESCRIPTOR_HIGH || python->block)
        return python_thread_id() + (uintptr_t)slot;
    const uintptr_t block = thread_vector_block(python->block_module, 0);
    return block ? block + (uintptr_t)slot - DESCRIPTOR_HIGH : 0;
}

static bool slot_has(const struct python *python, struct python_reader *reader, intptr_t slot,
                     uintptr_t state) {
    uintptr_t value;
    return python_read_word(reader, python_slot_address(python, slot), &value) && value == state;
}

static void set_slot(struct python *python, int number, intptr_t slot) {
    atomic_store_explicit(&python->slots[number], slot, memory_order_relaxed);
}

/* Searches the values of pthread keys; glibc stores each value behind its sequence number. */
static bool learn_key(struct python *python, struct python_reader *reader, uintptr_t state) {
    uintptr_t sequence;
    for (intptr_t slot = THREAD_DESCRIPTOR_LOW; slot < DESCRIPTOR_HIGH; slot += sizeof sequence) {
        if (!slot_has(python, reader, slot, state) ||
            !python_read_word(reader, python_slot_address(python, slot) - sizeof sequence,
                              &sequence) ||
            !(sequence & SEQUENCE_USED) || sequence > MOST_SEQUENCE)
            continue;
        set_slot(python, 0, slot);
        set_slot(python, 1, 0);
        return true;
    }
    return false;
}

/* Searches the thread-local variables. Two of them may hold the pointer: one for the attached
 * state, one for the state that is bound to the thread. */
static bool learn_variables(struct python *python, struct python_reader *reader, uintptr_t state) {
    const intptr_t first = python->block ? python->block : DESCRIPTOR_HIGH;
    const intptr_t end = first + (intptr_t)python->block_bytes;
    int found = 0;
    if ((!python->block && !python->block_module) || python->block_bytes > MOST_BLOCK_BYTES)
        return false;
    for (intptr_t slot = first; slot < end && found < PYTHON_SLOTS; slot += sizeof(uintptr_t))
        if (slot_has(python, reader, slot, state))
            set_slot(python, found++, slot);
    return found != 0;
}

static uintptr_t search_threads(struct python *python, struct python_reader *reader,
                                uintptr_t interpreter) {
    uintptr_t state;
    if (!python_read_word(reader, interpreter + python->offsets.threads_head, &state))
        return 0;
    for (int i = 0; i < THREADS && state; i++) {
        if (python_state_is_own(python, reader, state) &&
            (learn_key(python, reader, state) || learn_variables(python, reader, state)))
            return state;
        if (!python_read_word(reader, state + python->offsets.thread_next, &state))
            return 0;
    }
    return 0;
}

static uintptr_t python_search_interpreters(struct python *python, struct python_reader *reader) {
    uintptr_t interpreter;
    if (!python_read_word(reader, python->runtime + python->offsets.interpreters_head,
                          &interpreter))
        return 0;
    for (int i = 0; i < INTERPRETERS && interpreter; i++) {
        const uintptr_t state = search_threads(python, reader, interpreter);
        if (state)
            return state;
        if (!python_read_word(reader, interpreter + python->offsets.interpreter_next, &interpreter))
            return 0;
    }
    return 0;
}

/* --- one thread --- */

static uintptr_t state_in(const struct python *python, struct python_reader *reader,
                          intptr_t slot) {
    uintptr_t state;
    if (!slot || !python_read_word(reader, python_slot_address(python, slot), &state) || !state)
        return 0;
    return python_state_is_own(python, reader, state) ? state : 0;
}

/* Returns the state that holds the lock, if this thread owns that state (3.11 with
 * subinterpreters). */
static uintptr_t holding_state(const struct python *python, struct python_reader *reader) {
    const struct python_offsets *const o = &python->offsets;
    uintptr_t interpreter;
    uintptr_t state;
    if (!o->lock_holder ||
        !python_read_word(reader, python->runtime + o->interpreters_head, &interpreter) ||
        !python_read_word(reader, interpreter + o->interpreter_next, &interpreter) ||
        !interpreter || !python_read_word(reader, python->runtime + o->lock_holder, &state))
        return 0;
    return state && python_state_is_own(python, reader, state) ? state : 0;
}

/* Limits the searches for a thread without a state once the place is known: a further search finds
 * another place only if the key was deleted and created again under another number, which is
 * rare. */
static bool is_time_to_search(struct python *python) {
    const uint32_t misses = atomic_fetch_add_explicit(&python->misses, 1, memory_order_relaxed) + 1;
    return !atomic_load_explicit(&python->slots[0], memory_order_relaxed) ||
           (misses & (misses - 1)) == 0;
}

uintptr_t python_thread_state(struct python *python, struct python_reader *reader) {
    uintptr_t state = holding_state(python, reader);
    for (int i = 0; i < PYTHON_SLOTS && !state; i++)
        state =
            state_in(python, reader, atomic_load_explicit(&python->slots[i], memory_order_relaxed));
    if (state || !is_time_to_search(python))
        return state;
    return python_search_interpreters(python, reader);
}
