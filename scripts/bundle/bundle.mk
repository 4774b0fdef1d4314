# `make bundle` makes the two objects and the command, with all that the exporter needs inside. The bundle runs wherever
# there is glibc 2.34 or newer. Debian's source packages (`sources`) are kept in BUNDLE_SOURCES. The packages, the list of
# materials and the licences are written from the table of the packages that were really built: the bundle's
# licences/sources. `make bundle LATEST=1` first updates `sources` to the archive's current versions.
BUNDLE         := $(BUILD)/bundle
BUNDLE_BUILD   := $(BUILD)/bundle-build
BUNDLE_SOURCES ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/otelprof/sources
BUNDLE_NAME     = libotelprof-$(VERSION)-$(ARCH)
BUNDLE_TREE    := $(BUNDLE_BUILD)/$(BUNDLE_NAME)
BUNDLE_OBJECTS  = $(addprefix $(BUNDLE_TREE)/,libotelprof.so libotelprof-flush.so libotelprof-cpp.so)
# Names the newest glibc that the bundle may need, wherever it is built.
BUNDLE_GLIBC   := 2.34
# Names the maintainer in the packages, and the date of everything in them.
MAINTAINER     ?= The otelprof maintainers <otelprof@example.com>
SOURCE_DATE_EPOCH ?= $(shell date -u -d $(RELEASED) +%s)

# Lists libraries so that each comes before those that it needs.
BUNDLED    := curl mbedtls mbedx509 mbedcrypto nghttp2 zstd protobuf-c dw dwelf ebl elf eu z lzma nettle yaml microhttpd \
              unwind-x86_64 unwind-dwarf-generic unwind-dwarf-common unwind-elf64 unwind iberty
# Packs a release with the times and owners of no user: two builds of one commit are equal.
same_bytes := --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar

.PHONY: bundle packages
bundle: ## two objects that need glibc alone, and the command, in build/bundle, with the packages of them
	scripts/install-deps build bundle
	scripts/bundle/fetch-sources $(if $(filter 1,$(LATEST)),--latest) $(BUNDLE_SOURCES) $(BUNDLE_BUILD)/sources.used
	scripts/bundle/build-libraries $(BUNDLE_SOURCES) $(BUNDLE_BUILD)/sources.used $(BUNDLE_BUILD)/libraries
	$(MAKE) -j$(shell nproc) BUILD=$(BUNDLE_BUILD) LDFLAGS='-Wl,--gc-sections $(LDFLAGS)' FLUSH_CFLAGS='-DHTTP_LIBRARY_LINKED -include scripts/bundle/older_glibc.h -isystem $(abspath $(BUNDLE_BUILD))/libraries/include' \
	    FLUSH_LIBS='-L$(abspath $(BUNDLE_BUILD))/libraries/lib $(BUNDLED:%=-l%) -Wl,--defsym=gmtime_r=bundled_gmtime_r' all
	rm -rf $(BUNDLE_TREE)
	install -d $(BUNDLE_TREE)/licences
	strip --strip-debug -o $(BUNDLE_TREE)/libotelprof.so $(BUNDLE_BUILD)/libotelprof.so
	strip --strip-debug -o $(BUNDLE_TREE)/libotelprof-flush.so $(BUNDLE_BUILD)/libotelprof-flush.so
	strip --strip-debug -o $(BUNDLE_TREE)/libotelprof-cpp.so $(BUNDLE_BUILD)/libotelprof-cpp.so
	scripts/bundle/needed-glibc $(BUNDLE_GLIBC) $(BUNDLE_OBJECTS)
	install -m 755 scripts/otelprof $(BUNDLE_TREE)
	$(call install_command_files,$(BUNDLE_TREE),$(BUNDLE_BUILD))
	scripts/bundle/third-party $(BUNDLE_BUILD)/libraries/sources > $(BUNDLE_BUILD)/THIRD_PARTY.md
	install -m 644 shim/otelprof.h LICENSE $(BUNDLE_BUILD)/THIRD_PARTY.md $(BUNDLE_TREE)
	install -m 644 $(BUNDLE_BUILD)/libraries/licences/* $(BUNDLE_BUILD)/libraries/sources $(BUNDLE_TREE)/licences
	$(MAKE) packages
# Copies the files themselves, too, for users who copy them.
packages: ## the bundle's tar.gz, .deb, .rpm, OCI image and list of materials (SPDX), of what `make bundle` has built
	glibc=$$(scripts/bundle/needed-glibc $(BUNDLE_GLIBC) $(BUNDLE_OBJECTS)) && \
	scripts/packages/build --version $(VERSION) --arch $(ARCH) --glibc $$glibc --date $(SOURCE_DATE_EPOCH) --maintainer '$(MAINTAINER)' \
	    $(BUNDLE_TREE) $(BUNDLE_BUILD)/libraries/bin/cp $(BUNDLE_BUILD)/packages
	tar -C $(BUNDLE_BUILD) $(same_bytes) -cf - $(BUNDLE_NAME) | gzip -9n > $(BUNDLE_BUILD)/packages/$(BUNDLE_NAME).tar.gz
	rm -rf $(BUNDLE)
	cp -R $(BUNDLE_TREE) $(BUNDLE)
	mv $(BUNDLE_BUILD)/packages/* $(BUNDLE)
