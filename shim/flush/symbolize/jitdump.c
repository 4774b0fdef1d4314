#include "jitdump.h"

#include "arch_object.h"
#include "files/by_path.h"
#include "files/trusted_file.h"
#include "glob.h"
#include "open_flags.h"
#include "process_maps.h"
#include "utf8.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAGIC = 0x4A695444, /* "JiTD", in the byte order of the machine */
    VERSION = 1,
    READ_AT_ONCE = 200000, /* number of records read at once: each costs a system call */
    FIRST_ROOM = 1024,
    MAX_LINES_BYTES = 64 << 10, /* largest list of lines of one piece of code: some 1,500 lines */
};

/* bounds the file; the bound is large, because the file contains code, too */
static const uint64_t max_file = (uint64_t)16 << 30;

/* Has the layout that jitdump-specification.txt defines. */
struct file_head {
    uint32_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t machine;
    uint32_t pad;
    uint32_t pid;
    uint64_t time;
    uint64_t flags;
};

enum record { RECORD_LOAD, RECORD_MOVE, RECORD_LINES, RECORD_CLOSE };

struct record_head {
    uint32_t id;
    uint32_t size; /* size of the record, this head included */
    uint64_t time;
};

struct record_load {
    uint32_t pid;
    uint32_t tid;
    uint64_t virtual_address;
    uint64_t address;
    uint64_t size;
    uint64_t index;
}; /* the name and the code follow */

struct record_move {
    uint32_t pid;
    uint32_t tid;
    uint64_t virtual_address;
    uint64_t old_address;
    uint64_t address;
    uint64_t size;
    uint64_t index;
};

struct record_lines {
    uint64_t address;
    uint64_t count;
}; /* `count` entries of the following form follow, each with its file's name */

struct line_entry {
    uint64_t address;
    uint32_t line;
    uint32_t discriminator;
};

/* Holds the places of a piece's records in the file. */
struct jitdump_code {
    uint64_t name_at;
    uint64_t lines_at; /* place of its lines; 0: it has none */
};

/* --- finding the file --- */

/* Returns true for a marker: " r-xp 00000000 08:01 1234 /tmp/jit-42.dump" */
static bool is_marker(const struct process_mapping *mapping, const char *name) {
    const char *const path = process_mapping_name(mapping);
    return path[0] == '/' && mapping->rest[3] == 'x' && strcmp(glob_base_name(path), name) == 0;
}

static bool note_file(struct jitdump *dump, const char *path, uint64_t address) {
    struct stat status;
    const int file = strlen(path) < PATH_MAX ? trusted_file_open_mapped(path, address) : -1;
    const bool is_valid = file >= 0 && fstat(file, &status) == 0 && trusted_file_is_own(&status);
    if (file >= 0)
        close(file);
    if (!is_valid)
        return false;
    jitdump_close(dump);
    memcpy(dump->path, path, strlen(path) + 1);
    dump->device = status.st_dev;
    dump->inode = status.st_ino;
    return true;
}

struct marker_search {
    struct jitdump *dump;
    const char *name; /* name of the file, without its folder */
};

static bool take_marker(void *arg, const struct process_mapping *mapping) {
    const struct marker_search *const search = arg;
    return is_marker(mapping, search->name) &&
           note_file(search->dump, process_mapping_name(mapping), mapping->start);
}

bool jitdump_scan(struct jitdump *dump, pid_t pid) {
    char name[32];
    struct marker_search search = {dump, name};
    snprintf(name, sizeof name, "jit-%d.dump", (int)pid);
    return may_open_by_path() && process_maps_visit(take_marker, &search);
}

/* --- reading new records --- */

static bool jitdump_read_at(const struct jitdump *dump, uint64_t at, void *to, size_t size) {
    return pread(dump->file, to, size, (off_t)at) == (ssize_t)size;
}

static bool jitdump_has_room(struct jitdump *dump) {
    if (dump->code_count < dump->code_room)
        return true;
    const size_t room = dump->code_room ? 2 * dump->code_room : FIRST_ROOM;
    struct jitdump_code *const code =
        room <= MAX_CODE_RANGES ? reallocarray(dump->code, room, sizeof *code) : NULL;
    if (!code)
        return false;
    dump->code = code;
    dump->code_room = room;
    return true;
}

