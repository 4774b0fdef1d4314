#include "child_samples.h"

#include "clock.h"
#include "hash.h"
#include "kernel/first_page.h"
#include "kernel/profiler_memory.h"

#include <sched.h>
#include <string.h>

enum {
    ENTRIES = 512,        /* entries of the table of records; a power of two */
    MOST_RECORDS = 384,   /* records in a slot */
    RELEASE_TRIES = 1000, /* bounds the wait for a thread that is writing */
    NO_SLOT = CHILD_SLOTS,
    KEPT_FLAGS = SAMPLE_FLAG_TRUNCATED | SAMPLE_FLAG_DEPTH_CUT | SAMPLE_FLAG_OWN_TIME |
                 SAMPLE_FLAG_UNSAMPLED | SAMPLE_FLAG_FRAME_POINTERS,
};

/* Bounds a value that is read: 2^53, up to which a double expresses each whole number. */
static const double LARGEST_VALUE = 9007199254740992.0;

/* Holds one stack in a slot. */
struct child_record {
    uint32_t bytes; /* of the whole record: a multiple of 8 */
    uint32_t tid;
    uint8_t kind;
    uint8_t flags;
    uint16_t frame_count;
    uint32_t unused;
    double values[SAMPLE_VALUES];
    uint64_t frames[];
};

/* Describes a function of Python, which frames refer to by its offset. */
struct child_function {
    uint32_t bytes; /* of the whole record: a multiple of 8 */
    int32_t line;
    uint8_t kind; /* CHILD_FUNCTION */
    uint8_t name_character;
    uint8_t file_character;
    uint8_t unused;
    int32_t start_line;
    uint32_t name_size;
    uint32_t file_size;
    uint8_t texts[]; /* the name, then the file */
};
enum { CHILD_FUNCTION = 103 /* differs from every kind of sample */ };

/* Holds the child's own data of a record that it has written. */
struct written_record {
    uint64_t hash;   /* 0: the entry is free */
    uint32_t offset; /* of the record in the slot */
    double values[SAMPLE_VALUES];
};

_Atomic bool child_samples_wanted;

IN_FIRST_PAGE static struct child_samples {
    struct child_slots *own;      /* shared with this process's children; NULL: not mapped */
    struct child_slots *ancestor; /* shared with the ancestor whose helper reads it; NULL: none */
    struct child_slots *stale;    /* inherited from further above */
    struct forked_child child;    /* this process */
    _Atomic uint32_t slot;        /* in `ancestor`, or NO_SLOT */
    _Atomic bool is_writing;      /* a thread writes to the slot */
    uint32_t used;
    uint32_t record_count;
    uint64_t cpu_nano;
} child = {.slot = NO_SLOT};

/* Lies outside of the first page, because few processes touch it. */
static struct written_record written[ENTRIES];

/* Holds the helper's own data of a slot, which a child cannot change. */
struct found_slot {
    bool is_ended; /* the child has ended, and the slot waits for child_samples_take() */
    uint32_t pid;
    uint64_t cpu_nano; /* CPU time that child_samples_find_ended() has counted */
};
static struct found_slot found_slots[CHILD_SLOTS];

static uint64_t owned_by(uint32_t pid, enum child_slot_state state) {
    return (uint64_t)pid << 32 | state;
}

void child_samples_share(void) {
    /* forgets the mapping first, because another thread may fork in between */
    struct child_slots *const stale = child.stale;
    child.stale = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    if (stale)
        profiler_memory_unmap(stale, sizeof *stale);
    if (child.own)
        return;
    memset(found_slots, 0, sizeof found_slots);
    child.own = profiler_memory_share(sizeof *child.own);
}

/* --- a child --- */

bool child_samples_can_be_kept(void) {
    return child.own || child.ancestor;
}

void child_samples_after_fork(const struct forked_child *forked) {
    const bool is_readers = child.own; /* the reader forked this child itself */
    const uint64_t inherited_interval = child.child.interval;
    if (child.own) {
        child.stale = child.ancestor;
        child.ancestor = child.own;
    }
    child.own = NULL;
    if (!forked && child.ancestor) {
        child.stale = child.ancestor;
        child.ancestor = NULL;
    }
    if (atomic_load_explicit(&child.slot, memory_order_relaxed) != NO_SLOT)
        memset(written, 0, sizeof written);
    atomic_store(&child.slot, NO_SLOT);
    atomic_store(&child.is_writing, false);
    atomic_store(&child_samples_wanted, child.ancestor != NULL);
    if (!forked)
        return;
    child.child = *forked;
    /* the reader does not know the objects that a process below it has loaded since */
    if (!is_readers)
        child.child.interval = inherited_interval;
}

