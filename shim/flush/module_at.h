/* Which object an address of a sample belongs to. */
#ifndef OTELPROF_MODULE_AT_H
#define OTELPROF_MODULE_AT_H

#include "harvest.h"

/* The object whose code holds `address`, or NULL. An object that was unloaded since the harvest
 * before the last may share its addresses with another that came after it; then nobody can say
 * which of the two was running, and neither is named. */
const struct harvest_module *module_at(const struct harvest_module *modules, size_t count,
                                       uint64_t address);

#endif
