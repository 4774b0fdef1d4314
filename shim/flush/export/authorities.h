/* Where the certificates of the authorities are that a receiver's is checked against.
 * Context: flush. */
#ifndef OTELPROF_AUTHORITIES_H
#define OTELPROF_AUTHORITIES_H

#include "config.h"

/* The file that the settings name, or libcurl's own, or, where libcurl was built without one, the
 * first that is there of those that distributions use. NULL: libcurl has a folder of its own, or
 * there is no file. Not to be freed. */
const char *authorities_file(const struct config *config);

#endif
