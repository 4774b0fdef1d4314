/* Between libotelprof.so and libotelprof-cpp.so, which publishes the spans of C++ programs.
 *
 * libotelprof.so searches the loaded objects for the name by which the compiler calls
 * OpenTelemetry's storage of contexts (ThreadLocalContextStorage). Only where it is found is
 * libotelprof-cpp.so loaded: it looks for the storage's class by that name, and stands in front of
 * what the program calls of it. Everything here is called on the helper thread only.
 */
#ifndef OTELPROF_CPP_CONTEXT_H
#define OTELPROF_CPP_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

/* As the compiler writes the name of the class; the digit is the version of the API's ABI. */
#define CPP_STORAGE_NAME(abi) "N13opentelemetry2v" abi "7context25ThreadLocalContextStorageE"

/* What came of an object in which the name was found. */
enum cpp_outcome {
    CPP_NOT_LOOKED_AT, /* it is not loaded any more */
    CPP_FOLLOWED,      /* the spans that become active in it are published */
    CPP_NO_CLASS,      /* no class of that name: nothing to follow */
    CPP_UNKNOWN_SHAPE, /* the class is not as the API's headers make it */
    CPP_NOT_WRITABLE,  /* its table of functions cannot be made writable for a moment */
    CPP_TOO_MANY,      /* more objects have one than are followed */
};

/* An object in which the name was found. */
struct cpp_object {
    uintptr_t bias;           /* as the loader has it */
    uintptr_t name;           /* where */
    unsigned abi;             /* 1, 2 */
    enum cpp_outcome outcome; /* filled in */
    enum cpp_outcome said;    /* the caller's: what the log says of it */
};

/* Learns what is loaded now, follows the storages of `objects`, and publishes a process context
 * where the process has none. May be called again with what it follows already: nothing is done
 * twice. Takes the loader's lock. Context: the helper. */
typedef void cpp_context_look(struct cpp_object *objects, size_t count);

#define CPP_CONTEXT_LOOK_SYMBOL    "otelprof_cpp_look"
#define CPP_CONTEXT_RELEASE_SYMBOL "otelprof_cpp_release"

#endif
