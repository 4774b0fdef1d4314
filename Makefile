# libotelprof: `make help` lists the targets.
BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
PYTHON  := /usr/bin/python3
VERSION := 0.1.0
# What links to us needs this version; LD_PRELOAD and the exporter are found by their paths.
ABI     := $(firstword $(subst ., ,$(VERSION)))

# The architecture of what CC builds: one folder of each arch/. docs/internals/port.md says what is in them.
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))
KNOWN   := $(notdir $(wildcard shim/capture/arch/*))
$(if $(filter $(ARCH),$(KNOWN)),,$(error $(CC) builds for the architecture '$(ARCH)', and only $(KNOWN) is known: see docs/internals/port.md))

# CET (IBT, SHSTK) is not claimed: the C library's own start files lose it in the linking, here and there, and
# the assembler of signals and hooks has not been run under it.
HARDENING := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection=none
# No folder of the build is in the objects, not in their debug information either.
PATHS     := -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(BUILD))=build
WARNINGS  := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
             -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef
CFLAGS    ?= -O2 -g
BASE      := -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free \
             -DOTELPROF_VERSION='"$(VERSION)"' $(WARNINGS) $(HARDENING) $(PATHS) -MMD -MP -Icommon -Icommon/arch/$(ARCH) -I$(BUILD)
LINK      := -shared -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs -Wl,--as-needed

FLUSH_PACKAGES := libcurl libzstd zlib libprotobuf-c libdw libelf liblzma nettle libunwind-generic
FLUSH_CFLAGS   = $(shell pkg-config --cflags $(FLUSH_PACKAGES))
FLUSH_LIBS     = $(shell pkg-config --libs $(FLUSH_PACKAGES)) -liberty

# Commands are shown with V=1.
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2);)

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
COMMON_SRC  := $(wildcard common/*.c)
OTLP_SRC    := $(wildcard common/otlp/*.c)
CAPTURE_SRC := $(wildcard shim/capture/*.c shim/capture/*/*.c shim/capture/arch/$(ARCH)/*.c)
PROCESS_SRC := $(wildcard shim/process/*.c shim/process/*/*.c)
HOOKS_SRC   := $(wildcard shim/*.c shim/hooks/*.c)
FLUSH_SRC   := $(wildcard shim/flush/*.c shim/flush/*/*.c)
PROTO       := $(wildcard proto/*.proto)
PROTO_C     := $(PROTO:proto/%.proto=$(BUILD)/proto/%.pb-c.c)
PROTO_PY    := $(PROTO:proto/%.proto=$(BUILD)/python/%_pb2.py)

# What is preloaded: the hooks, on top of archives. Of the common one each object has what it needs.
HOOKS_OBJ   := $(call objects,$(HOOKS_SRC))
COMMON_LIB  := $(BUILD)/libcommon.a
CAPTURE_LIB := $(BUILD)/libcapture.a
PROCESS_LIB := $(BUILD)/libprocess.a
FLUSH_LIB   := $(BUILD)/libflush.a
$(COMMON_LIB): $(call objects,$(COMMON_SRC))
$(CAPTURE_LIB): $(call objects,$(CAPTURE_SRC))
$(PROCESS_LIB): $(call objects,$(PROCESS_SRC))
$(FLUSH_LIB): $(call objects,$(OTLP_SRC) $(FLUSH_SRC)) $(PROTO_C:.c=.o)
$(BUILD)/lib%.a:
	$(call say,AR,$@)rm -f $@ && $(AR) rcsD $@ $^
PRELOAD_LIBS  := $(PROCESS_LIB) $(CAPTURE_LIB) $(COMMON_LIB)
PRELOAD_PARTS := $(HOOKS_OBJ) -Wl,--whole-archive $(PROCESS_LIB) $(CAPTURE_LIB) -Wl,--no-whole-archive $(COMMON_LIB)

.PHONY: all
all: $(BUILD)/libotelprof.so $(BUILD)/libotelprof-flush.so python ## build everything

# Capture: libc is all it may need. Flush: ordinary libraries.
$(BUILD)/libotelprof.so: $(HOOKS_OBJ) $(PRELOAD_LIBS) shim/libotelprof.map
	$(call say,LINK,$@)$(CC) $(LINK) -Wl,--version-script=shim/libotelprof.map -Wl,-soname,libotelprof.so.$(ABI) -o $@ $(PRELOAD_PARTS)

$(BUILD)/libotelprof-flush.so: $(FLUSH_LIB) $(COMMON_LIB) shim/libotelprof-flush.map
	$(call say,LINK,$@)$(CC) $(LINK) -Wl,--version-script=shim/libotelprof-flush.map -Wl,-soname,libotelprof-flush.so.$(ABI) -o $@ -Wl,--whole-archive $(FLUSH_LIB) -Wl,--no-whole-archive $(COMMON_LIB) $(FLUSH_LIBS)

# One for both objects, of what they are built from and how: only what is of one build works together.
BUILD_ID := $(shell { cat $(sort $(wildcard common/*.* common/otlp/*.* common/arch/$(ARCH)/*.* shim/*.* shim/*/*.* shim/*/*/*.* shim/*/*/*/*.* proto/*.proto)) \
                Makefile; echo '$(CC) $(CFLAGS)'; } | sha256sum | cut -c1-16)
RELEASE  := $(VERSION)-$(BUILD_ID)
$(BUILD)/release.h: FORCE
	@mkdir -p $(@D)
	@echo '#define OTELPROF_RELEASE "$(RELEASE)"' | cmp -s - $@ || echo '#define OTELPROF_RELEASE "$(RELEASE)"' > $@
.PHONY: FORCE
$(BUILD)/obj/shim/process/helper.o $(BUILD)/obj/shim/start.o $(BUILD)/obj/shim/flush/flush_main.o: $(BUILD)/release.h

# A world's folder decides what it may include: capture sees common/ and itself, and so does flush.
CAPTURE_INCLUDES := -Ishim/capture -Ishim/capture/arch/$(ARCH)
WEAK := -include shim/weak_glibc.h
$(BUILD)/obj/common/%.o: common/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) $(WEAK) $(CFLAGS) -c -o $@ $<
PROCESS_INCLUDES := -Ishim $(CAPTURE_INCLUDES)
$(BUILD)/obj/shim/%.o: shim/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) $(PROCESS_INCLUDES) $(WEAK) $(CFLAGS) -c -o $@ $<
$(BUILD)/obj/shim/capture/%.o: shim/capture/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) $(CAPTURE_INCLUDES) $(WEAK) $(CFLAGS) -c -o $@ $<
$(BUILD)/obj/shim/flush/%.o: shim/flush/%.c | proto-c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -Ishim/flush -I$(BUILD)/proto -Icommon/otlp $(FLUSH_CFLAGS) $(CFLAGS) -c -o $@ $<
$(BUILD)/obj/common/otlp/%.o: common/otlp/%.c | proto-c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -I$(BUILD)/proto -Icommon/otlp $(CFLAGS) -c -o $@ $<
$(BUILD)/proto/%.o: $(BUILD)/proto/%.c
	$(call say,CC,$<)$(CC) $(filter-out $(WARNINGS),$(BASE)) -I$(BUILD)/proto $(CFLAGS) -c -o $@ $<

.PHONY: proto-c python
proto-c: $(PROTO_C) $(BUILD)/release.h
python: $(PROTO_PY)
$(BUILD)/proto/%.pb-c.c: proto/%.proto $(PROTO)
	@mkdir -p $(@D)
	$(call say,PROTO,$<)protoc-c -Iproto --c_out=$(@D) $<
$(BUILD)/python/%_pb2.py: proto/%.proto $(PROTO)
	@mkdir -p $(@D)
	$(call say,PROTO,$<)protoc -Iproto --python_out=$(@D) $<

# --- what people run ---

.PHONY: demo install uninstall
demo: ## install what is missing, build, profile a real compiler
	scripts/install-deps build
	$(MAKE) all
	scripts/demo

# Programs have the files of a release mapped: none is ever written again. A release lies in a folder of
# its own, which is there as a whole or not at all; the names that users know are changed by rename(2).
LIBDIR := $(DESTDIR)$(PREFIX)/lib/otelprof
MANDIR := $(DESTDIR)$(PREFIX)/share/man
RUN    := $(shell echo $$PPID)
STAGE   = $(LIBDIR)/.$(RELEASE).$(RUN)
renamed = ln -sfn $(1) $(LIBDIR)/.name.$(RUN) && mv -fT $(LIBDIR)/.name.$(RUN) $(LIBDIR)/$(2)
whole   = cmp -s $(BUILD)/libotelprof.so $(LIBDIR)/$(RELEASE)/libotelprof.so && \
          cmp -s $(BUILD)/libotelprof-flush.so $(LIBDIR)/$(RELEASE)/libotelprof-flush.so
install: all ## install into $(DESTDIR)$(PREFIX), beside the releases that are there
	rm -rf $(STAGE)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(STAGE)/python \
	    $(STAGE)/otelprof_lib $(STAGE)/flamegraph
	install -m 755 $(BUILD)/libotelprof.so $(BUILD)/libotelprof-flush.so $(STAGE)
	install -m 644 $(PROTO_PY) $(STAGE)/python
	install -m 644 scripts/otelprof_lib/*.py $(STAGE)/otelprof_lib
	install -m 644 scripts/flamegraph/* $(STAGE)/flamegraph
	install -m 644 common/profile_kinds.def $(STAGE)
	flock $(LIBDIR) sh -c '($(whole)) || { [ ! -e $(LIBDIR)/$(RELEASE) ] || \
	    mv -T $(LIBDIR)/$(RELEASE) $(STAGE).damaged; mv -T $(STAGE) $(LIBDIR)/$(RELEASE); }'
	rm -rf $(STAGE) $(STAGE).damaged
	$(call renamed,$(RELEASE),current)
	$(call renamed,current/libotelprof.so,libotelprof.so)
	$(call renamed,libotelprof.so,libotelprof.so.$(ABI))
	install -m 755 scripts/otelprof $(DESTDIR)$(PREFIX)/bin/.otelprof.$(RUN)
	mv -f $(DESTDIR)$(PREFIX)/bin/.otelprof.$(RUN) $(DESTDIR)$(PREFIX)/bin/otelprof
	install -m 644 shim/otelprof.h $(DESTDIR)$(PREFIX)/include
	install -d $(MANDIR)/man1 $(MANDIR)/man7
	install -m 644 docs/man/otelprof.1 $(MANDIR)/man1
	install -m 644 docs/man/libotelprof.7 $(MANDIR)/man7
uninstall: ## remove what install put there
	rm -rf $(LIBDIR)
	rm -f $(DESTDIR)$(PREFIX)/bin/otelprof $(DESTDIR)$(PREFIX)/include/otelprof.h
	rm -f $(MANDIR)/man1/otelprof.1 $(MANDIR)/man7/libotelprof.7

# --- tests ---

UNIT_SRC := $(wildcard test/unit/test_*.c)
UNIT     := $(UNIT_SRC:test/unit/%.c=$(BUILD)/test/unit/%)
# Of the archives only what a test asks for is linked into it.
TEST_LIBS     := $(FLUSH_LIB) $(PRELOAD_LIBS)
TEST_INCLUDES := -Ishim $(CAPTURE_INCLUDES) -Ishim/flush -Icommon/otlp
$(BUILD)/test/unit/%: test/unit/%.c $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(filter-out -ftls-model=initial-exec,$(BASE)) $(TEST_INCLUDES) \
	    -I$(BUILD)/proto $(FLUSH_CFLAGS) $(CFLAGS) -o $@ $< $(TEST_LIBS) -lcmocka $(FLUSH_LIBS) -pthread -lm

# Programs under test: `// flags: ...` in the first lines adds to the command.
PROGRAM_SRC := $(wildcard test/programs/*.c test/programs/*.cpp)
PROGRAMS    := $(patsubst test/programs/%,$(BUILD)/test/programs/%,$(basename $(PROGRAM_SRC)))
PROGRAM_HEADERS := $(wildcard test/programs/*.h test/torture/*.h)
flags_in = $(shell sed -n 's|^[ /*]*flags: *\([^*]*\).*|\1|p' $(1) | head -n 1)
program = $(call say,$(1),$<)$(2) -O2 -g -Wall -Wextra -o $@ $(3) $< -pthread $(call flags_in,$<)
$(BUILD)/test/programs/%.so: test/programs/%.so.c $(PROGRAM_HEADERS)
	@mkdir -p $(@D)
	$(call program,CC,$(CC),-fPIC -shared)
$(BUILD)/test/programs/%.so: test/programs/%.so.cpp $(PROGRAM_HEADERS)
	@mkdir -p $(@D)
	$(call program,CXX,$(CXX),-fPIC -shared)
$(BUILD)/test/programs/%: test/programs/%.c $(PROGRAM_HEADERS)
	@mkdir -p $(@D)
	$(call program,CC,$(CC),)
$(BUILD)/test/programs/%: test/programs/%.cpp $(PROGRAM_HEADERS) $(filter %.so,$(PROGRAMS))
	@mkdir -p $(@D)
	$(call program,CXX,$(CXX),)

# The same for torture: `make torture` runs each for long, `make test` for a moment.
TORTURE_SRC := $(wildcard test/torture/*.c test/torture/*.cpp)
TORTURE     := $(patsubst test/torture/%,$(BUILD)/test/torture/%,$(basename $(TORTURE_SRC)))
$(BUILD)/test/torture/%: test/torture/%.c $(PROGRAM_HEADERS)
	@mkdir -p $(@D)
	$(call program,CC,$(CC),)
$(BUILD)/test/torture/%: test/torture/%.cpp $(PROGRAM_HEADERS)
	@mkdir -p $(@D)
	$(call program,CXX,$(CXX),)

# What makes our own calls fail, and the program that must not notice.
FAULTS := $(patsubst test/faults/%,$(BUILD)/test/faults/%,$(basename $(wildcard test/faults/*.c))) \
          $(BUILD)/test/faults/libotelprof.so
# The library as it is, but for allocations of its helper that can be made to fail.
$(BUILD)/test/faults/libotelprof.so: test/faults/library/fail_alloc.c $(BUILD)/libotelprof.so
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(LINK) -O2 -g -Wall -Wextra -fPIC -fvisibility=hidden \
	    -Wl,--version-script=shim/libotelprof.map \
	    -Wl,--wrap=helper_heap_take,--wrap=helper_heap_take_zeroed,--wrap=helper_heap_resize \
	    -o $@ $< $(PRELOAD_PARTS) -Wl,--no-as-needed -lgcc_s
	ln -sf ../../libotelprof-flush.so $(@D)/libotelprof-flush.so
$(BUILD)/test/faults/%.so: test/faults/%.so.c
	@mkdir -p $(@D)
	$(call program,CC,$(CC),-fPIC -shared)
$(BUILD)/test/faults/%: test/faults/%.c $(PROGRAM_HEADERS)
	@mkdir -p $(@D)
	$(call program,CC,$(CC),)

# What runs for an hour and must not grow.
SOAK := $(patsubst test/soak/%,$(BUILD)/test/soak/%,$(basename $(wildcard test/soak/*.c))) \
        $(BUILD)/test/programs/plugin.so
$(BUILD)/test/soak/%.so: test/soak/%.so.c
	@mkdir -p $(@D)
	$(call program,CC,$(CC),-fPIC -shared)
$(BUILD)/test/soak/%: test/soak/%.c
	@mkdir -p $(@D)
	$(call program,CC,$(CC),)

# Our unwinder against others, in real programs and over real files.
DIFFERENTIAL := $(BUILD)/test/differential/live.so $(BUILD)/test/differential/rules $(BUILD)/test/differential/symbols.so
$(BUILD)/test/differential/rules: test/differential/rules.c $(CAPTURE_LIB) $(COMMON_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -Ishim $(CAPTURE_INCLUDES) $(CFLAGS) -o $@ $< $(CAPTURE_LIB) $(COMMON_LIB) \
	    $(shell pkg-config --libs libunwind-generic)
$(BUILD)/test/differential/live.so: test/differential/live.so.c $(CAPTURE_LIB) $(COMMON_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -Ishim $(CAPTURE_INCLUDES) $(CFLAGS) -shared -o $@ $< $(CAPTURE_LIB) $(COMMON_LIB) -lunwind
# Our look-up of symbols against the loader's.
$(BUILD)/test/differential/symbols.so: test/differential/symbols.so.c $(CAPTURE_LIB) $(COMMON_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -Ishim $(CAPTURE_INCLUDES) $(CFLAGS) -shared -o $@ $< $(CAPTURE_LIB) $(COMMON_LIB)

BENCH := $(patsubst test/bench/%,$(BUILD)/test/bench/%,$(basename $(wildcard test/bench/*.c test/bench/*.cpp)))
$(BUILD)/test/bench/%.so: test/bench/%.so.c
	@mkdir -p $(@D)
	$(call program,CC,$(CC),-fPIC -shared)
# Twice: its recursion with frame pointers too.
BENCH_CC   = $(CC) $(BASE) -Ishim $(CAPTURE_INCLUDES) $(CFLAGS)
$(BUILD)/test/bench/bench_unwind: test/bench/bench_unwind.c $(CAPTURE_LIB) $(COMMON_LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(BENCH_CC) -fno-omit-frame-pointer -DFRAME_POINTERS -c -o $@.frames.o $< && \
	    $(BENCH_CC) -fomit-frame-pointer -o $@ $< $@.frames.o $(CAPTURE_LIB) $(COMMON_LIB) -lunwind
$(BUILD)/test/bench/%: test/bench/%.c
	@mkdir -p $(@D)
	$(call program,CC,$(CC),)
$(BUILD)/test/bench/%: test/bench/%.cpp
	@mkdir -p $(@D)
	$(call program,CXX,$(CXX),)

# Fuzzers: everything that they reach is built anew with sanitizers. Not built where clang cannot.
FUZZ_CC       ?= clang
FUZZ_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_REACHED  := config config_values endpoint file_identity given_variables glob keyvalues log process_file \
                 process_tree quiet_write descriptors \
                 own_file shown_text utf8 otlp/json_reader otlp/otlp_json otlp/otlp_writer otlp/arena otlp/intern otlp/wire
FUZZ_FLUSH    := answer attribute_set by_path compress context_payload grpc_answer grpc_message process_context safe_read \
                 address_ranges debug_image demangle dwarf_functions dwarf_lines elf_file elf_sections \
                 loaded_image mapped_file receiver_words symbol_table trusted_file
FUZZ_SRC      := $(FUZZ_REACHED:%=common/%.c) $(foreach name,$(FUZZ_FLUSH),$(wildcard shim/flush/$(name).c shim/flush/*/$(name).c)) \
                 shim/capture/unwind/cfi.c shim/capture/unwind/cfi_expression.c test/fuzz/strict_json.c $(PROTO_C)
