# libotelprof: `make help` lists the targets.
BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
PYTHON  := /usr/bin/python3
VERSION := 0.1.0

HARDENING := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection
WARNINGS  := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
             -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef
CFLAGS    ?= -O2 -g
BASE      := -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free \
             -DOTELPROF_VERSION='"$(VERSION)"' $(WARNINGS) $(HARDENING) -MMD -MP -Icommon
LINK      := -shared -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs -Wl,--as-needed

FLUSH_PACKAGES := libcurl libzstd zlib libprotobuf-c libdw libelf liblzma nettle libunwind-generic
FLUSH_CFLAGS   = $(shell pkg-config --cflags $(FLUSH_PACKAGES))
FLUSH_LIBS     = $(shell pkg-config --libs $(FLUSH_PACKAGES)) -liberty

# Commands are shown with V=1.
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2);)

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
COMMON_SRC  := $(wildcard common/*.c)
OTLP_SRC    := $(wildcard common/otlp/*.c)
CAPTURE_SRC := $(wildcard shim/*.c shim/capture/*.c)
FLUSH_SRC   := $(wildcard shim/flush/*.c)
PROTO       := $(wildcard proto/*.proto)
PROTO_C     := $(PROTO:proto/%.proto=$(BUILD)/proto/%.pb-c.c)
PROTO_PY    := $(PROTO:proto/%.proto=$(BUILD)/python/%_pb2.py)

CAPTURE_OBJ := $(call objects,$(COMMON_SRC) $(CAPTURE_SRC))
FLUSH_OBJ   := $(call objects,$(COMMON_SRC) $(OTLP_SRC) $(FLUSH_SRC)) $(PROTO_C:.c=.o)

.PHONY: all
all: $(BUILD)/libotelprof.so $(BUILD)/libotelprof-flush.so python ## build everything

# Capture: libc is all it may need. Flush: ordinary libraries.
$(BUILD)/libotelprof.so: $(CAPTURE_OBJ) shim/libotelprof.map
	$(call say,LINK,$@)$(CC) $(LINK) -Wl,--version-script=shim/libotelprof.map -Wl,-soname,libotelprof.so -o $@ $(CAPTURE_OBJ)

$(BUILD)/libotelprof-flush.so: $(FLUSH_OBJ) shim/libotelprof-flush.map
	$(call say,LINK,$@)$(CC) $(LINK) -Wl,--version-script=shim/libotelprof-flush.map -Wl,-soname,libotelprof-flush.so -o $@ $(FLUSH_OBJ) $(FLUSH_LIBS)

# A world's folder decides what it may include: capture sees common/, never flush/.
$(BUILD)/obj/common/%.o: common/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) $(CFLAGS) -c -o $@ $<
$(BUILD)/obj/shim/%.o: shim/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -Ishim $(CFLAGS) -c -o $@ $<
$(BUILD)/obj/shim/capture/%.o: shim/capture/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -Ishim $(CFLAGS) -c -o $@ $<
$(BUILD)/obj/shim/flush/%.o: shim/flush/%.c | proto-c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -I$(BUILD)/proto -Icommon/otlp $(FLUSH_CFLAGS) $(CFLAGS) -c -o $@ $<
$(BUILD)/obj/common/otlp/%.o: common/otlp/%.c | proto-c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -I$(BUILD)/proto -Icommon/otlp $(CFLAGS) -c -o $@ $<
$(BUILD)/proto/%.o: $(BUILD)/proto/%.c
	$(call say,CC,$<)$(CC) $(filter-out $(WARNINGS),$(BASE)) -I$(BUILD)/proto $(CFLAGS) -c -o $@ $<

.PHONY: proto-c python
proto-c: $(PROTO_C)
python: $(PROTO_PY)
$(BUILD)/proto/%.pb-c.c: proto/%.proto $(PROTO)
	@mkdir -p $(@D)
	$(call say,PROTO,$<)protoc-c -Iproto --c_out=$(@D) $<
$(BUILD)/python/%_pb2.py: proto/%.proto $(PROTO)
	@mkdir -p $(@D)
	$(call say,PROTO,$<)protoc -Iproto --python_out=$(@D) $<

.PHONY: clean help
clean: ## remove what was built
	rm -rf $(BUILD)
help: ## this list
	@grep -hE '^[a-z_-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z_-]+):.*## /\1\t/' | expand -t 14

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
