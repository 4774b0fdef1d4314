#include "live_table.h"

#include "hash.h"
#include "own_memory.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 200, YIELDS = 50, TABLE_BYTES = LIVE_SHARDS * sizeof(struct live_shard) };
_Static_assert(TABLE_BYTES % 1024 == 0, "shards are mapped whole");

static size_t mapped_bytes(void) {
    return ((size_t)TABLE_BYTES + 4095) / 4096 * 4096;
}

bool live_table_start(struct live_table *table) {
    table->shards = own_memory_map(mapped_bytes());
    return table->shards != NULL;
}

void live_table_reset(struct live_table *table) {
    own_memory_reset(table->shards, mapped_bytes());
}

static uint64_t hash_of(uintptr_t address) {
    return hash_word(0, address);
}

static struct live_shard *shard_of(const struct live_table *table, uint64_t hash) {
    return &table->shards[(hash >> 40) % LIVE_SHARDS];
}

static uint32_t home(uintptr_t address) {
    return (uint32_t)hash_of(address) % LIVE_SHARD_SLOTS;
}

static uint32_t following(uint32_t slot) {
    return (slot + 1) % LIVE_SHARD_SLOTS;
}

/* --- the lock --- */

/* The holder runs a few tens of instructions and cannot be interrupted by one who waits here on the
 * same thread. It can lose its processor: then yield, and at last sleep, since yielding to a thread
 * of lower real-time priority would wait for ever. */
static void wait_a_little(unsigned round) {
    if (round < SPINS)
        __builtin_ia32_pause();
    else if (round < SPINS + YIELDS)
        sched_yield();
    else
        syscall(SYS_nanosleep, &(struct timespec){0, 50000}, NULL); /* no cancellation point */
}

static void begin_change(struct live_shard *shard) {
    const int saved = errno;
    for (unsigned round = 0; atomic_exchange_explicit(&shard->lock, 1, memory_order_acquire) != 0;
         round++)
        wait_a_little(round);
    errno = saved;
    atomic_fetch_add_explicit(&shard->sequence, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with the fence in read_valid() */
}

static void end_change(struct live_shard *shard) {
    atomic_fetch_add_explicit(&shard->sequence, 1, memory_order_release);
    atomic_store_explicit(&shard->lock, 0, memory_order_release);
}

static bool read_valid(const struct live_shard *shard, uint32_t sequence) {
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in begin_change() */
    return atomic_load_explicit(&shard->sequence, memory_order_relaxed) == sequence;
}

/* --- probing --- */

static uintptr_t address_at(const struct live_shard *shard, uint32_t slot) {
    return __atomic_load_n(&shard->slots[slot].address, __ATOMIC_RELAXED);
}

/* The slot of `address`, or the empty slot where it would go. A shard is never full. */
static uint32_t probe(const struct live_shard *shard, uintptr_t address) {
    uint32_t slot = home(address);
    for (uint32_t i = 0; i < LIVE_SHARD_SLOTS; i++) {
        const uintptr_t found = address_at(shard, slot);
        if (found == 0 || found == address)
            break;
        slot = following(slot);
    }
    return slot;
}

/* Moves later objects of the run back over the hole, so that every probe still finds its object. */
static void close_hole(struct live_shard *shard, uint32_t hole) {
    for (uint32_t slot = following(hole); shard->slots[slot].address; slot = following(slot)) {
        const uint32_t wanted = home(shard->slots[slot].address);
        const uint32_t distance = (slot - wanted) % LIVE_SHARD_SLOTS;
        if (distance < (slot - hole) % LIVE_SHARD_SLOTS)
            continue;
        shard->slots[hole] = shard->slots[slot];
        hole = slot;
    }
    shard->slots[hole] = (struct live_object){0};
}

bool live_table_insert(struct live_table *table, const struct live_object *object, bool *replaced) {
    struct live_shard *const shard = shard_of(table, hash_of(object->address));
    begin_change(shard);
    const uint32_t slot = probe(shard, object->address);
    *replaced = shard->slots[slot].address == object->address;
    const bool fits = *replaced || shard->count < LIVE_SHARD_MAX;
    if (fits) {
        shard->slots[slot] = *object;
        shard->count += !*replaced;
    }
    end_change(shard);
    return fits;
}

/* true: certainly not there; false: it may be. */
static bool surely_absent(const struct live_shard *shard, uintptr_t address) {
    const uint32_t sequence = atomic_load_explicit(&shard->sequence, memory_order_acquire);
    if (sequence & 1)
        return false;
    const bool absent = address_at(shard, probe(shard, address)) != address;
    return absent && read_valid(shard, sequence);
}

bool live_table_remove(struct live_table *table, uintptr_t address, struct live_object *object) {
    struct live_shard *const shard = shard_of(table, hash_of(address));
    if (surely_absent(shard, address))
        return false;
    begin_change(shard);
    const uint32_t slot = probe(shard, address);
    const bool found = shard->slots[slot].address == address;
    if (found) {
        *object = shard->slots[slot];
        shard->count--;
        close_hole(shard, slot);
    }
    end_change(shard);
    return found;
}

uint32_t live_table_copy(const struct live_table *table, uint32_t index,
                         struct live_object *objects) {
    const struct live_shard *const shard = &table->shards[index];
    for (;;) { /* ends: changes are rare and short */
        const uint32_t sequence = atomic_load_explicit(&shard->sequence, memory_order_acquire);
        uint32_t count = 0;
        for (uint32_t slot = 0; !(sequence & 1) && slot < LIVE_SHARD_SLOTS; slot++)
            if (address_at(shard, slot))
                objects[count++] = shard->slots[slot];
        if (!(sequence & 1) && read_valid(shard, sequence))
            return count;
        sched_yield();
    }
}