FUZZ_OBJ      := $(FUZZ_SRC:%.c=$(BUILD)/fuzz/obj/%.o)
FUZZERS       := $(patsubst test/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_BASE      = $(filter-out $(HARDENING) -ftls-model=initial-exec,$(BASE)) -g -O1 $(FUZZ_SANITIZE)
$(BUILD)/fuzz/obj/$(BUILD)/proto/%.o: $(BUILD)/proto/%.c
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)$(FUZZ_CC) $(filter-out $(WARNINGS),$(FUZZ_BASE)) -fsanitize=fuzzer-no-link -I$(BUILD)/proto -c -o $@ $<
$(BUILD)/fuzz/obj/%.o: %.c | proto-c
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)$(FUZZ_CC) $(FUZZ_BASE) -fsanitize=fuzzer-no-link -Ishim $(CAPTURE_INCLUDES) -Ishim/flush -Icommon/otlp \
	    -I$(BUILD)/proto -c -o $@ $<
$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/test/fuzz/fuzz_%.o $(FUZZ_OBJ)
	$(call say,LINK,$@)$(FUZZ_CC) $(FUZZ_SANITIZE) -fsanitize=fuzzer -o $@ $^ $(shell pkg-config --libs libprotobuf-c libzstd zlib libdw libelf liblzma) -liberty -pthread
