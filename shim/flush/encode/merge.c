#include "merge.h"

#include "interpreted_stack.h"
#include "symbolize/slow_unwind.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 1024 };

struct collector {
    struct merge *merge;
    const struct capture_api *api;
    struct slow_unwinder *unwinder; /* NULL until the first unfinished stack */
    bool unwinder_tried;
    const struct harvest_module *modules;
    size_t module_count;
    uint64_t lost;
};

/* --- unfinished stacks --- */

static bool is_profiler_code(const struct collector *c, uint64_t address) {
    for (size_t i = 0; i < c->module_count; i++) {
        const struct harvest_module *const module = &c->modules[i];
        if (address < module->start || address >= module->end)
            continue;
        const char *const slash = strrchr(module->path, '/');
        return slash && strcmp(slash, "/libotelprof.so") == 0;
    }
    return false;
}

/* Holds a stack that libunwind has walked. */
struct finished {
    uint64_t frames[MAX_FRAMES];
    uint64_t stack_pointers[MAX_FRAMES];
    uint32_t count;
};

static void leave_out_profiler(const struct collector *c, struct finished *stack) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < stack->count; i++) {
        if (is_profiler_code(c, stack->frames[i]))
            continue;
        stack->stack_pointers[kept] = stack->stack_pointers[i];
        stack->frames[kept++] = stack->frames[i];
    }
    stack->count = kept;
}

/* Walks with libunwind. Returns false if the end of the stack was not reached. */
static bool walk_slowly(struct collector *c, const struct stack_copy *copy, uint32_t max,
                        struct finished *stack) {
    stack->count = 0;
    if (!c->unwinder_tried) {
        c->module_count = c->api->harvest.modules(&c->modules);
        c->unwinder = slow_unwinder_open(c->modules, c->module_count);
    }
    c->unwinder_tried = true;
    const bool complete = c->unwinder && slow_unwind(c->unwinder, copy, stack->frames,
                                                     stack->stack_pointers, max, &stack->count);
    leave_out_profiler(c, stack);
    return complete;
}

static bool is_interpreted(const struct harvest_sample *sample) {
    bool is_native = true;
    for (uint32_t i = 0; i < sample->frame_count; i++)
        is_native &= frame_is_address(sample->frames[i]);
    return !is_native;
}

/* Writes the finished stack to `frames`, of MAX_FRAMES. Returns the number of frames; 0 if the
 * walker's stack must be kept, because it has as many frames, or has interpreted frames that do not
 * fit the finished stack. */
static uint32_t finish_frames(const struct harvest_sample *sample, const struct finished *stack,
                              uint64_t *frames) {
    const struct native_stack native = {stack->frames, stack->stack_pointers, stack->count};
    if (is_interpreted(sample))
        return interpreted_stack(sample->frames, sample->frame_count, &native, frames, MAX_FRAMES);
    memcpy(frames, stack->frames, stack->count * sizeof *frames);
    return stack->count > sample->frame_count ? stack->count : 0;
}

/* Returns the sample with the finished stack instead of the walker's, if finish_frames() has made
 * one; `frames` must live as long. Marks the sample as truncated if the walker's stack is kept, or
 * the finished one does not reach the end. */
static struct harvest_sample
merge_finish_stack(struct collector *c, const struct harvest_sample *sample, uint64_t *frames) {
    struct harvest_sample finished = *sample;
    struct finished stack;
    finished.stack_copy = NULL;
    const bool complete =
        walk_slowly(c, sample->stack_copy, (uint32_t)c->api->config->max_stack_depth, &stack);
    const uint32_t count = finish_frames(sample, &stack, frames);
    if (count) {
        finished.frames = frames;
        finished.frame_count = count;
    }
    if (complete && count)
        c->merge->finished_stacks++;
    else
        finished.flags |= SAMPLE_FLAG_TRUNCATED;
    return finished;
}

/* Removes the frames that are only places of groups (FRAME_PLACE) from a stack that could not be
 * finished. */
static void leave_out_places(struct harvest_sample *sample, uint64_t *frames) {
    const uint32_t most = sample->frame_count < MAX_FRAMES ? sample->frame_count : MAX_FRAMES;
    uint32_t first = 0;
    while (first < most && !frame_is_place(sample->frames[first]))
        first++;
    if (first == most)
        return;
    sample->frame_count = frames_without_places(sample->frames, most, frames);
    sample->frames = frames;
}

