#include "thread_text.h"

#include "shown_text.h"
#include "written_text.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 1024 };

static const struct pprof_label *find_label(const struct pprof_sample *sample, const char *key) {
    for (size_t i = 0; i < sample->label_count; i++)
        if (strcmp(sample->labels[i].key, key) == 0)
            return &sample->labels[i];
    return NULL;
}

static const char *text(const struct pprof_sample *sample, const char *key) {
    const struct pprof_label *const found = find_label(sample, key);
    return found && found->text ? found->text : "";
}

/* Escapes characters that would break the line, because the program has chosen the name. */
static void write_name(const struct pprof_sample *sample, const char *key, struct wire *to) {
    char shown[SHOWN_MOST + 1];
    const char *const name = text(sample, key);
    shown[shown_text(shown, SHOWN_MOST, name, strlen(name))] = 0;
    text_add(to, "\"%s\"", shown);
}

static int64_t number(const struct pprof_sample *sample, const char *key) {
    const struct pprof_label *const found = find_label(sample, key);
    return found ? found->number : 0;
}

static void write_frame(const struct pprof_frame *frame, struct wire *to) {
    text_add(to, "\t");
    if (*frame->function)
        text_add_shown(to, frame->function);
    else
        text_add(to, "0x%llx", (unsigned long long)frame->address);
    if (*frame->file) {
        text_add(to, "\n\t\t");
        text_add_shown(to, frame->file);
    }
    if (*frame->file && frame->line)
        text_add(to, ":%lld", (long long)frame->line);
    text_add(to, "%s\n", frame->is_inlined ? " (inlined)" : "");
}

static void write_stack(const struct pprof_sum *sum, int32_t stack, struct wire *to) {
    struct pprof_frame frames[MOST_FRAMES];
    const size_t count = pprof_stack_frames(pprof_sum_tables(sum), stack, frames, MOST_FRAMES);
    for (size_t i = 0; i < count; i++)
        write_frame(&frames[i], to);
    text_add(to, "\n");
}

/* Writes: thread 4711 "worker" [blocked, lock, 12.000000000 s, lock NAME, held by "main"]: */
static void write_thread(const struct pprof_sum *sum, const struct pprof_sample *sample,
                         struct wire *to) {
    const int64_t waited = number(sample, "otelprof.wait.duration");
    const char *const kind = text(sample, "otelprof.wait.kind");
    const char *const lock = text(sample, "otelprof.lock.name");
    text_add(to, "thread %lld ", (long long)number(sample, "thread.id"));
    write_name(sample, "thread.name", to);
    text_add(to, " [%s", text(sample, "otelprof.thread.state"));
    text_add(to, *kind ? ", %s" : "%s", kind);
    if (waited > 0) {
        text_add(to, ", ");
        text_add_seconds(to, (uint64_t)waited);
        text_add(to, " s");
    }
    text_add(to, *lock ? ", lock " : "");
    text_add_shown(to, lock);
    if (find_label(sample, "otelprof.lock.holder.thread.name")) {
        text_add(to, ", held by ");
        write_name(sample, "otelprof.lock.holder.thread.name", to);
    }
    text_add(to, "]:\n");
    write_stack(sum, sample->stack, to);
}

static bool read_if_present(const struct pprof_sum *sum, size_t index,
                            struct pprof_sample *sample) {
    pprof_sum_sample(sum, index, sample);
    return sample->values[0] != 0;
}

static size_t count_threads(const struct pprof_sum *sum) {
    struct pprof_sample sample;
    size_t count = 0;
    for (size_t i = 0; i < pprof_sum_count(sum); i++)
        count += read_if_present(sum, i, &sample) ? (size_t)sample.values[0] : 0;
    return count;
}

static void write_group(const struct pprof_sum *sum, const struct pprof_sample *sample,
                        size_t *counts, struct wire *to) {
    if (counts[sample->stack] == 0)
        return; /* an earlier sample of the stack has written its block */
    text_add(to, "%zu [%s]", counts[sample->stack], text(sample, "otelprof.thread.state"));
    if (counts[sample->stack] == 1) {
        text_add(to, " ");
        write_name(sample, "thread.name", to);
    }
    text_add(to, ":\n");
    counts[sample->stack] = 0;
    write_stack(sum, sample->stack, to);
}

/* Counts threads by stack. Returns NULL without memory. */
static size_t *count_by_stack(const struct pprof_sum *sum) {
    struct pprof_sample sample;
    size_t *const counts = calloc((size_t)pprof_sum_tables(sum)->stacks.count + 1, sizeof *counts);
    for (size_t i = 0; counts && i < pprof_sum_count(sum); i++)
        if (read_if_present(sum, i, &sample))
            counts[sample.stack] += (size_t)sample.values[0];
    return counts;
}

static void write_groups(const struct pprof_sum *sum, struct wire *to) {
    struct pprof_sample sample;
    size_t *const counts = count_by_stack(sum);
    for (size_t i = 0; counts && i < pprof_sum_count(sum); i++)
        if (read_if_present(sum, i, &sample))
            write_group(sum, &sample, counts, to);
    free(counts);
}

void write_threads(const struct pprof_sum *sum, bool full, struct wire *to) {
    struct pprof_sample sample;
    if (!sum) {
        text_add(to, "There was no memory for the list of threads.\n");
        return;
    }
    text_add(to, "threads: total %zu\n\n", count_threads(sum));
    if (!full)
        write_groups(sum, to);
    for (size_t i = 0; full && i < pprof_sum_count(sum); i++)
        if (read_if_present(sum, i, &sample))
            write_thread(sum, &sample, to);
}
