/* Fuzzes a configuration file. Whatever is in it, reading it ends, and gives settings that have
 * names, attributes that fit their set, and complaints that name a line. A text without a dollar
 * sign has no reference in it. Input: the file. */
#include "budget.h"
#include "declare/declared_values.h"
#include "fuzz.h"

/* Bounds memory by the file's size, and CPU time: libyaml searches all anchors for each. */
enum { FIXED_BYTES = 1 << 20, BYTES_EACH = 4096 };

static const char *look_up(const char *name) {
    promise(*name && !strpbrk(name, "${}: \n"));
    return strlen(name) % 2 ? "${NAME} value" : NULL;
}

static void check_setting(const struct declared_setting_value *setting) {
    const char *const equals = strchr(setting->text, '=');
    promise(setting->line >= 1);
    promise(strncmp(setting->text, "OTEL_", 5) == 0);
    promise(equals && equals > setting->text + 5);
}

static void check_attribute(const struct attribute *attribute) {
    promise(*attribute->key);
    promise(attribute->value.kind != ATTRIBUTE_TEXT || attribute->value.text);
}

static void check_complaints(const struct complaints *complaints) {
    const size_t kept = complaints->count < MAX_COMPLAINTS ? complaints->count : MAX_COMPLAINTS;
    for (size_t i = 0; i < kept; i++) {
        promise(complaints->items[i].line >= 1);
        promise(complaints->items[i].what && *complaints->items[i].what);
        promise(memchr(complaints->items[i].subject, 0, SUBJECT_BYTES));
    }
}

static void check_file(const char *text, size_t size) {
    struct declared_values *const values = calloc(1, sizeof *values);
    promise(values);
    const struct budget budget = budget_begin(5, FIXED_BYTES + BYTES_EACH * size);
    declared_values_read(text, size, look_up, values);
    budget_end(&budget);
    for (size_t i = 0; i < values->count; i++)
        check_setting(&values->settings[i]);
    for (size_t i = 0; i < values->attributes.count; i++)
        check_attribute(&values->attributes.items[i]);
    check_complaints(&values->complaints);
    declared_values_free(values);
    attributes_clear(&values->attributes);
    free(values);
}

/* Checks that the result is no longer than the text: no variable's value is longer than a reference
 * to it. */
static void check_substitution(const char *text, size_t size) {
    char *const out = malloc(size * 8 + 1);
    promise(out);
    const enum substitution done = substitute(text, look_up, out, size * 8 + 1);
    promise(done != SUBSTITUTION_TOO_LONG);
    promise(strchr(text, '$') || (done == SUBSTITUTED && strcmp(text, out) == 0));
    promise(strlen(text) == 0 || substitute(text, look_up, out, 1) != SUBSTITUTED || !*out);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    uint8_t *const file = take_rest(&input, &size);
    check_file((const char *)file, size);
    free(file);
    input = (struct input){data, size};
    char *const text = take_text(&input, 0);
    check_substitution(text, strlen(text));
    free(text);
    return 0;
}
