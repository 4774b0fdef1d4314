#include "emulated_program.h"

#include "glob.h"

#include <stdbool.h>
#include <string.h>

static bool is_one_of(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Returns false for qemu-system-ARCH, qemu-img and others of the family, which emulate no
 * program. */
bool emulates_a_program(const char *executable) {
    static const char family[] = "qemu-";
    static const char *const guests[] = {
        "aarch64",      "aarch64_be", "alpha",  "arm",      "armeb",       "cris",
        "hexagon",      "hppa",       "i386",   "m68k",     "loongarch64", "microblaze",
        "microblazeel", "mips",       "mips64", "mips64el", "mipsel",      "mipsn32",
        "mipsn32el",    "nios2",      "or1k",   "ppc",      "ppc64",       "ppc64le",
        "riscv32",      "riscv64",    "s390x",  "sh4",      "sh4eb",       "sparc",
        "sparc32plus",  "sparc64",    "x86_64", "xtensa",   "xtensaeb",
    };
    const char *const name = glob_base_name(executable);
    return strncmp(name, family, sizeof family - 1) == 0 &&
           is_one_of(guests, sizeof guests / sizeof *guests, name + sizeof family - 1);
}

/* Returns true if the option takes no argument; all other options take the next argument. */
static bool is_option_alone(const char *option) {
    static const char *const alone[] = {
        "h",       "help",    "strace",  "singlestep",      "one-insn-per-tb",
        "perfmap", "jitdump", "version", "xtensa-abi-call0"};
    return is_one_of(alone, sizeof alone / sizeof *alone, option);
}

static const char *next_argument(const char *argument, const char *end) {
    const char *const next = argument + strnlen(argument, (size_t)(end - argument)) + 1;
    return next < end ? next : end;
}

const char *emulated_program(const char *executable, const char *arguments, size_t size) {
    const char *const end = arguments + size;
    if (size == 0 || end[-1] != 0 || !emulates_a_program(executable))
        return NULL;
    const char *argument = next_argument(arguments, end);
    while (argument < end && argument[0] == '-') {
        const char *const option = argument + 1 + (argument[1] == '-');
        argument = next_argument(argument, end);
        if (!*option) /* "-" or "--" ends the options */
            break;
        if (!is_option_alone(option) && argument < end)
            argument = next_argument(argument, end);
    }
    return argument < end && *argument ? argument : NULL;
}