static void set_head(struct child_slot *slot, const struct forked_child *of) {
    atomic_store_explicit(&slot->start_unix_nano, of->start_unix_nano, memory_order_relaxed);
    atomic_store_explicit(&slot->lived_nano, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->cpu_nano, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->interval, of->interval, memory_order_relaxed);
    atomic_store_explicit(&slot->parent, of->parent, memory_order_relaxed);
    atomic_store_explicit(&slot->used, 0, memory_order_relaxed);
    /* pairs with the acquire in find_ended_slot() */
    atomic_store_explicit(&slot->start_nano, of->start_nano, memory_order_release);
}

/* Frees a slot. Stores the owner last, so that the next owner finds the slot empty. */
static void slot_free(struct child_slot *slot) {
    set_head(slot, &(struct forked_child){0});
    /* pairs with the exchange in child_samples_take_slot() */
    atomic_store_explicit(&slot->owner, 0, memory_order_release);
}

/* Takes a free slot. Returns its number, or NO_SLOT. */
static uint32_t child_samples_take_slot(void) {
    const uint64_t owner = owned_by(child.child.pid, CHILD_SLOT_USED);
    for (uint32_t i = 0; i < CHILD_SLOTS; i++) {
        struct child_slot *const slot = &child.ancestor->heads[i];
        uint64_t free_slot = 0;
        if (atomic_load_explicit(&slot->owner, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&slot->owner, &free_slot, owner)) {
            set_head(slot, &child.child);
            child.used = 0;
            child.record_count = 0;
            child.cpu_nano = 0;
            return i;
        }
    }
    return NO_SLOT;
}

/* Returns the child's slot, which its first sample takes; NULL: all slots are taken, or another
 * process has changed the owner of this one, which the child then gives up for ever. */
static struct child_slot *slot_to_write(void) {
    uint32_t number = atomic_load_explicit(&child.slot, memory_order_relaxed);
    if (number == NO_SLOT) {
        number = child_samples_take_slot();
        atomic_store_explicit(&child.slot, number, memory_order_relaxed);
    }
    if (number == NO_SLOT)
        return NULL;
    struct child_slot *const slot = &child.ancestor->heads[number];
    const bool is_own = atomic_load_explicit(&slot->owner, memory_order_relaxed) ==
                        owned_by(child.child.pid, CHILD_SLOT_USED);
    if (!is_own)
        atomic_store_explicit(&child_samples_wanted, false, memory_order_relaxed);
    return is_own ? slot : NULL;
}

/* Returns the entry with that hash, or a free one. */
static struct written_record *find_written(uint64_t hash) {
    uint32_t at = (uint32_t)(hash >> 1) & (ENTRIES - 1);
    while (written[at].hash &&
           written[at].hash != hash) /* ends: a quarter of the entries is free */
        at = (at + 1) & (ENTRIES - 1);
    return &written[at];
}

/* Returns true if a record of so many bytes fits. */
static bool has_room(uint32_t bytes) {
    return child.record_count < MOST_RECORDS && CHILD_SLOT_BYTES - child.used >= bytes;
}

/* Enters a record of `bytes` that was written right behind the last one. */
static void enter_record(struct written_record *entry, uint64_t hash, uint32_t bytes) {
    entry->hash = hash;
    entry->offset = child.used;
    child.used += bytes;
    child.record_count++;
}

static uint64_t hash_of_function(uint64_t frame) {
    return hash_word(CHILD_FUNCTION, frame) | 1;
}

/* Appends the record of a function of Python, if it is new and if there is room for it. */
static void append_function(struct python_functions *functions, uint64_t frame, uint8_t *records) {
    const uint64_t hash = hash_of_function(frame);
    struct written_record *const entry = find_written(hash);
    struct python_texts texts;
    if (frame >> FRAME_SOURCE_SHIFT != FRAME_CPYTHON || entry->hash || !functions ||
        !python_function_texts(functions, frame_function(frame), frame_position(frame), &texts))
        return;
    const uint32_t size = texts.name.size + texts.file.size;
    const uint32_t bytes = (uint32_t)(sizeof(struct child_function) + size + 7) & ~7u;
    if (!has_room(bytes))
        return;
    struct child_function *const function = (struct child_function *)(void *)(records + child.used);
    function->bytes = bytes;
    function->line = texts.line;
    function->kind = CHILD_FUNCTION;
    function->name_character = (uint8_t)texts.name.character;
    function->file_character = (uint8_t)texts.file.character;
    function->start_line = texts.start_line;
    function->name_size = texts.name.size;
    function->file_size = texts.file.size;
    memcpy(function->texts, texts.name.bytes, texts.name.size);
    memcpy(function->texts + texts.name.size, texts.file.bytes, texts.file.size);
    enter_record(entry, hash, bytes);
}

