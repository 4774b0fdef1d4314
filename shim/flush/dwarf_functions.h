/* Which function of a file an address lies in, by its debug information.
 *
 * libdw looks through a unit's entries from the beginning for each address, and not into those of
 * namespaces, where clang and rustc put functions. Here a unit is gone through once, when the first
 * address in it is asked for. Context: flush.
 */
#ifndef OTELPROF_DWARF_FUNCTIONS_H
#define OTELPROF_DWARF_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct dwarf_functions;

/* Of a file that stays open for longer. NULL: no memory. */
struct dwarf_functions *dwarf_functions_open(Dwarf *dwarf);

/* Gives the unit around the ELF virtual `address`. false: the debug information does not cover it.
 */
bool dwarf_functions_unit(struct dwarf_functions *functions, uint64_t address, Dwarf_Die *unit);

/* Gives the function of `unit` around the address: its entry with code, not the one that it was
 * declared by. false: there is none, or no memory. */
bool dwarf_functions_find(struct dwarf_functions *functions, Dwarf_Die *unit, uint64_t address,
                          Dwarf_Die *function);

/* NULL: nothing is done. */
void dwarf_functions_close(struct dwarf_functions *functions);

#endif
