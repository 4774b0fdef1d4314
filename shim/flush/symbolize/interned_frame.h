/* What a frame stands for that is no address (common/frame.h).
 * Context: flush.
 */
#ifndef OTELPROF_INTERNED_FRAME_H
#define OTELPROF_INTERNED_FRAME_H

#include "harvest.h"
#include "symbolize.h"

struct interned_frame {
    struct symbol_line line;
    const char *type; /* profile.frame.type */
};

/* false: it is an address, or nobody knows it, and it has to be taken for one. The strings are
 * capture's, until the next harvest. */
bool interned_frame_find(const struct capture_api *api, uint64_t frame,
                         struct interned_frame *found);

#endif
