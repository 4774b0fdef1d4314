/* Finds the object that an address of a sample belongs to. */
#ifndef OTELPROF_MODULE_AT_H
#define OTELPROF_MODULE_AT_H

#include "harvest.h"

/* Returns the object whose code held `address` in `interval`, or NULL. During the interval two
 * objects, or one and unknown code, may have been there one after the other: then it is unknown
 * which was running, and NULL is returned. */
const struct harvest_module *module_at(const struct harvest_module *modules, size_t count,
                                       uint64_t address, uint64_t interval);

/* Does the same for any address of an object, its data included. */
const struct harvest_module *module_holding(const struct harvest_module *modules, size_t count,
                                            uint64_t address, uint64_t interval);

#endif
