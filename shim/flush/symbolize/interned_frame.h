/* Names frames that are not addresses (common/frame.h). Context: flush. */
#ifndef OTELPROF_INTERNED_FRAME_H
#define OTELPROF_INTERNED_FRAME_H

#include "harvest.h"
#include "symbolize.h"

struct interned_frame {
    struct symbol_line line;
    const char *type; /* profile.frame.type */
};

/* Names a frame. Returns false if the frame is an address, or is unknown and so counts as an
 * address. The strings belong to capture, and are valid until the next harvest. */
bool interned_frame_find(const struct capture_api *api, uint64_t frame,
                         struct interned_frame *found);

#endif
