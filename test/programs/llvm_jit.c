/* Runs code that LLVM's MCJIT makes at run time, which keeps no frame pointers, and returns to C
 * from it.
 *
 * usage: llvm_jit LIBLLVM ROUNDS MILLISECONDS [bare]
 *
 * Each round makes the code again and drops the last; in each the C++ runtime's own unwinder must
 * get through the code, too. The time is that of all rounds. With `bare` one of the two functions
 * has no unwind tables: the runtime's unwinder ends there.
 *
 * flags: -rdynamic -D_GNU_SOURCE
 */
#include "cpu_work.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

/* jit_outer calls jit_inner, which calls from_jit. Both use rbp for other values; a bare function
 * puts 0 there, as at a stack's end. */
static const char code_format[] =
    "declare void @from_jit(i64)\n"
    "define i64 @jit_inner(i64 %%n) noinline %s {\n"
    "  call void asm sideeffect \"movl $$%d, %%ebp\", \"~{rbp},~{rbx},~{r12}\"()\n"
    "  call void @from_jit(i64 %%n)\n"
    "  ret i64 %%n\n"
    "}\n"
    "define i64 @jit_outer(i64 %%n) noinline uwtable {\n"
    "  call void asm sideeffect \"movl $$30583, %%ebp\", \"~{rbp},~{rbx}\"()\n"
    "  %%m = call i64 @jit_inner(i64 %%n)\n"
    "  %%k = add i64 %%m, 1\n"
    "  ret i64 %%k\n"
    "}\n";

/* --- the needed part of LLVM's C API: its pointers refer to its own types --- */

#define LLVM(X)                                                                                    \
    X(void *, LLVMContextCreate, (void))                                                           \
    X(void *, LLVMCreateMemoryBufferWithMemoryRangeCopy, (const char *, size_t, const char *))     \
    X(int, LLVMParseIRInContext, (void *, void *, void **, char **))                               \
    X(void, LLVMLinkInMCJIT, (void))                                                               \
    X(void, LLVMInitializeX86TargetInfo, (void))                                                   \
    X(void, LLVMInitializeX86Target, (void))                                                       \
    X(void, LLVMInitializeX86TargetMC, (void))                                                     \
    X(void, LLVMInitializeX86AsmPrinter, (void))                                                   \
    X(void, LLVMInitializeX86AsmParser, (void))                                                    \
    X(int, LLVMCreateMCJITCompilerForModule, (void **, void *, void *, size_t, char **))           \
    X(void *, LLVMGetNamedFunction, (void *, const char *))                                        \
    X(void, LLVMAddGlobalMapping, (void *, void *, void *))                                        \
    X(uint64_t, LLVMGetFunctionAddress, (void *, const char *))                                    \
    X(void, LLVMDisposeExecutionEngine, (void *))

#define DECLARE(result, name, parameters) static result(*name) parameters;
LLVM(DECLARE)

static void load(const char *library) {
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        puts(dlerror());
        exit(2);
    }
#define LOAD(result, name, parameters) *(void **)&name = dlsym(handle, #name);
    LLVM(LOAD)
    LLVMLinkInMCJIT();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
}

/* --- the return from the code --- */

static int frames_to_main = -1;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *count) {
    Dl_info info;
    const int number = (*(int *)count)++;
    if (dladdr((void *)_Unwind_GetIP(context), &info) && info.dli_sname &&
        strcmp(info.dli_sname, "run_jit") == 0)
        frames_to_main = number;
    return _URC_NO_REASON;
}

__attribute__((noipa)) void from_jit(int64_t milliseconds) {
    int count = 0;
    _Unwind_Backtrace(look, &count);
    WORK_FOR((uint64_t)milliseconds * NS_PER_MS);
}

__attribute__((noipa)) int64_t run_jit(uint64_t address, int64_t milliseconds) {
    int64_t (*outer)(int64_t);
    memcpy(&outer, &address, sizeof outer);
    return outer(milliseconds) + 1;
}

static void *make(uint64_t *outer, bool bare) {
    char code[sizeof code_format + 64];
    snprintf(code, sizeof code, code_format, bare ? "nounwind" : "uwtable", bare ? 0 : 30583);
    void *const context = LLVMContextCreate();
    void *const buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(code, strlen(code), "code");
    void *module = NULL;
    void *engine = NULL;
    char *message = NULL;
    if (LLVMParseIRInContext(context, buffer, &module, &message) ||
        LLVMCreateMCJITCompilerForModule(&engine, module, NULL, 0, &message)) {
        puts(message);
        exit(2);
    }
    LLVMAddGlobalMapping(engine, LLVMGetNamedFunction(module, "from_jit"), (void *)from_jit);
    *outer = LLVMGetFunctionAddress(engine, "jit_outer");
    return engine;
}

int main(int argc, char **argv) {
    const int rounds = argc > 2 ? atoi(argv[2]) : 1;
    const int64_t milliseconds = argc > 3 ? atoi(argv[3]) : 500;
    const bool bare = argc > 4 && strcmp(argv[4], "bare") == 0;
    load(argc > 1 ? argv[1] : "libLLVM.so");
    for (int i = 0; i < rounds; i++) {
        uint64_t outer;
        void *const engine = make(&outer, bare);
        frames_to_main = -1;
        run_jit(outer, milliseconds / rounds);
        printf("%d\n", frames_to_main);
        LLVMDisposeExecutionEngine(engine);
    }
    return 0;
}
