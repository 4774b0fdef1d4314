#include "perf_map.h"

#include "files/by_path.h"
#include "files/trusted_file.h"
#include "open_flags.h"
#include "text_numbers.h"
#include "utf8.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_AT_ONCE = 32 << 20, /* bytes read in one export: some 100 ms */
    MAX_FILE = 1 << 30,      /* bounds the file, because the number of a line is its offset */
    PIECE = 64 << 10,        /* a longer line is skipped */
    MAX_LINE = MAX_GENERATED_NAME + 64,
};

/* --- a line --- */

struct map_line {
    uint64_t start;
    uint64_t size;
    const char *name;
};

/* Reads a number and the blanks after it. Returns the place behind them; NULL if there is no number
 * or no blank, or if the number has more than 64 bits. */
static const char *perf_map_number(const char *at, uint64_t *number) {
    if (at[0] == '0' && (at[1] | 0x20) == 'x')
        at += 2;
    const char *const last = number_read(at, 16, number);
    const size_t blanks = last ? strspn(last, " \t") : 0;
    return blanks ? last + blanks : NULL;
}

/* Reads a line up to its newline or NUL, at `end`. Returns false if it has another form. */
static bool read_line(const char *at, const char *end, struct map_line *line) {
    at = perf_map_number(at, &line->start);
    line->name = at ? perf_map_number(at, &line->size) : NULL;
    return line->name && line->name < end;
}

/* --- the file --- */

/* Returns true if the part that was read before seems unchanged: compares only its last bytes. */
static bool perf_map_is_unchanged(const struct perf_map *map, const struct stat *status) {
    char tail[PERF_MAP_TAIL];
    if (map->line_changed || status->st_dev != map->device || status->st_ino != map->inode ||
        (uint64_t)status->st_size < map->at)
        return false;
    const off_t at = (off_t)(map->at - map->tail_size);
    return pread(map->file, tail, map->tail_size, at) == (ssize_t)map->tail_size &&
           memcmp(tail, map->tail, map->tail_size) == 0;
}

/* Adds the complete lines of the piece, which was read at map->at. Returns the number of their
 * bytes; 0 if a line does not fit into the map. */
static size_t perf_map_take_lines(struct perf_map *map, const char *piece, size_t size) {
    struct map_line line;
    const char *at = piece;
    for (const char *end; (end = memchr(at, '\n', (size_t)(piece + size - at))); at = end + 1) {
        const uint64_t offset = map->at + (uint64_t)(at - piece);
        if (read_line(at, end, &line) &&
            !code_map_add(&map->ranges, line.start, line.size, (uint32_t)offset)) {
            map->full = true;
            return 0;
        }
    }
    return (size_t)(at - piece);
}

/* Reads the next piece of the file. Returns false if there is no more to read for now. */
static bool perf_map_read_piece(struct perf_map *map, char *piece) {
    const ssize_t size = pread(map->file, piece, PIECE, (off_t)map->at);
    if (size <= 0)
        return false;
    size_t taken = perf_map_take_lines(map, piece, (size_t)size);
    if (taken == 0 && !map->full && size == PIECE) /* the line is longer than the piece */
        taken = PIECE;
    if (taken == 0)
        return false;
    map->tail_size = taken < PERF_MAP_TAIL ? taken : PERF_MAP_TAIL;
    memcpy(map->tail, piece + taken - map->tail_size, map->tail_size);
    map->at += taken;
    map->full = map->at > MAX_FILE;
    return !map->full;
}

static void perf_map_read_pieces(struct perf_map *map) {
    char *const piece = malloc(PIECE);
    const uint64_t end = map->at + READ_AT_ONCE;
    while (piece && !map->full && map->at < end && perf_map_read_piece(map, piece)) {
    }
    free(piece);
}

void perf_map_init(struct perf_map *map) {
    *map = (struct perf_map){.file = -1};
}

enum perf_map_result perf_map_read_file(struct perf_map *map, int file) {
    struct stat status;
    perf_map_close_file(map);
    map->file = file;
    if (file < 0 || fstat(file, &status) != 0)
        return PERF_MAP_NONE;
    const bool restarted = !perf_map_is_unchanged(map, &status);
    if (restarted) {
        code_map_free(&map->ranges);
        *map = (struct perf_map){.file = file, .device = status.st_dev, .inode = status.st_ino};
    }
    const bool was_full = map->full;
    perf_map_read_pieces(map);
    if (map->full && !was_full)
        return PERF_MAP_EXCESS;
    return restarted ? PERF_MAP_RESTARTED : PERF_MAP_READ;
}

/* Opens the file without waiting for a pipe or device, and without following a link. */
enum perf_map_result perf_map_read(struct perf_map *map, const char *path) {
    struct stat status;
    perf_map_close_file(map);
    if (!may_open_by_path())
        return PERF_MAP_NONE;
    const int file = open(path, OPEN_TO_READ | O_NOFOLLOW);
    if (file >= 0 && fstat(file, &status) == 0 && trusted_file_is_own(&status))
        return perf_map_read_file(map, file);
    if (file >= 0)
        close(file);
    return PERF_MAP_NONE;
}

bool perf_map_find(struct perf_map *map, uint64_t address, uint32_t *number) {
    return code_map_find(&map->ranges, address, number);
}

bool perf_map_name(struct perf_map *map, uint64_t address, uint32_t number,
                   char name[static MAX_GENERATED_NAME]) {
    char text[MAX_LINE + 1];
    struct map_line line;
    const ssize_t size = map->file >= 0 ? pread(map->file, text, MAX_LINE, number) : -1;
    if (size <= 0)
        return false;
    text[size] = 0;
    const char *const found = memchr(text, '\n', (size_t)size);
    const char *const end = found ? found : text + size;
    if (!read_line(text, end, &line) || address - line.start >= line.size) {
        map->line_changed = true;
        return false;
    }
    const size_t length = (size_t)(end - line.name);
    const size_t kept =
        length < MAX_GENERATED_NAME ? length : utf8_cut(line.name, MAX_GENERATED_NAME - 1);
    memcpy(name, line.name, kept);
    name[kept] = 0;
    return name[0] != 0;
}

void perf_map_close_file(struct perf_map *map) {
    if (map->file >= 0)
        close(map->file);
    map->file = -1;
}

void perf_map_close(struct perf_map *map) {
    perf_map_close_file(map);
    code_map_free(&map->ranges);
    perf_map_init(map);
}