.SECONDARY: $(FUZZ_OBJ) $(FUZZERS:$(BUILD)/fuzz/%=$(BUILD)/fuzz/obj/test/fuzz/fuzz_%.o)
.PHONY: fuzzers fuzz
fuzzers: proto-c
	@mkdir -p $(BUILD)/fuzz
	@if echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' | \
	    $(FUZZ_CC) -fsanitize=fuzzer,address,undefined -x c -o $(BUILD)/fuzz/probe - 2>/dev/null; then \
	    $(MAKE) --no-print-directory $(FUZZERS); \
	else echo '  SKIPPED fuzzers: $(FUZZ_CC) cannot link -fsanitize=fuzzer (Debian: clang, libclang-rt-14-dev)'; fi
fuzz: all fuzzers ## every fuzzer, FUZZ_SECONDS each (3600)
	test/fuzz/run

.PHONY: test test-apps test-boot test-suites test-build collector bench torture heap faults soak check format
test: ## install what is missing and run every test
	scripts/install-deps build test
	$(MAKE) all test-build collector
	test/run
test-apps: ## run the catalogue of real programs without and with the preload, and write the table in docs/verification.md
	-scripts/install-deps apps
	-/usr/bin/python3 test/apps/pypi.py
	scripts/install-deps build
	$(MAKE) all
	test/apps/run --write-table
