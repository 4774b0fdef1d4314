/* Finds the CA certificates by which a receiver's certificate is checked. Context: flush. */
#ifndef OTELPROF_AUTHORITIES_H
#define OTELPROF_AUTHORITIES_H

#include "config.h"

/* Returns the file that the settings name, else libcurl's default file, else (if libcurl was built
 * without one) the first existing file of those that distributions use. Returns NULL if libcurl has
 * a folder of its own or no file exists. The result is not to be freed. */
const char *authorities_file(const struct config *config);

#endif
