#include "interned_frame.h"

bool interned_frame_find(const struct capture_api *api, uint64_t frame,
                         struct interned_frame *found) {
    struct named_frame named;
    if (frame_is_address(frame) || !api->harvest.name_frame(frame, &named))
        return false;
    const char *const function = named.function[0] ? named.function : "[anonymous]";
    found->line = (struct symbol_line){.function = function,
                                       .system_name = "",
                                       .file = named.file,
                                       .line = named.line,
                                       .start_line = named.start_line};
    found->type = named.type;
    return true;
}