test-boot: ## minutes, as root: a Debian boots under systemd-nspawn without and with the preload
	-scripts/install-deps boot
	$(MAKE) all
	test/boot/run
test-suites: ## hours (SUITES="git perl": those alone): conformance suites without and with the preload, test by test
	-scripts/install-deps suites
	scripts/install-deps build
	$(MAKE) all
	test/suites/run --write-table $(SUITES)
test-build: $(UNIT) $(PROGRAMS) $(TORTURE) $(FAULTS) $(SOAK) $(DIFFERENTIAL) fuzzers
# A real Collector and OpenTelemetry's conformance checker, from Go modules.
collector:
	test/collector/build $(BUILD)
torture: all test-build ## for an hour: every torture program, and our unwinder against libunwind
	test/torture/run
	test/differential/run
heap: all test-build ## minutes: heap profiles against ten million calls' books, and their mean error
	test/heap/run
	test/heap/unbiased.py
faults: all test-build ## for an hour and a half: each system call and each allocation of ours fails, in turn
	test/faults/run
soak: all $(SOAK) ## for 90 minutes: allocations and redis without end, and nothing of ours grows
	test/soak/run
bench: all $(BENCH) $(PROGRAMS) ## what it costs, measured beside no preload in one run
	test/bench/run.py

# --- static checks ---

