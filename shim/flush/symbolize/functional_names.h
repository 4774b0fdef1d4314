/* Makes readable names of OCaml's and Haskell's symbols. Both schemes escape single characters; a
 * name that follows neither scheme stays unchanged.
 *
 * OCaml (asmcomp/compilenv.ml, middle_end's Symbol): `caml`, the module with its inner modules
 * separated by `__` (or `.` since 5.1), then `.` or `__`, the function and `_` with a stamp. `$`
 * and two hexadecimal digits are a character. Haskell: the Z-encoding of GHC.Utils.Encoding; the
 * package (none for Main), the module, the function and the kind of code, separated by `_`.
 * Context: flush. */
#ifndef OTELPROF_FUNCTIONAL_NAMES_H
#define OTELPROF_FUNCTIONAL_NAMES_H

#include "name_text.h"

/* Decide by the name alone. Return false if it is no name of that language; then `readable` must
 * not be used. */
bool ocaml_name(const char *name, struct name_text *readable);
bool haskell_name(const char *name, struct name_text *readable);

#endif
