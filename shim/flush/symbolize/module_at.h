/* Finds the object that an address of a sample belongs to. */
#ifndef OTELPROF_MODULE_AT_H
#define OTELPROF_MODULE_AT_H

#include "harvest.h"

/* Returns the object whose code held `address` in `interval`, or NULL. Returns NULL, too, if in
 * that interval two objects, or an object and unknown code, may have been there one after the
 * other. */
const struct harvest_module *module_at(const struct harvest_module *modules, size_t count,
                                       uint64_t address, uint64_t interval);

/* Returns the object that held `address` in `interval`, as code or data, or NULL as module_at()
 * does. */
const struct harvest_module *module_holding(const struct harvest_module *modules, size_t count,
                                            uint64_t address, uint64_t interval);

#endif
