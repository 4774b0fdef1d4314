#define OTELPROF_IMPLEMENTATION
#include "otelprof.h"

#include "process/eligibility/ineligible.h"

const char *otelprof_version(void) {
    return profiler_version;
}