/* Returns the frame as the reader can name it; 0: it cannot. The reader has the objects of the
 * fork. Once the child's own list has changed, only the objects that never change are certain. */
static uint64_t frame_to_write(const struct modules *objects, uint64_t frame, bool has_changed) {
    if (!frame_is_address(frame)) {
        const struct written_record *const entry = find_written(hash_of_function(frame));
        return entry->hash ? frame_interned(FRAME_CPYTHON, 0, entry->offset) : 0;
    }
    const bool is_certain = fixed_modules_at(&objects->fixed, (uintptr_t)frame) ||
                            (!has_changed && modules_span(objects, (uintptr_t)frame));
    return is_certain ? frame : 0;
}

static void write_values(const struct written_record *stack, struct child_record *record) {
    for (int i = 0; i < SAMPLE_VALUES; i++)
        record->values[i] = stack->values[i];
}

/* Appends the record of a stack, without values, behind those of its functions. Returns false if
 * there is no room. */
static bool append_stack(const struct modules *objects, struct python_functions *functions,
                         const struct sample *sample, uint64_t hash, uint8_t *records) {
    for (uint32_t i = 0; i < sample->frame_count; i++)
        if (!frame_is_address(sample->frames[i]))
            append_function(functions, sample->frames[i], records);
    if (!has_room((uint32_t)sizeof(struct child_record) + sample->frame_count * 8))
        return false;
    const bool has_changed = modules_interval(objects) != child.child.interval;
    struct child_record *const record = (struct child_record *)(void *)(records + child.used);
    uint16_t count = 0;
    for (uint32_t i = 0; i < sample->frame_count; i++)
        if (!frame_is_place(sample->frames[i]))
            record->frames[count++] = frame_to_write(objects, sample->frames[i], has_changed);
    const uint32_t bytes = sizeof *record + count * 8u;
    record->bytes = bytes;
    record->tid = sample->tid;
    record->kind = sample->kind;
    /* libunwind cannot finish the stack, because the slot has no copy of it */
    record->flags = sample->flags | (sample->stack_copy ? SAMPLE_FLAG_TRUNCATED : 0);
    record->frame_count = count;
    enter_record(find_written(hash), hash, bytes);
    return true;
}

static uint64_t child_samples_hash(const struct sample *sample, uint64_t interval) {
    const uint64_t seed = (uint64_t)sample->tid << 16 ^ (uint64_t)sample->kind << 8 ^ sample->flags;
    return hash_words(hash_word(seed, interval), sample->frames, sample->frame_count) | 1;
}

static void write_sample(const struct modules *objects, struct python_functions *functions,
                         const struct sample *sample, struct child_slot *slot) {
    uint8_t *const records =
        child.ancestor->records[atomic_load_explicit(&child.slot, memory_order_relaxed)];
    const uint64_t hash = child_samples_hash(sample, modules_interval(objects));
    if (!find_written(hash)->hash && !append_stack(objects, functions, sample, hash, records))
        return;
    struct written_record *const stack = find_written(hash);
    for (int i = 0; i < SAMPLE_VALUES; i++)
        stack->values[i] += sample->values[i];
    write_values(stack, (struct child_record *)(void *)(records + stack->offset));
    if (sample->kind == SAMPLE_CPU)
        child.cpu_nano += (uint64_t)sample->values[MEASURED_NANO];
    atomic_store_explicit(&slot->cpu_nano, child.cpu_nano, memory_order_relaxed);
    atomic_store_explicit(&slot->lived_nano, monotonic_nano() - child.child.start_nano,
                          memory_order_relaxed);
    /* pairs with the reader: the record is complete */
    atomic_store_explicit(&slot->used, child.used, memory_order_release);
}

