/* Parses names of generated code as runtimes write them. The names of CPython 3.12, .NET 8 and
 * perf-map-agent follow the formats that these document; they come from no file of these
 * runtimes. */
#include "unit.h"

#include "symbolize/generated_name.h"

struct example {
    const char *text;
    const char *type;
    const char *function;
    const char *system_name;
    const char *file;
    int start_line;
    enum runtime runtime;
};

static const struct example examples[] = {
    /* node 20 */
    {"JS:*fib /app/n.js:2:13", "v8js", "fib", "", "/app/n.js", 2, RUNTIME_ANY},
    {"JS:~fib /app/n.js:2:13", "v8js", "fib", "", "/app/n.js", 2, RUNTIME_ANY},
    {"JS:^fib /app/n.js:2:13", "v8js", "fib", "", "/app/n.js", 2, RUNTIME_ANY},
    {"JS:*'fib /app/n.js:2:13", "v8js", "fib", "", "/app/n.js", 2, RUNTIME_ANY}, /* deno 2 */
    {"JS:~ /app/n.js:4:28", "v8js", "(anonymous)", "", "/app/n.js", 4, RUNTIME_ANY},
    {"Eval:~ /app/n.js:1:1", "v8js", "(anonymous)", "", "/app/n.js", 1, RUNTIME_ANY},
    {"JS:*get size file:///my app/a b.mjs:10:20", "v8js", "get size", "", "/my app/a b.mjs", 10,
     RUNTIME_ANY},
    {"JS:~load node:internal/modules/cjs/loader:1257:33", "v8js", "load", "",
     "node:internal/modules/cjs/loader", 1257, RUNTIME_ANY},
    {"JS:*next", "v8js", "next", "", "", 0, RUNTIME_ANY},
    {"LazyCompile:*b.c app.js:7", "v8js", "b.c", "", "app.js", 7, RUNTIME_ANY},
    {"Builtin:ArrayMap", "v8js", "Builtin:ArrayMap", "", "", 0, RUNTIME_ANY},
    {"BytecodeHandler:Ldar", "v8js", "BytecodeHandler:Ldar", "", "", 0, RUNTIME_ANY},
    {"RegExp:a(b|c)+d", "v8js", "RegExp:a(b|c)+d", "", "", 0, RUNTIME_ANY},
    /* CPython 3.12 */
    {"py::Account.pay.<locals>.<lambda>:/app/b:c.py", "cpython", "Account.pay.<locals>.<lambda>",
     "", "/app/b:c.py", 0, RUNTIME_ANY},
    {"py::", "native", "py::", "py::", "", 0, RUNTIME_ANY},
    /* Erlang 25 */
    {"$m:'-go/0-lc$^0/1-0-'/1", "beam", "m:'-go/0-lc$^0/1-0-'/1", "", "", 0, RUNTIME_ANY},
    {"$global::apply_fun_shared", "beam", "global::apply_fun_shared", "", "", 0, RUNTIME_ANY},
    {"m:go/0", "beam", "m:go/0", "", "", 0, RUNTIME_BEAM}, /* in its jitdump file */
    {"m:go/0", "native", "m:go/0", "m:go/0", "", 0, RUNTIME_ANY},
    {"$a.2:x", "native", "$a.2:x", "$a.2:x", "", 0, RUNTIME_ANY},
    {"$x", "native", "$x", "$x", "", 0, RUNTIME_ANY},
    /* PHP 8.2 */
    {"JIT$Acc::pay", "php", "Acc::pay", "", "", 0, RUNTIME_ANY},
    {"JIT$$assign_cv", "php", "JIT$$assign_cv", "", "", 0, RUNTIME_ANY},
    {"TRACE-6$Acc::pay$2", "php", "Acc::pay", "", "", 0, RUNTIME_ANY},
    {"TRACE-9$/app/f.php$4", "php", "{main}", "", "/app/f.php", 0, RUNTIME_ANY},
    {"TRACE-9", "native", "TRACE-9", "TRACE-9", "", 0, RUNTIME_ANY},
    /* .NET 8 */
    {"void [Shop] Shop.Bank::Pay(int32,string)[Tier1]", "dotnet", "Shop.Bank::Pay",
     "void [Shop] Shop.Bank::Pay(int32,string)", "", 0, RUNTIME_ANY},
    {"instance class [System.Private.CoreLib]System.Object [Shop] Shop.Bank::get(int32[])",
     "dotnet", "Shop.Bank::get",
     "instance class [System.Private.CoreLib]System.Object [Shop] Shop.Bank::get(int32[])", "", 0,
     RUNTIME_ANY},
    /* OpenJDK 17, jcmd Compiler.perfmap */
    {"int W.fib(int)", "jvm", "W.fib", "int W.fib(int)", "", 0, RUNTIME_JVM},
    {"java.lang.Object java.util.HashMap.put(java.lang.Object, java.lang.Object)", "jvm",
     "java.util.HashMap.put",
     "java.lang.Object java.util.HashMap.put(java.lang.Object, java.lang.Object)", "", 0,
     RUNTIME_JVM},
    {"I2C/C2I adapters", "jvm", "I2C/C2I adapters", "", "", 0, RUNTIME_JVM},
    {"StubRoutines (2)", "jvm", "StubRoutines (2)", "", "", 0, RUNTIME_JVM},
    {"int W.fib(int)", "native", "int W.fib(int)", "int W.fib(int)", "", 0, RUNTIME_ANY},
    /* perf-map-agent */
    {"Ljava/util/HashMap;::put(II)V", "jvm", "java.util.HashMap.put",
     "Ljava/util/HashMap;::put(II)V", "", 0, RUNTIME_ANY},
    /* others */
    {"wasm[0]::function[3]::fib", "native", "wasm[0]::function[3]::fib",
     "wasm[0]::function[3]::fib", "", 0, RUNTIME_ANY},
    {"julia_f_12", "native", "julia_f_12", "julia_f_12", "", 0, RUNTIME_ANY},
};

static void read_example(const struct example *example) {
    struct arena arena = {0};
    struct generated_name name;
    generated_name_read(&arena, example->text, example->runtime, &name);
    assert_string_equal(name.type, example->type);
    assert_string_equal(name.line.function, example->function);
    assert_string_equal(name.line.system_name, example->system_name);
    assert_string_equal(name.line.file, example->file);
    assert_int_equal(name.line.start_line, example->start_line);
    assert_int_equal(name.line.line, 0);
    arena_free(&arena);
}

static void names_are_those_of_the_runtime(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        read_example(&examples[i]);
}

/* Reads each beginning and each end of a name as a name. */
static void a_name_that_was_cut_is_read(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const size_t length = strlen(examples[i].text);
        for (size_t size = 1; size <= length; size++) {
            struct arena arena = {0};
            struct generated_name name;
            /* the block ends where the name ends */
            char *const cut = strndup(examples[i].text, size);
            generated_name_read(&arena, cut, examples[i].runtime, &name);
            assert_true(name.line.function[0]);
            generated_name_read(&arena, examples[i].text + length - size, examples[i].runtime,
                                &name);
            assert_true(name.line.function[0]);
            free(cut);
            arena_free(&arena);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_the_runtime),
        cmocka_unit_test(a_name_that_was_cut_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
