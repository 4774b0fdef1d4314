#include "function_names.h"

#include "glob.h"
#include "redact.h"
#include "symbolize/generated_name.h"
#include "symbolize/interned_frame.h"
#include "symbolize/module_at.h"

#include <stdio.h>

static void function_names_put(char name[static FUNCTION_NAME_BYTES], const char *text) {
    snprintf(name, FUNCTION_NAME_BYTES, "%s", text);
}

size_t function_names(const struct capture_api *api, struct symbolizer *symbolizer, uint64_t frame,
                      uint64_t interval, char names[static MAX_SYMBOL_LINES][FUNCTION_NAME_BYTES]) {
    struct symbol_line lines[MAX_SYMBOL_LINES];
    const struct harvest_module *modules;
    const char *const redact = api->config->redact;
    struct interned_frame interned;
    struct generated_name generated;
    if (interned_frame_find(api, frame, &interned)) {
        redact_line(redact, &interned.line);
        function_names_put(names[0], interned.line.function);
        return 1;
    }
    const size_t count = api->harvest.modules(&modules);
    const struct harvest_module *const module = module_at(modules, count, frame, interval);
    if (!module && symbolizer_generated(symbolizer, modules, count, frame, &generated)) {
        redact_line(redact, &generated.line);
        function_names_put(names[0], generated.line.function);
        return 1;
    }
    if (!module) {
        function_names_put(names[0], "[anonymous]");
        return 1;
    }
    const size_t depth = symbolizer_lines(symbolizer, module, frame, lines, MAX_SYMBOL_LINES);
    for (size_t i = 0; i < depth; i++) {
        redact_line(redact, &lines[i]);
        function_names_put(names[i], lines[i].function);
    }
    if (depth)
        return depth;
    /* uses one name for all unnamed code of a module, because an address would not help a reader */
    const char *const name = glob_base_name(redact_path(redact, module->path));
    snprintf(names[0], FUNCTION_NAME_BYTES, name[0] == '[' ? "%s" : "[%s]", name);
    return 1;
}
