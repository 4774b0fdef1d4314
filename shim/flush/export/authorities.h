/* Finds the CA certificates by which a receiver's certificate is checked. Context: flush. */
#ifndef OTELPROF_AUTHORITIES_H
#define OTELPROF_AUTHORITIES_H

#include "config.h"

/* Returns the file that the settings name, else libcurl's default file, else (if libcurl was built
 * with neither a default file nor a default folder) the first of the distributions' usual files
 * that can be read. Returns NULL if libcurl has only a default folder, if none of the usual files
 * can be read, or if no file may be opened by its path any more. The caller must not free the
 * result. */
const char *authorities_file(const struct config *config);

#endif
