#include "config_file.h"

#include "config_names.h"
#include "sentence.h"
#include "setting_line.h"

#include <stdint.h>
#include <string.h>

struct reader {
    const char *file;
    char *text; /* the whole text; entries are written over their lines */
    struct config_lines *lines;
    uint64_t number; /* number of the line, from 1 on */
    unsigned wrong;
    config_warn *warn;
    void *arg;
};

/* --- warnings --- */

/* Refuses a line. `name` is the setting that the warning names; size 0: no name. */
static void config_file_refuse(struct reader *reader, struct part name, const char *why) {
    struct sentence sentence = {.length = 0};
    if (reader->wrong++ > CONFIG_WRONG_MOST)
        return;
    sentence_add(&sentence, reader->file);
    if (reader->wrong > CONFIG_WRONG_MOST) {
        sentence_add(&sentence, " has more such lines; they are ignored");
        reader->warn(reader->arg, sentence.text);
        return;
    }
    sentence_add(&sentence, ", line ");
    sentence_add_number(&sentence, reader->number);
    if (name.size) {
        sentence_add(&sentence, ": ");
        sentence_add_value(&sentence, name.at, name.size);
    }
    sentence_add(&sentence, " ");
    sentence_add(&sentence, why);
    sentence_add(&sentence, "; the line is ignored");
    reader->warn(reader->arg, sentence.text);
}

/* --- a line and its parts --- */

/* Returns true if the line has a control character other than a tab: a NUL would end the entry. */
static bool has_control_character(struct part line) {
    for (size_t i = 0; i < line.size; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == '\x7f')
            return true;
    return false;
}

/* Removes the quotes from `value`. Returns NULL, or the reason why the quotes are wrong. */
static const char *unquote(struct part *value) {
    const char quote = value->size ? *value->at : 0;
    if (quote != '"' && quote != '\'')
        return value->size && value->at[value->size - 1] == '\\'
                   ? "ends in a backslash, and lines are not continued"
                   : NULL;
    const char *const end = memchr(value->at + 1, quote, value->size - 1);
    if (!end)
        return "has a quote that is not closed";
    if (end != value->at + value->size - 1)
        return "has something behind the closing quote";
    value->at++;
    value->size -= 2;
    return NULL;
}

/* Writes "KEY=VALUE" over its line, which is at least as long. */
static void config_file_keep(struct reader *reader, struct part key, struct part value) {
    char *const entry = reader->text + (key.at - reader->text);
    char *const at = entry + key.size;
    *at = '=';
    /* copies by a loop, because musl has no __memmove_chk */
    for (size_t i = 0; i < value.size; i++)
        at[1 + i] = value.at[i];
    at[1 + value.size] = 0;
    reader->lines->entries[reader->lines->count++] = entry;
}

static void config_file_read_line(struct reader *reader, struct part line) {
    static const struct part nothing = {NULL, 0};
    struct part key;
    struct part value;
    if (setting_is_nothing(line))
        return;
    const bool has_equals = setting_split(line, &key, &value);
    const char *wrong;
    if (line.size > CONFIG_LINE_MOST)
        config_file_refuse(reader, nothing, "is longer than 4096 bytes");
    else if (has_control_character(line))
        config_file_refuse(reader, nothing, "has a control character");
    else if (!has_equals)
        config_file_refuse(reader, nothing, "is not KEY=VALUE");
    else if (!config_names_have(key.at, key.size))
        config_file_refuse(reader, key, "is no setting of the profiler");
    else if ((wrong = unquote(&value)))
        config_file_refuse(reader, key, wrong);
    else if (reader->lines->count == reader->lines->most)
        config_file_refuse(reader, key, "is one setting more than can be kept");
    else
        config_file_keep(reader, key, value);
}

static void turn_round(const char **entries, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        const char *const entry = entries[i];
        entries[i] = entries[count - 1 - i];
        entries[count - 1 - i] = entry;
    }
}

void config_file_parse(char *text, size_t size, const char *file, struct config_lines *lines,
                       config_warn *warn, void *arg) {
    struct reader reader = {.file = file, .text = text, .lines = lines, .warn = warn, .arg = arg};
    char *const end = text + size;
    const size_t before = lines->count;
    while (text < end) {
        char *const feed = memchr(text, '\n', (size_t)(end - text));
        char *const line_end = feed ? feed : end;
        reader.number++;
        config_file_read_line(&reader, setting_line(text, (size_t)(line_end - text)));
        text = line_end + 1;
    }
    turn_round(lines->entries + before, lines->count - before);
}