/* take_load() and take_move() store one record each, and return false if there is no room for more.
 */

static bool take_load(struct jitdump *dump, uint64_t at) {
    struct record_load load;
    if (!jitdump_read_at(dump, at, &load, sizeof load))
        return true;
    if (!jitdump_has_room(dump))
        return false;
    dump->code[dump->code_count] = (struct jitdump_code){
        at + sizeof load, dump->lines_at && dump->lines_of == load.address ? dump->lines_at : 0};
    return code_map_add(&dump->ranges, load.address, load.size, (uint32_t)dump->code_count++);
}

static bool take_move(struct jitdump *dump, uint64_t at) {
    struct record_move move;
    uint32_t number;
    if (!jitdump_read_at(dump, at, &move, sizeof move) ||
        !code_map_find(&dump->ranges, move.old_address, &number))
        return true;
    return code_map_add(&dump->ranges, move.address, move.size, number);
}

static void jitdump_take_lines(struct jitdump *dump, uint64_t at) {
    struct record_lines lines;
    if (!jitdump_read_at(dump, at, &lines, sizeof lines))
        return;
    dump->lines_at = at;
    dump->lines_of = lines.address;
}

static bool jitdump_take(struct jitdump *dump, const struct record_head *head) {
    const uint64_t at = dump->at + sizeof *head;
    if (head->id == RECORD_LOAD && head->size >= sizeof *head + sizeof(struct record_load))
        return take_load(dump, at);
    if (head->id == RECORD_MOVE && head->size >= sizeof *head + sizeof(struct record_move))
        return take_move(dump, at);
    if (head->id == RECORD_LINES && head->size >= sizeof *head + sizeof(struct record_lines))
        jitdump_take_lines(dump, at);
    return true;
}

static bool jitdump_begin(struct jitdump *dump) {
    struct file_head head;
    if (!jitdump_read_at(dump, 0, &head, sizeof head) || head.magic != MAGIC ||
        head.version != VERSION || head.machine != ARCH_ELF_MACHINE || head.size < sizeof head ||
        head.size > PATH_MAX)
        return false;
    dump->at = head.size;
    return true;
}

/* Reads new records, each only if it is complete. */
static void jitdump_read_records(struct jitdump *dump, uint64_t end) {
    struct record_head head;
    for (int i = 0; i < READ_AT_ONCE && !dump->full; i++) {
        if (!jitdump_read_at(dump, dump->at, &head, sizeof head) || head.size < sizeof head ||
            head.size > end - dump->at || head.id == RECORD_CLOSE)
            return;
        dump->full = !jitdump_take(dump, &head) || dump->at > max_file;
        dump->at += head.size;
    }
}

void jitdump_init(struct jitdump *dump) {
    *dump = (struct jitdump){.file = -1};
}

static void forget_code(struct jitdump *dump) {
    code_map_free(&dump->ranges);
    free(dump->code);
    dump->code = NULL;
    dump->code_count = dump->code_room = 0;
    dump->at = dump->lines_at = 0;
    dump->full = false;
}

enum jitdump_result jitdump_read_file(struct jitdump *dump, int file) {
    struct stat status;
    jitdump_close_file(dump);
    dump->file = file;
    if (file < 0 || fstat(file, &status) != 0 || status.st_size < 0)
        return JITDUMP_NONE;
    const uint64_t end = (uint64_t)status.st_size;
    const bool restarted = dump->at == 0 || end < dump->at;
    if (restarted) {
        forget_code(dump);
        if (!jitdump_begin(dump))
            return JITDUMP_NONE;
    }
    const bool was_full = dump->full;
    jitdump_read_records(dump, end);
    if (dump->full && !was_full)
        return JITDUMP_EXCESS;
    return restarted ? JITDUMP_RESTARTED : JITDUMP_READ;
}

enum jitdump_result jitdump_read(struct jitdump *dump) {
    struct stat status;
    if (!dump->inode || !may_open_by_path())
        return JITDUMP_NONE;
    const int file = open(dump->path, OPEN_TO_READ);
    if (file >= 0 && fstat(file, &status) == 0 && trusted_file_is_own(&status) &&
        status.st_dev == dump->device && status.st_ino == dump->inode)
        return jitdump_read_file(dump, file);
    if (file >= 0)
        close(file);
    return JITDUMP_NONE;
}

