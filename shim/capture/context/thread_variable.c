#include "thread_variable.h"

#include "arch_machine.h"
#include "safe_read.h"

#include <string.h>

/* Bounds the tries. A read fails only if two changes fall into it, so only if the reader was
 * preempted; four failures in a row are very unlikely. */
enum { READ_TRIES = 4 };

bool thread_variables_get(const struct thread_variables *variables, uint32_t number,
                          struct thread_variable *variable) {
    uint64_t words[THREAD_VARIABLE_WORDS] = {0};
    for (int try = 0; try < READ_TRIES; try++) {
        /* pairs with the release at the end of thread_variables_set() */
        const uint32_t version = atomic_load_explicit(&variables->version, memory_order_acquire);
        const struct thread_variable_table *const table = &variables->tables[version % 2];
        const bool is_there = number < atomic_load_explicit(&table->count, memory_order_relaxed);
        for (int i = 0; is_there && i < THREAD_VARIABLE_WORDS; i++)
            words[i] = atomic_load_explicit(&table->words[number][i], memory_order_relaxed);
        /* pairs with the release fence in thread_variables_set() */
        atomic_thread_fence(memory_order_acquire);
        /* two versions later the writer reuses this table */
        if (atomic_load_explicit(&variables->writing, memory_order_relaxed) - version >= 2)
            continue;
        if (is_there)
            memcpy(variable, words, sizeof words);
        return is_there;
    }
    return false;
}

uintptr_t thread_variable_address(const struct thread_variable *variable,
                                  struct memory_range *block) {
    const uintptr_t base = variable->module
                               ? thread_vector_block(variable->module, variable->generation)
                               : thread_pointer() + (uintptr_t)variable->block;
    if (!base)
        return 0;
    *block = (struct memory_range){base, base + variable->bytes};
    return base + (uintptr_t)(variable->offset - variable->block);
}

/* Does the same as thread_vector_block() for the thread with thread pointer `pointer`, whose memory
 * may be unmapped. */
static uintptr_t vector_block_of(uintptr_t pointer, uint64_t module, uint64_t generation) {
    uintptr_t head[THREAD_VECTOR_HEAD];
    uintptr_t vector;
    uintptr_t block;
    if (!safe_read(thread_vector_place(pointer), &vector, sizeof vector) || !vector ||
        !safe_read(vector + sizeof vector - sizeof head, head, sizeof head) ||
        !thread_vector_has(head, module, generation) ||
        !safe_read(thread_vector_entry(vector, module), &block, sizeof block))
        return 0;
    return block == UINTPTR_MAX ? 0 : block;
}

uintptr_t thread_variable_address_of(const struct thread_variable *variable, uintptr_t pointer) {
    if (!variable->module)
        return pointer + (uintptr_t)variable->offset;
    const uintptr_t block = vector_block_of(pointer, variable->module, variable->generation);
    return block ? block + (uintptr_t)variable->offset : 0;
}

/* Returns true if the table has exactly these variables. Only the writer calls this function, so
 * the table does not change meanwhile. */
static bool thread_variables_equal(const struct thread_variable_table *table,
                                   const struct thread_variable *list, uint32_t count) {
    if (atomic_load_explicit(&table->count, memory_order_relaxed) != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t words[THREAD_VARIABLE_WORDS];
        memcpy(words, &list[i], sizeof words);
        for (int word = 0; word < THREAD_VARIABLE_WORDS; word++)
            if (atomic_load_explicit(&table->words[i][word], memory_order_relaxed) != words[word])
                return false;
    }
    return true;
}

void thread_variables_set(struct thread_variables *variables, const struct thread_variable *list,
                          uint32_t count) {
    const uint32_t version = atomic_load_explicit(&variables->version, memory_order_relaxed);
    struct thread_variable_table *const table = &variables->tables[(version + 1) % 2];
    if (thread_variables_equal(&variables->tables[version % 2], list, count))
        return;
    atomic_store_explicit(&variables->writing, version + 1, memory_order_relaxed);
    /* pairs with the acquire fence in thread_variables_get() */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&table->count, count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t words[THREAD_VARIABLE_WORDS];
        memcpy(words, &list[i], sizeof words);
        for (int word = 0; word < THREAD_VARIABLE_WORDS; word++)
            atomic_store_explicit(&table->words[i][word], words[word], memory_order_relaxed);
    }
    /* pairs with the acquire loads in thread_variables_get() and thread_variables_count() */
    atomic_store_explicit(&variables->version, version + 1, memory_order_release);
}
