/* Defines the interface between libotelprof.so and libotelprof-cpp.so, which publishes the spans of
 * C++ programs.
 *
 * libotelprof.so searches the loaded objects for the compiler's name of OpenTelemetry's class
 * ThreadLocalContextStorage. Only if it finds one it loads libotelprof-cpp.so, which finds the
 * class by that name and intercepts the program's calls of it. Everything here is called on the
 * helper thread only.
 */
#ifndef OTELPROF_CPP_CONTEXT_H
#define OTELPROF_CPP_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

/* The class name as the compiler writes it; the digit is the version of the API's ABI. */
#define CPP_STORAGE_NAME(abi) "N13opentelemetry2v" abi "7context25ThreadLocalContextStorageE"

/* The outcome for an object in which the name was found. */
enum cpp_outcome {
    CPP_NOT_LOADED,    /* it is no longer loaded */
    CPP_FOLLOWED,      /* the spans that become active in it are published */
    CPP_NO_CLASS,      /* it has no class of that name */
    CPP_UNKNOWN_SHAPE, /* the class differs from the one in the API's headers */
    CPP_NOT_WRITABLE,  /* its table of functions cannot be made writable for a moment */
    CPP_TOO_MANY,      /* there are more such objects than can be followed */
};

/* An object in which the name was found. */
struct cpp_object {
    uintptr_t bias;           /* as the loader has it */
    uintptr_t name;           /* its address */
    unsigned abi;             /* 1, 2 */
    enum cpp_outcome outcome; /* filled in */
    enum cpp_outcome logged;  /* the caller's: the outcome that was logged */
};

/* Reads the list of loaded objects, follows the storages of `objects`, and publishes a process
 * context if the process has none. May be called again with objects that it follows already: it
 * skips them. Takes the loader's lock. Context: the helper. */
typedef void cpp_context_scan(struct cpp_object *objects, size_t count);

#define CPP_CONTEXT_SCAN_SYMBOL    "otelprof_cpp_scan"
#define CPP_CONTEXT_RELEASE_SYMBOL "otelprof_cpp_release"

#endif