/* --- one piece of code --- */

bool jitdump_find(struct jitdump *dump, uint64_t address, uint32_t *number) {
    return code_map_find(&dump->ranges, address, number);
}

bool jitdump_name(const struct jitdump *dump, uint32_t number,
                  char name[static MAX_GENERATED_NAME]) {
    if (dump->file < 0 || number >= dump->code_count)
        return false;
    const ssize_t size =
        pread(dump->file, name, MAX_GENERATED_NAME, (off_t)dump->code[number].name_at);
    if (size <= 0)
        return false;
    if (!memchr(name, 0, (size_t)size)) {
        if (size < MAX_GENERATED_NAME)
            return false;
        name[MAX_GENERATED_NAME - 1] = 0;
        name[utf8_cut(name, MAX_GENERATED_NAME - 1)] = 0;
    }
    return name[0] != 0;
}

/* Holds the lines of one piece, in memory. */
struct lines {
    const char *at;
    size_t left;
    const char *file; /* file of the previous entry */
};

/* Reads the next entry. The name "\xff" means the file of the previous entry. Returns false at the
 * end. */
static bool next_line(struct lines *lines, struct line_entry *entry) {
    if (lines->left <= sizeof *entry)
        return false;
    memcpy(entry, lines->at, sizeof *entry);
    const char *const file = lines->at + sizeof *entry;
    const char *const end = memchr(file, 0, lines->left - sizeof *entry);
    if (!end)
        return false;
    if (strcmp(file, "\xff") != 0)
        lines->file = file;
    lines->left -= (size_t)(end + 1 - lines->at);
    lines->at = end + 1;
    return true;
}

/* Checks the name, because V8 12 and older write file names from freed memory. */
static bool is_text(const char *file) {
    for (const char *at = file; *at; at += utf8_sequence(at))
        if (utf8_sequence(at) == 0 || (unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    return *file && strlen(file) < PATH_MAX;
}

/* Returns the line of the last entry that begins at `address` or before, and stores its file.
 * Returns 0 if there is none, or its file's name is no text. */
static int line_in(struct lines *lines, uint64_t count, uint64_t address,
                   char file[static PATH_MAX]) {
    struct line_entry entry;
    struct line_entry best = {0};
    const char *best_file = NULL;
    for (uint64_t i = 0; i < count && next_line(lines, &entry); i++) {
        if (entry.address > address || entry.address < best.address || !lines->file)
            continue;
        best = entry;
        best_file = lines->file;
    }
    if (!best_file || best.line > INT_MAX || !is_text(best_file))
        return 0;
    memcpy(file, best_file, strlen(best_file) + 1);
    return (int)best.line;
}

int jitdump_line(const struct jitdump *dump, uint32_t number, uint64_t address,
                 char file[static PATH_MAX]) {
    struct record_load load;
    struct record_lines head;
    const uint64_t at = number < dump->code_count ? dump->code[number].lines_at : 0;
    file[0] = 0;
    if (dump->file < 0 || !at ||
        !jitdump_read_at(dump, dump->code[number].name_at - sizeof load, &load, sizeof load))
        return 0;
    /* code that was moved has no lines, because they refer to its former place */
    if (address - load.address >= load.size || !jitdump_read_at(dump, at, &head, sizeof head))
        return 0;
    char *const bytes = malloc(MAX_LINES_BYTES);
    const ssize_t size =
        bytes ? pread(dump->file, bytes, MAX_LINES_BYTES, (off_t)(at + sizeof head)) : 0;
    struct lines lines = {.at = bytes, .left = size > 0 ? (size_t)size : 0};
    const int line = line_in(&lines, head.count, address, file);
    free(bytes);
    return line;
}

void jitdump_close_file(struct jitdump *dump) {
    if (dump->file >= 0)
        close(dump->file);
    dump->file = -1;
}

void jitdump_close(struct jitdump *dump) {
    jitdump_close_file(dump);
    forget_code(dump);
    jitdump_init(dump);
}
