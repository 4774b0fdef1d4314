#include "origin.h"

#include "working_directory.h"

#include <unistd.h>

void origin_remember(struct origin *origin) {
    *origin = (struct origin){.folder = ""};
    (void)working_directory(origin->folder, sizeof origin->folder);
    origin->output = file_identity_of(STDOUT_FILENO);
}

bool origin_output_is_unchanged(const struct origin *origin) {
    return file_identity_is(&origin->output, STDOUT_FILENO);
}
