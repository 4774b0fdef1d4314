/* Makes readable names of D's symbols (the D specification, "Application Binary Interface", Name
 * Mangling). A name has the modules, types and function, without parameters; arguments of templates
 * are `!(...)`. Back references into types are not followed, so a name never becomes longer than
 * its parts. Context: flush. */
#ifndef OTELPROF_D_NAME_H
#define OTELPROF_D_NAME_H

#include "name_text.h"

/* Makes the name readable. Returns false if `name` follows another scheme, or is too long or too
 * deeply nested; `readable` must then not be used. */
bool d_name(const char *name, struct name_text *readable);

#endif
