#include "live_table.h"

#include "hash.h"
#include "own_memory.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 200, YIELDS = 50, PAGE = 4096 };

/* --- memory --- */

static size_t shards_bytes(void) {
    return (sizeof(struct live_shard) * LIVE_SHARDS + PAGE - 1) / PAGE * PAGE;
}

/* Slots of all levels below `level`, of all shards. */
static uint64_t slots_below(uint32_t level) {
    return ((UINT64_C(1) << level) - 1) * LIVE_FIRST_SLOTS * LIVE_SHARDS;
}

static size_t slots_bytes(const struct live_table *table) {
    return slots_below(table->max_level + 1) * sizeof(struct live_object);
}
_Static_assert(LIVE_FIRST_SLOTS *LIVE_SHARDS * sizeof(struct live_object) % PAGE == 0,
               "levels are whole pages");

bool live_table_start(struct live_table *table, uint64_t max_objects) {
    const uint64_t slots = 2 * max_objects / LIVE_SHARDS;
    atomic_store(&table->count, 0);
    table->max_level = 1;
    while (((uint64_t)LIVE_FIRST_SLOTS << table->max_level) < slots)
        table->max_level++;
    table->slots = own_memory_map(slots_bytes(table));
    if (!table->slots)
        return false;
    table->shards = own_memory_map(shards_bytes());
    if (!table->shards)
        own_memory_unmap(table->slots, slots_bytes(table));
    return table->shards != NULL;
}

void live_table_reset(struct live_table *table) {
    atomic_store(&table->count, 0);
    if (!table->shards)
        return;
    own_memory_reset(table->shards, shards_bytes());
    own_memory_reset(table->slots, slots_bytes(table));
}

uint32_t live_table_shard_slots(const struct live_table *table) {
    return (uint32_t)LIVE_FIRST_SLOTS << table->max_level;
}

/* --- places --- */

static uint64_t hash_of(uintptr_t address) {
    return hash_word(0, address);
}

static struct live_shard *shard_of(const struct live_table *table, uint64_t hash) {
    return &table->shards[(hash >> 40) % LIVE_SHARDS];
}

/* One shard's slots at one level. */
struct view {
    struct live_object *slots;
    uint32_t mask;
};

static struct view view_at(const struct live_table *table, const struct live_shard *shard,
                           uint32_t level) {
    const uint32_t size = (uint32_t)LIVE_FIRST_SLOTS << level;
    const uint64_t first = slots_below(level) + (uint64_t)(shard - table->shards) * size;
    return (struct view){&table->slots[first], size - 1};
}

static struct view view_of(const struct live_table *table, const struct live_shard *shard) {
    return view_at(table, shard, atomic_load_explicit(&shard->level, memory_order_relaxed));
}

