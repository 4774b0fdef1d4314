#include "generated_name.h"

#include <limits.h>
#include <string.h>

/* Holds a part of a text. */
struct part {
    const char *at;
    size_t size;
};

static const char *kept(struct arena *arena, struct part part) {
    const char *const copy = part.size ? arena_copy(arena, part.at, part.size) : NULL;
    return copy ? copy : "";
}

static struct part whole(const char *text) {
    return (struct part){text, strlen(text)};
}

static struct part between(const char *start, const char *end) {
    return (struct part){start, (size_t)(end - start)};
}

/* Returns the text behind `prefix`, or NULL. */
static const char *behind(const char *text, const char *prefix) {
    const size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static void set_function(struct arena *arena, struct generated_name *name, struct part function,
                         const char *type) {
    if (function.size)
        name->line.function = kept(arena, function);
    name->type = type;
}

/* Removes a decimal number at the part's end, and the colon before it. Returns the number; -1:
 * there is none. */
static int generated_take_number(struct part *part) {
    size_t digits = 0;
    long value = 0;
    while (digits < part->size && digits < 9) {
        const char digit = part->at[part->size - 1 - digits];
        if (digit < '0' || digit > '9')
            break;
        digits++;
    }
    if (digits == 0 || digits >= part->size || part->at[part->size - 1 - digits] != ':')
        return -1;
    for (size_t i = part->size - digits; i < part->size; i++)
        value = 10 * value + (part->at[i] - '0');
    part->size -= digits + 1;
    return (int)value;
}

/* --- V8 --- */

/* Lists V8's prefixes of functions. Source: v8's logging/code-events.h. */
static const char *const v8_functions[] = {
    "JS:", "LazyCompile:", "Function:", "Script:", "Eval:", "InterpretedFunction:"};
static const char *const v8_others[] = {"Builtin:", "BytecodeHandler:", "RegExp:"};

/* Finds the file. A function's name may have blanks ("get size"), and so may a path, so the path is
 * found by its beginning. */
static const char *v8_file(const char *text) {
    static const char *const beginnings[] = {"/", "file:", "node:", "http:", "https:", "ext:"};
    for (const char *blank = strchr(text, ' '); blank; blank = strchr(blank + 1, ' '))
        for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
            if (behind(blank + 1, beginnings[i]))
                return blank;
    return strchr(text, ' ');
}

/* Reads "*sum /app/a.js:3:10": the tier, the name if it has one, the place where it begins. */
static void read_v8_function(struct arena *arena, const char *text, struct generated_name *name) {
    /* The tier is "*" or, for one context alone, "*'". A quote there is no part of the name,
     * because no name begins with one. */
    const char *const tier = *text && strchr("~^+*", *text) ? text + 1 : text;
    const char *const function = tier > text && *tier == '\'' ? tier + 1 : tier;
    const char *const blank = v8_file(function);
    const struct part part = blank ? between(function, blank) : whole(function);
    name->line.function = "(anonymous)"; /* uses the name that V8's own profiler uses */
    set_function(arena, name, part, "v8js");
    if (!blank)
        return;
    const char *const path = behind(blank + 1, "file://");
    struct part file = whole(path ? path : blank + 1);
    const int column = generated_take_number(&file);
    const int line = generated_take_number(&file);
    name->line.start_line = line >= 0 ? line : column >= 0 ? column : 0;
    name->line.file = kept(arena, file);
}

static bool is_v8(struct arena *arena, const char *text, struct generated_name *name) {
    for (size_t i = 0; i < sizeof v8_functions / sizeof *v8_functions; i++) {
        const char *const rest = behind(text, v8_functions[i]);
        if (rest)
            read_v8_function(arena, rest, name);
        if (rest)
            return true;
    }
    for (size_t i = 0; i < sizeof v8_others / sizeof *v8_others; i++) {
        if (!behind(text, v8_others[i]))
            continue;
        set_function(arena, name, whole(text), "v8js");
        return true;
    }
    return false;
}

/* --- others with a prefix --- */

/* Recognizes CPython's form, in which a qualified name has no colon. */
static bool is_cpython(struct arena *arena, const char *text, struct generated_name *name) {
    const char *const function = behind(text, "py::");
    const char *const colon = function ? strchr(function, ':') : NULL;
    if (!colon)
        return false;
    set_function(arena, name, between(function, colon), "cpython");
    name->line.file = kept(arena, whole(colon + 1));
    return true;
}

static bool is_beam(struct arena *arena, const char *text, struct generated_name *name) {
    const char *const function = behind(text, "$");
    const char *const colon = function ? strchr(function, ':') : NULL;
    if (!colon || colon == function ||
        /* another colon (before a stub's name) or a slash must follow */
        (colon[1] != ':' && !strchr(colon, '/')))
        return false;
    set_function(arena, name, whole(function), "beam");
    return true;
}

/* Accepts "JIT$pay", "TRACE-7$pay$12", where 7 is the trace's number and 12 its first line; or
 * "JIT$$assign_cv", which belongs to no function. */
static bool is_php(struct arena *arena, const char *text, struct generated_name *name) {
    const char *const compiled = behind(text, "JIT$");
    const char *const trace = behind(text, "TRACE-");
    const char *const trace_name = trace ? strchr(trace, '$') : NULL;
    const char *const start = compiled ? compiled : trace_name ? trace_name + 1 : NULL;
    if (!start)
        return false;
    const char *const end = trace ? strrchr(start, '$') : NULL;
    const struct part part = end ? between(start, end) : whole(*start == '$' ? text : start);
    const bool is_file = *part.at == '/';
    set_function(arena, name, is_file ? whole("{main}") : part, "php");
    if (is_file)
        name->line.file = kept(arena, part);
    return true;
}

/* --- those with signatures --- */

/* Accepts "void [Shop] Shop.Bank::Pay(int)[Tier1]". */
static bool is_dotnet(struct arena *arena, const char *text, struct generated_name *name) {
    const char *const assembly = strchr(text, '[');
    const char *const end = assembly ? strstr(assembly, "] ") : NULL;
    const char *const type = end ? end + 2 : NULL;
    const char *const method = type ? strstr(type, "::") : NULL;
    const char *const parameters = method ? strchr(method, '(') : NULL;
    const char *const tier = parameters ? strrchr(parameters, '[') : NULL;
    if (!parameters)
        return false;
    const bool tiered = tier > parameters && tier[-1] == ')' && text[strlen(text) - 1] == ']';
    name->line.system_name = kept(arena, tiered ? between(text, tier) : whole(text));
    set_function(arena, name, between(type, parameters), "dotnet");
    return true;
}

/* Accepts "Lshop/Bank;::pay(J)V", or the same without the signature. */
static bool is_descriptor(struct arena *arena, const char *text, struct generated_name *name) {
    const char *const class = behind(text, "L");
    const char *const end = class ? strstr(class, ";::") : NULL;
    if (!end)
        return false;
    const char *const method = end + strlen(";::");
    const size_t class_size = (size_t)(end - class);
    const size_t method_size = strcspn(method, "(");
    char *const function = arena_take(arena, class_size + 1 + method_size + 1);
    name->line.system_name = kept(arena, whole(text));
    name->type = "jvm";
    if (!function)
        return true;
    for (size_t i = 0; i < class_size; i++)
        function[i] = class[i] == '/' ? '.' : class[i];
    function[class_size] = '.';
    memcpy(function + class_size + 1, method, method_size);
    name->line.function = function;
    return true;
}

/* Reads "int shop.Bank.pay(long)"; any other text names code of the virtual machine. */
static void read_hotspot(struct arena *arena, const char *text, struct generated_name *name) {
    const char *const end = strchr(text, '(');
    const char *start = end;
    while (start && start > text && start[-1] != ' ')
        start--;
    if (!end || text[strlen(text) - 1] != ')' || start == end || start == text) {
        set_function(arena, name, whole(text), "jvm");
        return;
    }
    set_function(arena, name, between(start, end), "jvm");
    name->line.system_name = kept(arena, whole(text));
}

void generated_name_read(struct arena *arena, const char *text, enum runtime runtime,
                         struct generated_name *name) {
    *name = (struct generated_name){
        .line = {.function = "[anonymous]", .system_name = "", .file = ""}, .type = "native"};
    if (is_v8(arena, text, name) || is_cpython(arena, text, name) || is_beam(arena, text, name) ||
        is_php(arena, text, name) || is_dotnet(arena, text, name) ||
        is_descriptor(arena, text, name))
        return;
    if (runtime == RUNTIME_JVM) {
        read_hotspot(arena, text, name);
        return;
    }
    set_function(arena, name, whole(text), runtime == RUNTIME_BEAM ? "beam" : "native");
    if (runtime == RUNTIME_BEAM)
        return;
    name->line.system_name = name->line.function;
}
