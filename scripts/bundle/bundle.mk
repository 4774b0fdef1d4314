# `make bundle`: the two objects and the command, with all that the exporter needs inside. It runs wherever there is
# glibc 2.34 or newer. Debian's source packages (`sources`) are kept in BUNDLE_SOURCES.
BUNDLE         := $(BUILD)/bundle
BUNDLE_BUILD   := $(BUILD)/bundle-build
BUNDLE_SOURCES ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/otelprof/sources
BUNDLE_NAME     = libotelprof-$(VERSION)-$(ARCH)

# In an order in which each has what it needs behind it.
BUNDLED    := curl mbedtls mbedx509 mbedcrypto nghttp2 zstd protobuf-c dw dwelf ebl elf eu z lzma nettle \
              unwind-x86_64 unwind-dwarf-generic unwind-dwarf-common unwind-elf64 unwind iberty
# What a release holds, with the times and owners of nobody: two builds of one commit are the same.
same_bytes := --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar

.PHONY: bundle
bundle: ## two objects that need glibc alone, and the command, in build/bundle and as an archive there
	scripts/install-deps build bundle
	scripts/bundle/fetch-sources $(BUNDLE_SOURCES)
	scripts/bundle/build-libraries $(BUNDLE_SOURCES) $(BUNDLE_BUILD)/libraries
	$(MAKE) BUILD=$(BUNDLE_BUILD) LDFLAGS='-Wl,--gc-sections $(LDFLAGS)' FLUSH_CFLAGS='-isystem $(abspath $(BUNDLE_BUILD))/libraries/include' \
	    FLUSH_LIBS='-L$(abspath $(BUNDLE_BUILD))/libraries/lib $(BUNDLED:%=-l%) -Wl,--defsym=gmtime_r=bundled_gmtime_r' all
	rm -rf $(BUNDLE)
	install -d $(BUNDLE)/licences
	strip --strip-debug -o $(BUNDLE)/libotelprof.so $(BUNDLE_BUILD)/libotelprof.so
	strip --strip-debug -o $(BUNDLE)/libotelprof-flush.so $(BUNDLE_BUILD)/libotelprof-flush.so
	install -m 755 scripts/otelprof $(BUNDLE)
	$(call install_command_files,$(BUNDLE),$(BUNDLE_BUILD))
	install -m 644 LICENSE THIRD_PARTY.md $(BUNDLE)
	install -m 644 $(BUNDLE_BUILD)/libraries/licences/* scripts/bundle/sources $(BUNDLE)/licences
	tar -C $(BUNDLE) $(same_bytes) --transform='s,^\.,$(BUNDLE_NAME),' -cf - . | gzip -9n > $(BUNDLE_BUILD)/$(BUNDLE_NAME).tar.gz
	mv $(BUNDLE_BUILD)/$(BUNDLE_NAME).tar.gz $(BUNDLE)