static uint32_t home(struct view view, uintptr_t address) {
    return (uint32_t)hash_of(address) & view.mask;
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

static uintptr_t address_at(struct view view, uint32_t slot) {
    return __atomic_load_n(&view.slots[slot].address, __ATOMIC_RELAXED);
}

/* The slot of `address`, or the empty slot where it would go. A shard is never full. */
static uint32_t probe(struct view view, uintptr_t address) {
    uint32_t slot = home(view, address);
    for (uint32_t i = 0; i < view.mask; i++) {
        const uintptr_t found = address_at(view, slot);
        if (found == 0 || found == address)
            break;
        slot = (slot + 1) & view.mask;
    }
    return slot;
}

/* Moves later objects of the run back over the hole, so that every probe still finds its object. */
static void close_hole(struct view view, uint32_t hole) {
    for (uint32_t slot = (hole + 1) & view.mask; view.slots[slot].address;
         slot = (slot + 1) & view.mask) {
        const uint32_t wanted = home(view, view.slots[slot].address);
        const uint32_t distance = (slot - wanted) & view.mask;
        if (distance < ((slot - hole) & view.mask))
            continue;
        view.slots[hole] = view.slots[slot];
        hole = slot;
    }
    view.slots[hole] = (struct live_object){0};
}

/* --- changing --- */

/* The old slots stay as they are: a reader may be in them, and learns by the sequence number that
 * they are old. */
static struct view grow(const struct live_table *table, struct live_shard *shard) {
    const uint32_t level = atomic_load_explicit(&shard->level, memory_order_relaxed);
    const struct view old = view_at(table, shard, level);
    const struct view view = view_at(table, shard, level + 1);
    for (uint32_t slot = 0; slot <= old.mask; slot++)
        if (old.slots[slot].address)
            view.slots[probe(view, old.slots[slot].address)] = old.slots[slot];
    atomic_store_explicit(&shard->level, level + 1, memory_order_relaxed);
    return view;
}

/* Seven eighths of a full-grown shard, three quarters of others. */
static struct view view_with_room(const struct live_table *table, struct live_shard *shard,
                                  bool *has_room) {
    const struct view view = view_of(table, shard);
    const uint32_t slots = view.mask + 1;
    *has_room = true;
    if (shard->count < slots / 4 * 3)
        return view;
    if (atomic_load_explicit(&shard->level, memory_order_relaxed) < table->max_level)
        return grow(table, shard);
    *has_room = shard->count < slots / 8 * 7;
    return view;
}

bool live_table_insert(struct live_table *table, const struct live_object *object, bool *replaced) {
    struct live_shard *const shard = shard_of(table, hash_of(object->address));
    bool has_room;
    begin_change(shard);
    const struct view view = view_with_room(table, shard, &has_room);
    const uint32_t slot = probe(view, object->address);
    *replaced = view.slots[slot].address == object->address;
    const bool fits = *replaced || has_room;
    if (fits) {
        view.slots[slot] = *object;
        shard->count += !*replaced;
    }
    end_change(shard);
    if (fits && !*replaced)
        atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
    return fits;
}

bool live_table_lacks(const struct live_table *table, uintptr_t address) {
    if (address == 0) /* the mark of an empty slot, and no object */
        return true;
    const struct live_shard *const shard = shard_of(table, hash_of(address));
    const uint32_t sequence = atomic_load_explicit(&shard->sequence, memory_order_acquire);
    if (sequence & 1)
        return false;
    const struct view view = view_of(table, shard);
    const bool absent = address_at(view, probe(view, address)) != address;
    return absent && read_valid(shard, sequence);
}

bool live_table_remove(struct live_table *table, uintptr_t address, struct live_object *object) {
    struct live_shard *const shard = shard_of(table, hash_of(address));
    begin_change(shard);
    const struct view view = view_of(table, shard);
    const uint32_t slot = probe(view, address);
    const bool found = address && view.slots[slot].address == address;
    if (found) {
        *object = view.slots[slot];
        shard->count--;
        close_hole(view, slot);
    }
    end_change(shard);
    if (found)
        atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
    return found;
}

static uint32_t sift_shard(const struct live_table *table, struct live_shard *shard,
                           bool (*keep)(void *arg, struct live_object *object), void *arg) {
    uint32_t taken = 0;
    begin_change(shard);
    const struct view view = view_of(table, shard);
    for (uint32_t slot = 0; slot <= view.mask;) {
        if (!view.slots[slot].address || keep(arg, &view.slots[slot])) {
            slot++;
            continue;
        }
        close_hole(view, slot); /* what moved here is asked about next */
        taken++;
    }
    shard->count -= taken;
    end_change(shard);
    return taken;
}

void live_table_sift(struct live_table *table, bool (*keep)(void *arg, struct live_object *object),
                     void *arg) {
    for (uint32_t i = 0; i < LIVE_SHARDS; i++) {
        const uint32_t taken = sift_shard(table, &table->shards[i], keep, arg);
        atomic_fetch_sub_explicit(&table->count, taken, memory_order_relaxed);
    }
}

uint32_t live_table_copy(const struct live_table *table, uint32_t index,
                         struct live_object *objects) {
    const struct live_shard *const shard = &table->shards[index];
    for (;;) { /* ends: changes are rare and short */
        const uint32_t sequence = atomic_load_explicit(&shard->sequence, memory_order_acquire);
        const struct view view = view_of(table, shard);
        uint32_t count = 0;
        for (uint32_t slot = 0; !(sequence & 1) && slot <= view.mask; slot++)
            if (address_at(view, slot))
                objects[count++] = view.slots[slot];
        if (!(sequence & 1) && read_valid(shard, sequence))
            return count;
        sched_yield();
    }
}