C_FILES  := $(wildcard common/*.[ch] common/*/*.[ch] common/*/*/*.[ch] shim/*.[ch] shim/*/*.[ch] shim/*/*/*.[ch] shim/*/*/*/*.[ch] \
                       test/*/*.c test/*/*.h test/*/*.cpp)
TIDY_SRC := $(COMMON_SRC) $(OTLP_SRC) $(CAPTURE_SRC) $(PROCESS_SRC) $(HOOKS_SRC) $(FLUSH_SRC)
check: proto-c $(BUILD)/release.h ## formatting, clang-tidy, cppcheck, shellcheck, both compilers
	scripts/install-deps build check
	@echo "  format"; clang-format --dry-run --Werror $(C_FILES)
	@echo "  clang-tidy"; clang-tidy --quiet $(TIDY_SRC) -- $(BASE) $(TEST_INCLUDES) -I$(BUILD)/proto
	@echo "  cppcheck"; cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --suppress=missingIncludeSystem \
	    --enable=warning,portability -Icommon $(TEST_INCLUDES) $(TIDY_SRC)
	shellcheck scripts/install-deps scripts/demo test/collector/build .ci/run
	$(MAKE) BUILD=$(BUILD)/clang CC=clang all
format: ## reformat the C sources
	clang-format -i $(C_FILES)

.PHONY: clean help
clean: ## remove what was built
	rm -rf $(BUILD)
help: ## this list
	@grep -hE '^[a-z_-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z_-]+):.*## /\1\t/' | expand -t 14

-include $(shell find $(BUILD) -path $(BUILD)/suites -prune -o -name '*.d' -print 2>/dev/null)
