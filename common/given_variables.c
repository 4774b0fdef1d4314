#include "given_variables.h"

#include "hash.h"
#include "process_file.h"

#include <stddef.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1024 };

struct variable {
    char text[GIVEN_MOST];
    size_t length;
    uint64_t hash;
};

static void given_add(struct variable *variable, char c) {
    variable->hash = hash_word(variable->hash, (unsigned char)c);
    if (variable->length < GIVEN_MOST - 1)
        variable->text[variable->length++] = c;
}

static void given_finish(struct variable *variable, given_visit *visit, void *arg) {
    variable->text[variable->length] = 0;
    if (variable->length)
        visit(arg, variable->text, variable->hash);
    variable->length = 0;
    variable->hash = 0;
}

bool given_variables(pid_t pid, given_visit *visit, void *arg) {
    struct variable variable;
    char chunk[CHUNK_BYTES];
    ssize_t size;
    const int file = process_file_open(pid, "environ");
    if (file < 0)
        return false;
    variable.length = 0;
    variable.hash = 0;
    while ((size = read(file, chunk, sizeof chunk)) > 0)
        for (ssize_t i = 0; i < size; i++) {
            if (chunk[i])
                given_add(&variable, chunk[i]);
            else
                given_finish(&variable, visit, arg);
        }
    given_finish(&variable, visit, arg);
    process_file_close(file);
    return size == 0;
}
