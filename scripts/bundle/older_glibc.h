/* Has the exporter's own files call the functions that every glibc has. The bundle's build includes
 * it before each of them. Headers of glibc 2.38 and newer rename those that read numbers (sscanf to
 * __isoc23_sscanf) by the macros below, which <features.h> sets once. _GNU_SOURCE is on the command
 * line, so no file depends on being the first to include it. */
#ifndef OTELPROF_OLDER_GLIBC_H
#define OTELPROF_OLDER_GLIBC_H

#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL /* 2.38 to 2.40 */
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL /* 2.41 and newer */
#define __GLIBC_USE_C23_STRTOL 0

#endif
