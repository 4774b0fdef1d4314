# libotelprof: `make help` lists the targets. The rules of the tests are in test/Makefile.
.DEFAULT_GOAL := all
BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
CC      ?= cc
VERSION := 0.1.0
# Dates everything inside the packages of a release.
RELEASED := 2026-11-22
# Programs that are linked with the library need this version; LD_PRELOAD and the exporter are found by their
# paths.
ABI     := $(firstword $(subst ., ,$(VERSION)))

# Names the architecture of what CC builds: one folder of each arch/. docs/internals/port.md explains their
# contents.
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))
KNOWN   := $(notdir $(wildcard shim/capture/arch/*))
$(if $(filter $(ARCH),$(KNOWN)),,$(error $(CC) builds for the architecture '$(ARCH)', and only $(KNOWN) is known: see docs/internals/port.md))

# CPPFLAGS, CFLAGS and LDFLAGS are the user's or the distribution's: they come after ours.
CFLAGS    ?= -O2 -g
# A FORTIFY level in these flags, or one that the compiler was given, replaces ours.
FORTIFY   := $(if $(findstring _FORTIFY_SOURCE,$(CC) $(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDENING := -fstack-protector-strong $(FORTIFY) -fstack-clash-protection
# Keeps the build's folder out of the objects, and out of their debug information.
PATHS     := -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(BUILD))=build
# A new warning of a newer compiler must break no user's build: warnings are errors only in CI and in `make
# check`.
WERROR    ?= $(filter true,$(CI))
WARNINGS  := -Wall -Wextra $(if $(WERROR),-Werror) -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
             -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef
BASE      := -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free \
             -DOTELPROF_VERSION='"$(VERSION)"' $(WARNINGS) $(HARDENING) $(PATHS) -MMD -MP -Icommon -Icommon/arch/$(ARCH) -I$(BUILD)
# Must hold whatever those flags are. CET (IBT, SHSTK) is not claimed: the C library's own start files lose it in the
# linking, here and there, and the assembler of signals and hooks has not been run under it. That assembler names static
# functions and objects, which link-time optimization would remove.
LAST      := $(if $(filter x86_64,$(ARCH)),-fcf-protection=none) -fno-lto
GIVEN     := $(CPPFLAGS) $(CFLAGS) $(LAST)
# Puts code and constants into one segment: every start and fork would pay for a mapping of its own for each.
LINK      := -shared -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs,-z,noseparate-code -Wl,--as-needed $(CFLAGS) $(LDFLAGS)

FLUSH_PACKAGES := libcurl libzstd zlib libprotobuf-c libdw libelf liblzma nettle yaml-0.1 libunwind-generic
# Runs pkg-config when the first file needs the flags, and once.
FLUSH_CFLAGS    = $(eval FLUSH_CFLAGS := $$(shell pkg-config --cflags $(FLUSH_PACKAGES)))$(FLUSH_CFLAGS)
FLUSH_LIBS      = $(eval FLUSH_LIBS := $$(shell pkg-config --libs $(FLUSH_PACKAGES)) -liberty)$(FLUSH_LIBS)

# Kernels for 64-bit Arm have pages of up to 64 KiB.
ARM_PAGES := -Wl,-z,max-page-size=65536
LINK      += $(if $(filter aarch64,$(ARCH)),$(ARM_PAGES))

# Commands are shown with V=1.
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2);)
quietly = $(if $(V),,@)

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(1)))
COMMON_SRC  := $(wildcard common/*.c)
OTLP_SRC    := $(wildcard common/otlp/*.c)
CAPTURE_SRC := $(wildcard shim/capture/*.c shim/capture/*/*.c shim/capture/arch/$(ARCH)/*.c)
PROCESS_SRC := $(wildcard shim/process/*.c shim/process/*/*.c)
HOOKS_SRC   := $(wildcard shim/*.c shim/hooks/*.c shim/program/*.c)
FLUSH_SRC   := $(wildcard shim/flush/*.c shim/flush/*/*.c)
CPP_SRC     := $(wildcard shim/cpp_context/*.c)
PROTO       := $(wildcard proto/*.proto)
# (pprof's format is for the command alone)
PROTO_OTLP  := $(filter-out proto/pprof.proto,$(PROTO))
PROTO_C     := $(PROTO_OTLP:proto/%.proto=$(BUILD)/proto/%.pb-c.c)
PROTO_PY    := $(PROTO:proto/%.proto=$(BUILD)/python/%_pb2.py)
ALL_SRC     := $(COMMON_SRC) $(OTLP_SRC) $(CAPTURE_SRC) $(PROCESS_SRC) $(HOOKS_SRC) $(FLUSH_SRC) $(CPP_SRC)

# Builds the preloaded library: the hooks, on top of archives. Each object has what it needs of the common
# archive.
HOOKS_OBJ   := $(call objects,$(HOOKS_SRC))
COMMON_LIB  := $(BUILD)/libcommon.a
CAPTURE_LIB := $(BUILD)/libcapture.a
PROCESS_LIB := $(BUILD)/libprocess.a
FLUSH_LIB   := $(BUILD)/libflush.a
$(COMMON_LIB): $(call objects,$(COMMON_SRC))
$(CAPTURE_LIB): $(call objects,$(CAPTURE_SRC))
$(PROCESS_LIB): $(call objects,$(PROCESS_SRC))
$(FLUSH_LIB): $(call objects,$(OTLP_SRC) $(FLUSH_SRC)) $(PROTO_C:.c=.o)
$(BUILD)/lib%.a: $(BUILD)/sources
	$(call say,AR,$@)rm -f $@ && $(AR) rcsD $@ $(filter %.o,$^)
PRELOAD_LIBS  := $(PROCESS_LIB) $(CAPTURE_LIB) $(COMMON_LIB)
# Puts what every start executes first and together: fewer pages are faulted in.
SYMBOLS_OBJ   := $(call objects,$(filter shim/capture/symbols/% shim/capture/binding/profiler_exports.c,$(CAPTURE_SRC)))
PRELOAD_PARTS := $(HOOKS_OBJ) $(SYMBOLS_OBJ) $(COMMON_LIB) $(call objects,$(PROCESS_SRC)) \
                 $(filter-out $(SYMBOLS_OBJ),$(call objects,$(CAPTURE_SRC))) $(COMMON_LIB)

# Is for x86-64 alone, whose kernels run 32-bit programs.
STUB_32 := $(if $(filter x86_64,$(ARCH)),$(BUILD)/lib32/libotelprof.so)
.PHONY: all
all: $(BUILD)/libotelprof.so $(BUILD)/libotelprof-flush.so $(BUILD)/libotelprof-cpp.so $(STUB_32) python ## build everything

# Capture: libc is all it may need. Flush: ordinary libraries.
EXPORTS := $(BUILD)/libotelprof.map
$(EXPORTS): shim/libotelprof.map.in $(wildcard shim/hooks/*.def)
	@mkdir -p $(@D)
	$(call say,MAP,$@)$(CC) -E -P -undef -x c -o $@ $<
$(BUILD)/libotelprof.so: $(HOOKS_OBJ) $(PRELOAD_LIBS) $(EXPORTS)
	$(call say,LINK,$@)$(CC) $(LINK) -Wl,--version-script=$(EXPORTS) -Wl,-soname,libotelprof.so.$(ABI) -o $@ $(PRELOAD_PARTS)

# Needs its constructor to run before those of the libraries that come with it: libraries/exporter_bindings.h.
$(BUILD)/libotelprof-flush.so: $(FLUSH_LIB) $(COMMON_LIB) shim/libotelprof-flush.map
	$(call say,LINK,$@)$(CC) $(LINK) -Wl,--version-script=shim/libotelprof-flush.map -Wl,-z,initfirst -Wl,-soname,libotelprof-flush.so.$(ABI) -o $@ -Wl,--whole-archive $(FLUSH_LIB) -Wl,--no-whole-archive $(COMMON_LIB) $(FLUSH_LIBS)

# Is for C++ programs with OpenTelemetry's API: needs libc alone, too. Once loaded it stays: the program's tables
# point to it.
$(BUILD)/libotelprof-cpp.so: $(call objects,$(CPP_SRC)) $(COMMON_LIB) shim/libotelprof-cpp.map
	$(call say,LINK,$@)$(CC) $(LINK) -Wl,-z,nodelete -Wl,--version-script=shim/libotelprof-cpp.map -Wl,-soname,libotelprof-cpp.so.$(ABI) -o $@ $(call objects,$(CPP_SRC)) $(COMMON_LIB)

# Is what 32-bit programs get of a preload for the whole machine, so that their loader finds an object: one without code.
# No GNU hash: an empty one lets loaders before glibc 2.34 read out of bounds.
$(BUILD)/lib32/libotelprof.so:
	@mkdir -p $(@D)
	$(call say,STUB,$@)as --32 -o $(@:.so=.o) /dev/null && ld -m elf_i386 -shared -s --build-id=none --hash-style=sysv \
	    -z noexecstack -z relro -z now -z noseparate-code -soname libotelprof.so.$(ABI) $(@:.so=.o) -o $@

# --- what was built from which sources, and by which command: a target is rebuilt if one of these changes ---

# Identifies the build of both objects by their sources and flags: only objects of one build work together. A
# distribution builds one source under many paths, which are no part of the id.
quoted    = '$(subst ','\'',$(1))'
BUILT_BY := $(filter-out -ffile-prefix-map=% -fdebug-prefix-map=% -fmacro-prefix-map=%,$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS))
BUILD_ID := $(shell { cat $(sort $(wildcard common/*.* common/otlp/*.* common/arch/$(ARCH)/*.* shim/*.* shim/*/*.* shim/*/*/*.* shim/*/*/*/*.*) $(PROTO_OTLP)) \
                Makefile; echo $(call quoted,$(BUILT_BY)); } | sha256sum | cut -c1-16)
RELEASE  := $(VERSION)-$(BUILD_ID)

define RELEASE_H
#define OTELPROF_RELEASE "$(RELEASE)"
endef
FLAGS    := $(strip $(CC) $(filter-out -Werror -I$(BUILD),$(BASE)) $(GIVEN) $(LINK))
SOURCES  := $(strip $(sort $(ALL_SRC)))

.PHONY: FORCE
same    = $(and $(findstring |$(1)|,|$(2)|),$(findstring |$(2)|,|$(1)|))
# (not $(file <): that of make 4.3 now and then reads more than there is)
changed = $(if $(call same,$(shell cat $(1) 2>/dev/null),$(2)),,FORCE)
$(BUILD)/release.h: TEXT = $(RELEASE_H)
$(BUILD)/flags: TEXT = $(FLAGS)
$(BUILD)/sources: TEXT = $(SOURCES)
$(BUILD)/release.h: $(call changed,$(BUILD)/release.h,$(RELEASE_H))
$(BUILD)/flags: $(call changed,$(BUILD)/flags,$(FLAGS))
$(BUILD)/sources: $(call changed,$(BUILD)/sources,$(SOURCES))
$(BUILD)/release.h $(BUILD)/flags $(BUILD)/sources:
	@mkdir -p $(@D)
	@printf '%s\n' $(call quoted,$(TEXT)) > $@
$(BUILD)/obj/shim/process/helper_load.o $(BUILD)/obj/shim/start.o $(BUILD)/obj/shim/flush/flush_main.o $(BUILD)/obj/shim/cpp_context/adaptor.o: $(BUILD)/release.h

# --- objects ---

# A folder decides what its files may include: capture sees common/ and itself, and so does flush.
define compile
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) $(1) $(GIVEN) -c -o $@ $<
endef
WEAK             := -include shim/weak_glibc.h
CAPTURE_INCLUDES := -Ishim/capture -Ishim/capture/arch/$(ARCH)
PROCESS_INCLUDES := -Ishim $(CAPTURE_INCLUDES)
FLUSH_INCLUDES   := -I$(BUILD)/proto -Icommon/otlp
$(BUILD)/obj/common/%.o: common/%.c $(BUILD)/flags
	$(call compile,$(WEAK))
$(BUILD)/obj/shim/%.o: shim/%.c $(BUILD)/flags
	$(call compile,$(PROCESS_INCLUDES) $(WEAK))
$(BUILD)/obj/shim/capture/%.o: shim/capture/%.c $(BUILD)/flags
	$(call compile,$(CAPTURE_INCLUDES) $(WEAK))
# These hooks do not align their stack (FAST_HOOK, blocking.c), and so must store nothing aligned there.
$(patsubst %,$(BUILD)/obj/shim/hooks/%.o,blocking locks malloc mask operator_new): PROCESS_INCLUDES += -mgeneral-regs-only
# Handlers run this code before they know that the thread's variables, the stack protector's among them, are
# libc's.
$(patsubst %,$(BUILD)/obj/shim/capture/%.o,cpu/signal_entry cpu/signal_thread cpu/program_handlers cpu/program_stack \
    cpu/libc_signal cpu/cpu_timers record/profiler_signal_stacks unwind/stack_memory): GIVEN += -fno-stack-protector
# Other processes must find its thread-local variables (OTEP 4947): by TLS descriptors, where the compiler has them. It
# uses no vector registers: they hold the program's values, and the loader's code behind a descriptor may use them.
TLS_DIALECT      = $(eval TLS_DIALECT := $$(shell $$(CC) -mtls-dialect=gnu2 -E -x c /dev/null >/dev/null 2>&1 && echo -mtls-dialect=gnu2))$(TLS_DIALECT)
$(BUILD)/obj/shim/cpp_context/%.o: shim/cpp_context/%.c $(BUILD)/flags
	$(call compile,-Ishim/cpp_context -ftls-model=global-dynamic $(TLS_DIALECT) -mgeneral-regs-only)
$(BUILD)/obj/shim/flush/%.o: shim/flush/%.c $(BUILD)/flags | proto-c
	$(call compile,-Ishim/flush $(FLUSH_INCLUDES) $(FLUSH_CFLAGS))
$(BUILD)/obj/common/otlp/%.o: common/otlp/%.c $(BUILD)/flags | proto-c
	$(call compile,$(FLUSH_INCLUDES))
$(BUILD)/proto/%.o: $(BUILD)/proto/%.c $(BUILD)/flags
	$(call say,CC,$<)$(CC) $(filter-out $(WARNINGS),$(BASE)) -I$(BUILD)/proto $(GIVEN) -c -o $@ $<

.PHONY: proto-c python
proto-c: $(PROTO_C) $(BUILD)/release.h
python: $(PROTO_PY)
$(BUILD)/proto/%.pb-c.c: proto/%.proto $(PROTO_OTLP)
	@mkdir -p $(@D)
	$(call say,PROTO,$<)protoc-c -Iproto --c_out=$(@D) $<
$(BUILD)/python/%_pb2.py: proto/%.proto $(PROTO)
	@mkdir -p $(@D)
	$(call say,PROTO,$<)protoc -Iproto --python_out=$(@D) $<

# --- what users run ---

.PHONY: deps demo demo-links demo-python demo-waits install uninstall
deps: ## install what is missing to build, test and check (Debian; asks for sudo)
	scripts/install-deps build test check
# NO_INSTALL=1: lists what is missing, and builds and runs nothing.
define run_demo
	scripts/install-deps $(2)
	$(if $(NO_INSTALL),,$(MAKE) --no-print-directory -j$(shell nproc) all)
	$(if $(NO_INSTALL),,scripts/$(1))
endef
demo: ## install what is missing, build, profile a C++ program
	$(call run_demo,demo,build)
demo-links: ## install what is missing, build, find the code of a slow span
	$(call run_demo,demo-links,build links)
demo-python: ## install what is missing, build, profile a Python program, from main through Python to C
	$(call run_demo,demo-python,build)
demo-waits: ## install what is missing, build, find what a program waits for that is slow on idle processors
	$(call run_demo,demo-waits,build)

# Running programs have the files of a release mapped: none is ever written again. A release is in a folder of
# its own, which exists as a whole or not at all; the names that users know are changed by rename(2).
RELEASES := $(DESTDIR)$(LIBDIR)/otelprof
BINDIR   := $(DESTDIR)$(PREFIX)/bin
MANDIR   := $(DESTDIR)$(PREFIX)/share/man
RUN      := $(shell echo $$PPID)
STAGE     = $(RELEASES)/.$(RELEASE).$(RUN)
renamed   = ln -sfn $(1) $(RELEASES)/.name.$(RUN) && mv -fT $(RELEASES)/.name.$(RUN) $(RELEASES)/$(2)
whole     = cmp -s $(BUILD)/libotelprof.so $(RELEASES)/$(RELEASE)/libotelprof.so && \
            cmp -s $(BUILD)/libotelprof-flush.so $(RELEASES)/$(RELEASE)/libotelprof-flush.so && \
            cmp -s $(BUILD)/libotelprof-cpp.so $(RELEASES)/$(RELEASE)/libotelprof-cpp.so
published = install -m 644 $(1) $(2)/.$(notdir $(1)).$(RUN) && mv -f $(2)/.$(notdir $(1)).$(RUN) $(2)/$(notdir $(1))
# Installs completions where each shell searches by itself, below PREFIX/share.
SHARE    := $(DESTDIR)$(PREFIX)/share
COMPLETION_DIRS := $(addprefix $(SHARE)/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
completed = scripts/otelprof completion $(1) > $(SHARE)/.otelprof.$(RUN) && chmod 644 $(SHARE)/.otelprof.$(RUN) && \
            mv -f $(SHARE)/.otelprof.$(RUN) $(SHARE)/$(2)
# The command finds the release by a path relative to its own folder.
FROM_BIN  = $(shell realpath -m --relative-to=$(PREFIX)/bin $(LIBDIR))/otelprof/current
# Installs what the command needs beside it into a folder; the second argument is where the parts were built.
define install_command_files
	$(quietly)install -d $(1)/python $(1)/otelprof_lib $(1)/flamegraph $(1)/host $(1)/lib32
	$(quietly)install -m 644 $(PROTO_PY:$(BUILD)/%=$(2)/%) $(1)/python
	$(quietly)install -m 644 scripts/otelprof_lib/*.py $(1)/otelprof_lib
	$(quietly)install -m 644 scripts/flamegraph/* $(1)/flamegraph
	$(quietly)install -m 644 common/profile_kinds.def $(1)
	$(quietly)install -m 755 scripts/host/otelprof-host $(1)/host
	$(quietly)install -m 644 scripts/host/*.sh scripts/host/otelprof-preload.service scripts/host/otelprof.conf $(1)/host
	$(quietly)cut -d'"' -f2 $(2)/release.h > $(1)/host/release && chmod 644 $(1)/host/release
	$(if $(STUB_32),$(quietly)install -m 755 $(2)/lib32/libotelprof.so $(1)/lib32)
endef
install: all ## install into $(DESTDIR)$(PREFIX), the library into $(LIBDIR), beside the releases that are there
	$(quietly)rm -rf $(STAGE)
	$(quietly)install -d $(BINDIR) $(DESTDIR)$(PREFIX)/include $(STAGE)
	$(quietly)install -m 755 $(BUILD)/libotelprof.so $(BUILD)/libotelprof-flush.so $(BUILD)/libotelprof-cpp.so $(STAGE)
	$(call install_command_files,$(STAGE),$(BUILD))
	$(quietly)flock $(RELEASES) sh -c '($(whole)) || { [ ! -e $(RELEASES)/$(RELEASE) ] || \
	    mv -T $(RELEASES)/$(RELEASE) $(STAGE).damaged; mv -T $(STAGE) $(RELEASES)/$(RELEASE); }'
	$(quietly)rm -rf $(STAGE) $(STAGE).damaged
	$(quietly)$(call renamed,$(RELEASE),current)
	$(quietly)$(call renamed,current/libotelprof.so,libotelprof.so)
	$(quietly)$(call renamed,libotelprof.so,libotelprof.so.$(ABI))
	$(quietly)install -m 755 scripts/otelprof $(BINDIR)/.otelprof.$(RUN)
	$(quietly)sed -i "s|^INSTALLED=.*|INSTALLED='$(FROM_BIN)'|" $(BINDIR)/.otelprof.$(RUN)
	$(quietly)mv -f $(BINDIR)/.otelprof.$(RUN) $(BINDIR)/otelprof
	$(quietly)$(call published,shim/otelprof.h,$(DESTDIR)$(PREFIX)/include)
	$(quietly)install -d $(COMPLETION_DIRS)
	$(quietly)$(call completed,bash,bash-completion/completions/otelprof)
	$(quietly)$(call completed,zsh,zsh/site-functions/_otelprof)
	$(quietly)$(call completed,fish,fish/vendor_completions.d/otelprof.fish)
	$(quietly)install -d $(MANDIR)/man1 $(MANDIR)/man7
	$(quietly)$(call published,docs/man/otelprof.1,$(MANDIR)/man1)
	$(quietly)$(call published,docs/man/libotelprof.7,$(MANDIR)/man7)
	$(call say,INSTALL,$(RELEASES)/libotelprof.so)
	$(call say,INSTALL,$(BINDIR)/otelprof)
# Succeeds if this host loads files of the releases, now by the links of `otelprof host`, or at the next boot.
is_enabled = readlink -f /run/opentelemetry/otelprof/lib*/libotelprof-flush.so /run/opentelemetry/otelprof/lib*/*/libotelprof-flush.so | \
    cat - /etc/systemd/system/otelprof-preload.service 2>/dev/null | grep -qF "$$(realpath -m $(RELEASES))/"
uninstall: ## remove what install put there; disables the host first if it is enabled with it
	$(quietly)$(if $(DESTDIR),,! $(is_enabled) || $(BINDIR)/otelprof host disable)
	$(quietly)rm -rf $(RELEASES)
	$(quietly)rm -f $(BINDIR)/otelprof $(DESTDIR)$(PREFIX)/include/otelprof.h
	$(quietly)rm -f $(MANDIR)/man1/otelprof.1 $(MANDIR)/man7/libotelprof.7
	$(quietly)rm -f $(SHARE)/bash-completion/completions/otelprof $(SHARE)/zsh/site-functions/_otelprof $(SHARE)/fish/vendor_completions.d/otelprof.fish

include test/Makefile
include scripts/bundle/bundle.mk

# --- static checks ---

.PHONY: check format clean help
C_FILES := $(wildcard common/*.[ch] common/*/*.[ch] common/*/*/*.[ch] shim/*.[ch] shim/*/*.[ch] shim/*/*/*.[ch] shim/*/*/*/*.[ch] \
                      test/*/*.c test/*/*.h test/*/*.cpp)
check: proto-c ## words, formatting, clang-tidy, cppcheck, shellcheck, both compilers with warnings as errors
	@echo "  words"; scripts/words
	@echo "  format"; clang-format --dry-run --Werror $(C_FILES)
	@echo "  clang-tidy"; clang-tidy --quiet $(ALL_SRC) -- $(BASE) $(TEST_INCLUDES)
	@echo "  cppcheck"; cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --suppress=missingIncludeSystem \
	    --enable=warning,portability -Icommon $(TEST_INCLUDES) $(ALL_SRC)
	shellcheck -x scripts/otelprof scripts/host/otelprof-host scripts/host/*.sh
	shellcheck -x scripts/install-deps scripts/demo scripts/demo-python scripts/demo-waits scripts/bundle/fetch-sources scripts/bundle/third-party scripts/bundle/build-libraries scripts/bundle/older-names scripts/bundle/needed-glibc scripts/packages/post* scripts/packages/prerm test/collector/build test/deploy/build test/pprof/build test/spans/fetch-headers .ci/run
	$(MAKE) BUILD=$(BUILD)/gcc CC=gcc WERROR=1 all
	$(MAKE) BUILD=$(BUILD)/clang CC=clang WERROR=1 all
format: ## reformat the C sources
	clang-format -i $(C_FILES)
clean: ## remove what was built
	rm -rf $(BUILD)
help: ## this list
	@grep -hE '^[a-z_-]+:.*##' Makefile test/Makefile  scripts/bundle/bundle.mk | sed -E 's/^([a-z_-]+):.*## /\1\t/' | expand -t 14

-include $(shell find $(BUILD) \( -path $(BUILD)/suites -o -path $(BUILD)/fuzz/corpus -o -path '*/bundle-build/libraries' \) -prune -o \
    -type f -name '*.d' -print 2>/dev/null)
