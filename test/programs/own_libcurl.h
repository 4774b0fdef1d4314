/* Uses libcurl itself, before, while and after a profiler does.
 *
 * usage: PROGRAM early|late|counted|lazy URL MILLISECONDS
 *
 * early, late: gives libcurl an allocator that marks its memory, before it works for so long, or
 * after it; counted: initialises libcurl and cleans up around each transfer; lazy: leaves that to
 * libcurl. Then it makes some transfers from URL. A pointer that the allocator has not given out
 * ends the program (SIGABRT). Prints how many transfers succeeded, and whether the allocator was
 * used. */
#ifndef TEST_OWN_LIBCURL_H
#define TEST_OWN_LIBCURL_H

#include "cpu_work.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRANSFERS = 20 };
static const size_t mark = 0x6d61726b6d61726b;

struct block {
    size_t mark;
    size_t size;
};
static long given;

static void *take(size_t size) {
    struct block *const block = malloc(sizeof *block + size);
    *block = (struct block){mark, size};
    given++;
    return block + 1;
}

static void give_back(void *pointer) {
    struct block *const block = (struct block *)pointer - 1;
    if (!pointer)
        return;
    if (block->mark != mark)
        abort();
    block->mark = 0;
    free(block);
}

static void *resize(void *pointer, size_t size) {
    void *const new = take(size);
    if (pointer) {
        const size_t old = ((struct block *)pointer - 1)->size;
        memcpy(new, pointer, old < size ? old : size);
        give_back(pointer);
    }
    return new;
}

static char *copy(const char *text) {
    return strcpy(take(strlen(text) + 1), text);
}

static void *take_zeroed(size_t count, size_t size) {
    return memset(take(count * size), 0, count * size);
}

static size_t ignore(char *bytes, size_t size, size_t count, void *arg) {
    (void)bytes;
    (void)arg;
    return size * count;
}

/* Makes a transfer and returns whether it succeeded. If `marked`, it also frees memory of libcurl's
 * by the program's own allocator, as libcurl's manual allows. */
static bool transfer(const char *url, bool marked) {
    CURL *const easy = curl_easy_init();
    char *const text = curl_easy_escape(easy, "a b", 0);
    if (marked)
        give_back(text);
    else
        curl_free(text);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    const CURLcode result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return result == CURLE_OK;
}

typedef CURLcode init_mem(long, curl_malloc_callback, curl_free_callback, curl_realloc_callback,
                          curl_strdup_callback, curl_calloc_callback);
/* Is defined by the program. */
static init_mem *find_init_mem(void);

static void give_allocator(init_mem *init) {
    if (!init || init(CURL_GLOBAL_DEFAULT, take, give_back, resize, copy, take_zeroed) != CURLE_OK)
        exit(2);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    const bool early = strcmp(argv[1], "early") == 0;
    const bool marked = early || strcmp(argv[1], "late") == 0;
    const bool counted = strcmp(argv[1], "counted") == 0;
    int done = 0;
    if (early)
        give_allocator(find_init_mem());
    WORK_FOR((uint64_t)atoi(argv[3]) * NS_PER_MS);
    if (marked && !early)
        give_allocator(find_init_mem());
    for (int i = 0; i < TRANSFERS; i++) {
        if (counted)
            curl_global_init(CURL_GLOBAL_DEFAULT);
        done += transfer(argv[2], marked);
        if (counted)
            curl_global_cleanup();
        WORK_FOR(20 * NS_PER_MS);
    }
    if (marked)
        curl_global_cleanup();
    printf("%d transfers, allocator %s\n", done, given > TRANSFERS ? "used" : "not used");
    return 0;
}

#endif
