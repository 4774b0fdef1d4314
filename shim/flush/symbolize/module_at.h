/* Which object an address of a sample belongs to. */
#ifndef OTELPROF_MODULE_AT_H
#define OTELPROF_MODULE_AT_H

#include "harvest.h"

/* The object whose code held `address` in `interval`, or NULL. Two may have taken turns in it, or
 * somebody unknown: then nobody can say which was running, and none is named. */
const struct harvest_module *module_at(const struct harvest_module *modules, size_t count,
                                       uint64_t address, uint64_t interval);

/* The same of any address of an object's, its data included. */
const struct harvest_module *module_holding(const struct harvest_module *modules, size_t count,
                                            uint64_t address, uint64_t interval);

#endif