void child_samples_write(const struct modules *objects, struct python_functions *functions,
                         const struct sample *sample) {
    /* the exchange pairs with the release below */
    if ((sample->kind != SAMPLE_CPU && sample->kind != SAMPLE_ALLOC) ||
        atomic_exchange_explicit(&child.is_writing, true, memory_order_acquire))
        return; /* another thread may be writing, and this thread must not wait */
    struct child_slot *const slot = atomic_load(&child_samples_wanted) ? slot_to_write() : NULL;
    if (slot)
        write_sample(objects, functions, sample, slot);
    /* pairs with the exchanges above and in child_samples_release() */
    atomic_store_explicit(&child.is_writing, false, memory_order_release);
}

void child_samples_release(void) {
    if (!atomic_exchange(&child_samples_wanted, false))
        return;
    bool is_writing = true;
    for (int i = 0; i < RELEASE_TRIES && is_writing; i++)
        if ((is_writing = atomic_exchange(&child.is_writing, true)))
            sched_yield();
    const uint32_t number = atomic_load(&child.slot);
    if (number == NO_SLOT)
        return;
    struct child_slot *const slot = &child.ancestor->heads[number];
    uint64_t owner = owned_by(child.child.pid, CHILD_SLOT_USED);
    if (atomic_compare_exchange_strong(&slot->owner, &owner,
                                       owned_by(child.child.pid, CHILD_SLOT_RELEASED)) &&
        !is_writing)
        slot_free(slot);
}

uint64_t child_samples_nano(void) {
    return atomic_load(&child.slot) == NO_SLOT ? 0 : child.cpu_nano;
}

/* --- the reader --- */

/* Checks one slot. Marks it if its child has ended. Frees it if its child has released it and
 * ended, or if its owner is no valid one. */
static void find_ended_slot(struct child_slot *slot, struct found_slot *found,
                            bool (*has_ended)(uint32_t pid, uint64_t start_nano)) {
    uint64_t owner = atomic_load(&slot->owner);
    const uint32_t pid = (uint32_t)(owner >> 32);
    const uint32_t state = (uint32_t)owner;
    if (found->is_ended || !owner)
        return;
    if (!pid || (state != CHILD_SLOT_USED && state != CHILD_SLOT_RELEASED)) {
        slot_free(slot);
        return;
    }
    /* pairs with the release in set_head() */
    if (!has_ended(pid, atomic_load_explicit(&slot->start_nano, memory_order_acquire)))
        return;
    if (state == CHILD_SLOT_RELEASED)
        slot_free(slot);
    else if (atomic_compare_exchange_strong(&slot->owner, &owner, owned_by(pid, CHILD_SLOT_ENDED)))
        *found = (struct found_slot){true, pid,
                                     atomic_load_explicit(&slot->cpu_nano, memory_order_relaxed)};
}

uint64_t child_samples_find_ended(bool (*has_ended)(uint32_t pid, uint64_t start_nano)) {
    uint64_t nano = 0;
    for (uint32_t i = 0; child.own && i < CHILD_SLOTS; i++) {
        const bool was_ended = found_slots[i].is_ended;
        find_ended_slot(&child.own->heads[i], &found_slots[i], has_ended);
        if (found_slots[i].is_ended && !was_ended)
            nano += found_slots[i].cpu_nano;
    }
    return nano;
}

/* Returns true if the values are numbers that an export can express. */
static bool are_valid(const double values[SAMPLE_VALUES]) {
    for (int i = 0; i < SAMPLE_VALUES; i++)
        if (!(values[i] >= 0 && values[i] < LARGEST_VALUE))
            return false;
    return true;
}

/* Returns the size of the record, or 0 if the bytes are no record. */
static uint32_t checked_size(const struct child_record *record, uint32_t room) {
    enum { LEAST = sizeof(struct child_function) };
    return room < LEAST || record->bytes < LEAST || record->bytes > room || record->bytes % 8
               ? 0
               : record->bytes;
}

static bool is_sample(const struct child_record *record) {
    return (record->kind == SAMPLE_CPU || record->kind == SAMPLE_ALLOC) &&
           record->bytes >= sizeof *record &&
           record->frame_count == (record->bytes - sizeof *record) / 8 && are_valid(record->values);
}

/* Makes the frames of Python functions refer to copy `number`, and clears other interned frames. */
static void mark_frames(struct child_record *record, uint32_t number) {
    for (uint32_t i = 0; i < record->frame_count; i++) {
        const uint64_t frame = record->frames[i];
        if (!frame_is_address(frame))
            record->frames[i] = frame >> FRAME_SOURCE_SHIFT == FRAME_CPYTHON
                                    ? frame_interned(FRAME_CHILD, number, frame_function(frame))
                                    : 0;
    }
}