/* --- merging --- */

struct key_head {
    uint32_t kind;
    uint32_t flags;
    uint32_t tid;
    uint32_t name_bytes;
    uint32_t age;
    uint32_t context_words; /* size of the context; 0: none */
    uint32_t wait_words;    /* size of the wait; 0: none */
    uint32_t holder_bytes;  /* size of the holder's name, NUL included */
    uint64_t interval;
};

enum {
    MAX_NAME_BYTES = 64,
    MAX_KEY_BYTES =
        sizeof(struct key_head) + 2 * MAX_NAME_BYTES + (MAX_FRAMES + CONTEXT_WORDS + WAIT_WORDS) * 8
};

/* Returns "" if no name is known. */
static const char *holder_name_of(const struct harvest_sample *sample) {
    return sample->holder_name ? sample->holder_name : "";
}

static size_t holder_name_bytes(const struct harvest_sample *sample) {
    return strnlen(holder_name_of(sample), MAX_NAME_BYTES - 1);
}

/* Writes the sample's identity as bytes: head, frames, context, wait, holder's name, name. Returns
 * its size. */
static size_t make_key(char key[static MAX_KEY_BYTES], const struct harvest_sample *sample) {
    const size_t name_bytes = strnlen(sample->thread_name, MAX_NAME_BYTES);
    const size_t holder_bytes = holder_name_bytes(sample);
    const uint32_t frame_count =
        sample->frame_count < MAX_FRAMES ? sample->frame_count : MAX_FRAMES;
    const struct key_head head = {.kind = sample->kind,
                                  .flags = sample->flags,
                                  .tid = sample->tid,
                                  .name_bytes = (uint32_t)name_bytes,
                                  .age = sample->age,
                                  .context_words =
                                      sample->context ? context_words(sample->context) : 0,
                                  .wait_words = sample->wait ? wait_words(sample->wait) : 0,
                                  .holder_bytes = (uint32_t)holder_bytes + 1,
                                  .interval = sample->interval};
    memcpy(key, &head, sizeof head);
    char *const context = key + sizeof head + frame_count * 8u;
    char *const wait = context + head.context_words * 8u;
    char *const holder = wait + head.wait_words * 8u;
    char *const name = holder + head.holder_bytes;
    memcpy(key + sizeof head, sample->frames, frame_count * 8u);
    if (sample->context)
        memcpy(context, sample->context, head.context_words * 8u);
    if (sample->wait)
        memcpy(wait, sample->wait, head.wait_words * 8u);
    memcpy(holder, holder_name_of(sample), holder_bytes);
    holder[holder_bytes] = 0;
    memcpy(name, sample->thread_name, name_bytes);
    return (size_t)(name - key) + name_bytes;
}

/* Makes an item whose frames, context, wait and names point into the key: each stack is stored
 * once. Returns NULL without memory. */
static struct harvest_sample *merge_new_item(struct merge *merge,
                                             const struct harvest_sample *sample, const char *key) {
    struct arena *const arena = &merge->arena;
    struct harvest_sample *const item = arena_take(arena, sizeof *item);
    if (!item || !arena_list_add(arena, &merge->items, item))
        return NULL;
    const char *const frames = key + sizeof(struct key_head);
    *item = *sample;
    item->frames = (const uint64_t *)(const void *)frames;
    item->frame_count = sample->frame_count < MAX_FRAMES ? sample->frame_count : MAX_FRAMES;
    const char *const context = frames + item->frame_count * 8u;
    item->context = sample->context ? (const struct sample_context *)(const void *)context : NULL;
    const char *const wait = context + (item->context ? context_words(item->context) * 8u : 0);
    item->wait = sample->wait ? (const struct wait_detail *)(const void *)wait : NULL;
    item->holder_name = wait + (item->wait ? wait_words(item->wait) * 8u : 0);
    item->thread_name = item->holder_name + holder_name_bytes(sample) + 1;
    memset(item->values, 0, sizeof item->values);
    return item;
}

