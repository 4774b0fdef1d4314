/* Defines the interface between libotelprof.so and libotelprof-cpp.so, which publishes the spans of
 * C++ programs.
 *
 * libotelprof.so searches the loaded objects for the compiler's name of OpenTelemetry's class
 * ThreadLocalContextStorage. If it finds that name, it loads libotelprof-cpp.so, which finds the
 * class by the name and intercepts the program's calls of the class. Only the helper thread calls
 * the functions here.
 */
#ifndef OTELPROF_CPP_CONTEXT_H
#define OTELPROF_CPP_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

/* Makes the class name as the compiler writes it; `abi` is the version of the API's ABI. */
#define CPP_STORAGE_NAME(abi) "N13opentelemetry2v" abi "7context25ThreadLocalContextStorageE"

/* Lists the outcomes for an object in which the name was found. */
enum cpp_outcome {
    CPP_NOT_LOADED,    /* the object is no longer loaded */
    CPP_FOLLOWED,      /* the spans that become active in the object are published */
    CPP_NO_CLASS,      /* the object has no class of that name */
    CPP_UNKNOWN_SHAPE, /* the class differs from the one in the API's headers */
    CPP_NOT_WRITABLE,  /* the class's table of functions cannot be made writable */
    CPP_TOO_MANY,      /* there are more such objects than can be followed */
};

/* Describes an object in which the name was found. */
struct cpp_object {
    uintptr_t bias;           /* load bias, as the loader reports it */
    uintptr_t name;           /* address of the name */
    unsigned abi;             /* version of the ABI: 1, 2 */
    enum cpp_outcome outcome; /* filled in by the scan */
    enum cpp_outcome logged;  /* used by the caller: the outcome that was logged */
};

/* Reads the list of loaded objects, follows the storages of `objects`, and publishes a process
 * context if the process has none. Skips objects that it already follows. Takes the loader's lock.
 * Context: the helper. */
typedef void cpp_context_scan(struct cpp_object *objects, size_t count);

#define CPP_CONTEXT_SCAN_SYMBOL    "otelprof_cpp_scan"
#define CPP_CONTEXT_RELEASE_SYMBOL "otelprof_cpp_release"

#endif