void child_samples_read(struct child_copy *copy, uint32_t number, uint64_t interval,
                        void (*visit)(void *arg, const struct sample *sample), void *arg) {
    uint32_t size;
    for (uint32_t at = 0; at < copy->used; at += size) {
        struct child_record *const record = (struct child_record *)(void *)(copy->records + at);
        size = checked_size(record, copy->used - at);
        if (!size)
            return;
        if (!is_sample(record))
            continue;
        mark_frames(record, number);
        struct sample sample = {.kind = record->kind,
                                .flags = record->flags & KEPT_FLAGS,
                                .tid = record->tid,
                                .interval = interval,
                                .frames = record->frames,
                                .frame_count = record->frame_count};
        memcpy(sample.values, record->values, sizeof sample.values);
        visit(arg, &sample);
    }
}

/* Copies the slot, and frees it. */
static void copy_slot(uint32_t number, struct child_copy *copy, struct ended_child *ended) {
    struct child_slot *const slot = &child.own->heads[number];
    /* pairs with the release in write_sample(): the records up to there are complete */
    const uint32_t used = atomic_load_explicit(&slot->used, memory_order_acquire);
    copy->used = used <= CHILD_SLOT_BYTES ? used : 0;
    memcpy(copy->records, child.own->records[number], copy->used);
    *ended = (struct ended_child){
        .pid = found_slots[number].pid,
        .cpu_nano = found_slots[number].cpu_nano,
        .parent = atomic_load_explicit(&slot->parent, memory_order_relaxed),
        .start_unix_nano = atomic_load_explicit(&slot->start_unix_nano, memory_order_relaxed),
        .lived_nano = atomic_load_explicit(&slot->lived_nano, memory_order_relaxed),
        .interval = atomic_load_explicit(&slot->interval, memory_order_relaxed)};
    found_slots[number].is_ended = false;
    slot_free(slot);
}

/* Returns the number of a slot whose child has ended, or NO_SLOT. */
static uint32_t next_ended(void) {
    uint32_t i = child.own ? 0 : NO_SLOT;
    while (i < CHILD_SLOTS && !found_slots[i].is_ended)
        i++;
    return i;
}

bool child_samples_are_there(void) {
    return next_ended() != NO_SLOT;
}

bool child_samples_take(struct child_copy *copies, struct ended_child *ended,
                        void (*visit)(void *arg, const struct sample *sample), void *arg) {
    const uint32_t i = next_ended();
    if (i == NO_SLOT)
        return false;
    copy_slot(i, &copies[i], ended);
    child_samples_read(&copies[i], i, ended->interval, visit, arg);
    return true;
}

/* --- names --- */

/* Used by the helper: holds the strings that child_samples_name() returned last. */
static struct child_names {
    char name[PYTHON_NAME_CHARACTERS * 4 + 1];
    char file[PYTHON_FILE_CHARACTERS * 4 + 1];
} names;

/* Returns the record of a function, or NULL if there is none at the offset. */
static const struct child_function *function_at(const struct child_copy *copy, uint32_t offset) {
    if (offset % 8 || offset >= copy->used)
        return NULL;
    const void *const there = copy->records + offset;
    const struct child_function *const function = there;
    const uint32_t size = checked_size(there, copy->used - offset);
    const uint32_t room = size ? size - (uint32_t)sizeof *function : 0;
    return size && function->kind == CHILD_FUNCTION && function->name_size <= room &&
                   function->file_size <= room - function->name_size
               ? function
               : NULL;
}

static bool child_samples_is_text(uint32_t size, uint32_t character, uint32_t most) {
    return character <= 4 && character != 3 && size <= most * character;
}

bool child_samples_name(const struct child_copy *copies, uint64_t frame,
                        struct named_frame *named) {
    const uint32_t number = frame_position(frame);
    const struct child_function *const function =
        number < CHILD_SLOTS ? function_at(&copies[number], frame_function(frame)) : NULL;
    if (!function ||
        !child_samples_is_text(function->name_size, function->name_character,
                               PYTHON_NAME_CHARACTERS) ||
        !child_samples_is_text(function->file_size, function->file_character,
                               PYTHON_FILE_CHARACTERS))
        return false;
    python_text(function->texts, function->name_size, function->name_character, names.name);
    python_text(function->texts + function->name_size, function->file_size,
                function->file_character, names.file);
    *named =
        (struct named_frame){.type = "cpython",
                             .function = names.name,
                             .file = names.file,
                             .line = function->line > 0 ? function->line : 0,
                             .start_line = function->start_line > 0 ? function->start_line : 0};
    return true;
}