static struct harvest_sample *merge_find_item(struct merge *merge,
                                              const struct harvest_sample *sample) {
    char key[MAX_KEY_BYTES];
    bool is_new;
    const size_t size = make_key(key, sample);
    const int32_t number = intern(&merge->arena, &merge->index, key, size, &is_new);
    if (number < 0)
        return NULL;
    if ((size_t)number < merge->items.count)
        return merge->items.items[number];
    /* stops adding after the first failure, because numbers and items do not match any more */
    if (!is_new || (size_t)number != merge->items.count)
        return NULL;
    return merge_new_item(merge, sample, merge->index.keys[number].bytes);
}

static void add_values(struct harvest_sample *to, const struct harvest_sample *from) {
    for (int i = 0; i < SAMPLE_VALUES; i++)
        to->values[i] += from->values[i];
    span_seen_add(&to->seen, from->seen);
}

static void merge_add_sample(void *arg, const struct harvest_sample *sample) {
    struct collector *const c = arg;
    uint64_t frames[MAX_FRAMES];
    struct harvest_sample whole = *sample;
    if (sample->stack_copy)
        whole = merge_finish_stack(c, sample, frames);
    leave_out_places(&whole, frames);
    struct harvest_sample *const item = merge_find_item(c->merge, &whole);
    if (!item) {
        c->lost++;
        return;
    }
    add_values(item, sample);
}

bool merge_harvest(struct merge *merge, const struct capture_api *api) {
    struct collector collector = {.merge = merge, .api = api};
    api->harvest.visit(merge_add_sample, &collector);
    slow_unwinder_close(collector.unwinder);
    if (collector.lost)
        api->counters.count_drop(DROP_ENCODE, collector.lost);
    return collector.lost == 0;
}

bool merge_ended_child(struct merge *merge, const struct capture_api *api,
                       struct ended_child *child) {
    struct collector collector = {.merge = merge, .api = api};
    const bool found = api->harvest.ended_child(child, merge_add_sample, &collector);
    if (collector.lost)
        api->counters.count_drop(DROP_ENCODE, collector.lost);
    return found;
}

/* Returns the number of the first item that differs from `item` at most in its recorded context;
 * -1: no memory.
 */
static int32_t merge_first_like(const struct merge *merge, size_t item, struct arena *arena,
                                struct intern *index, bool *is_new) {
    char key[MAX_KEY_BYTES + sizeof(void *)];
    struct harvest_sample sample = *(const struct harvest_sample *)merge->items.items[item];
    sample.context = NULL;
    const size_t size = make_key(key, &sample);
    memcpy(key + size, &merge->contexts.items[item], sizeof(void *));
    return intern(arena, index, key, size + sizeof(void *), is_new);
}

void merge_unite(struct merge *merge) {
    struct arena arena = {0};
    struct intern index = {0};
    const size_t count = merge->contexts.count;
    size_t kept = 0;
    if (count != merge->items.count)
        return;
    for (size_t i = 0; i < count; i++) {
        bool is_new = true;
        /* without memory the remaining items are not merged */
        const int32_t number =
            arena.failed ? -1 : merge_first_like(merge, i, &arena, &index, &is_new);
        if (number >= 0 && !is_new) {
            add_values(merge->items.items[number], merge->items.items[i]);
            continue;
        }
        merge->items.items[kept] = merge->items.items[i];
        merge->contexts.items[kept++] = merge->contexts.items[i];
    }
    merge->items.count = merge->contexts.count = kept;
    arena_free(&arena);
}

void merge_keep(struct merge *merge, merge_choice *choose, const void *arg) {
    struct arena_list *const contexts = &merge->contexts;
    const size_t named = contexts->count;
    size_t kept = 0;
    contexts->count = 0;
    for (size_t i = 0; i < merge->items.count; i++) {
        if (!choose(arg, merge->items.items[i]))
            continue;
        if (i < named)
            contexts->items[contexts->count++] = contexts->items[i];
        merge->items.items[kept++] = merge->items.items[i];
    }
    merge->items.count = kept;
}

void merge_free(struct merge *merge) {
    arena_free(&merge->arena);
    *merge = (struct merge){0};
}

unsigned merge_snapshots(const struct merge *merge) {
    unsigned found = 0;
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct harvest_sample *const sample = merge->items.items[i];
        if (profile_kinds[sample->kind].time == SNAPSHOT)
            found |= 1u << sample->kind;
    }
    return found;
}
