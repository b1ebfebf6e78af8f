# SPDX-License-Identifier: MIT
# make install and uninstall, with GNU's variables: DESTDIR, PREFIX (prefix), bindir, libdir, ...

LIBRARIES := libtandem libtandem-llama
# Programs with ggml look for libggml-NAME-*.so in their folder, for NAMEs that they know.
BRIDGE_ALIAS := libggml-blas-tandem.so
PUBLIC_HEADERS := $(wildcard include/tandem/*.h)
DOCS := $(wildcard README.md CHANGELOG.md LICENSE docs/*.md docs/*.json)
pkgconfigdir ?= $(libdir)/pkgconfig
cmakedir ?= $(libdir)/cmake/Tandem
MAJOR_MINOR := $(basename $(VERSION))
# Libs, not Requires: who links libtandem.so needs no -dev package of these.
PC_LIBS = $(strip $(if $(HWLOC),-lhwloc) $(if $(CJSON),-lcjson) \
    $(if $(PCRE2),-lpcre2-8) $(if $(UTF8PROC),-lutf8proc) $(if $(ZLIB),-lz))

# Fills the @places@ of a template; installed at once, so that no stale copy stays in build/.
define fill
sed -e 's,@prefix@,$(prefix),g' -e 's,@exec_prefix@,$(exec_prefix),g' \
    -e 's,@libdir@,$(libdir),g' -e 's,@includedir@,$(includedir),g' \
    -e 's,@version@,$(VERSION),g' -e 's,@soversion@,$(SOVERSION),g' \
    -e 's,@major_minor@,$(MAJOR_MINOR),g' -e 's,@libs@,$(PC_LIBS),g' \
    -e "s,@include_from_lib@,$$(realpath -m --relative-to='$(libdir)' '$(includedir)'),g" \
    $(1) > $(DESTDIR)$(2)
endef

.PHONY: install uninstall
install: all ## install into DESTDIR/PREFIX (/usr/local): tools, libraries, headers, documents
	$(INSTALL) -d $(addprefix $(DESTDIR),$(bindir) $(libdir) $(includedir)/tandem $(pkgconfigdir) \
	    $(cmakedir) $(docdir))
	$(INSTALL) -m 755 $(addprefix $(BIN)/,$(TOOLS)) $(DESTDIR)$(bindir)
	$(INSTALL) -m 644 $(STATIC) $(SHARED) $(LLAMA) $(LLAMA_SHARED) $(DESTDIR)$(libdir)
	$(INSTALL) -m 755 $(BRIDGE) $(DESTDIR)$(libdir)
	ln -sf $(notdir $(BRIDGE)) $(DESTDIR)$(libdir)/$(BRIDGE_ALIAS)
	for name in $(LIBRARIES); do \
	    ln -sf $$name.so.$(VERSION) $(DESTDIR)$(libdir)/$$name.so.$(SOVERSION); \
	    ln -sf $$name.so.$(SOVERSION) $(DESTDIR)$(libdir)/$$name.so; \
	done
	$(INSTALL) -m 644 $(PUBLIC_HEADERS) $(DESTDIR)$(includedir)/tandem
	$(call fill,tandem.pc.in,$(pkgconfigdir)/tandem.pc)
	$(call fill,tandem-llama.pc.in,$(pkgconfigdir)/tandem-llama.pc)
	$(call fill,tools/cmake/TandemConfig.cmake.in,$(cmakedir)/TandemConfig.cmake)
	$(call fill,tools/cmake/TandemConfigVersion.cmake.in,$(cmakedir)/TandemConfigVersion.cmake)
	$(INSTALL) -m 644 $(DOCS) $(DESTDIR)$(docdir)

uninstall: ## remove what install has put there
	rm -f $(addprefix $(DESTDIR)$(bindir)/,$(TOOLS))
	rm -f $(foreach name,$(LIBRARIES),$(addprefix $(DESTDIR)$(libdir)/$(name),.a .so .so.$(SOVERSION) \
	    .so.$(VERSION)))
	rm -f $(addprefix $(DESTDIR)$(libdir)/,$(notdir $(BRIDGE)) $(BRIDGE_ALIAS))
	rm -f $(addprefix $(DESTDIR)$(includedir)/,$(PUBLIC_HEADERS:include/%=%))
	rm -f $(addprefix $(DESTDIR)$(pkgconfigdir)/,tandem.pc tandem-llama.pc)
	rm -f $(addprefix $(DESTDIR)$(cmakedir)/,TandemConfig.cmake TandemConfigVersion.cmake)
	rm -f $(addprefix $(DESTDIR)$(docdir)/,$(notdir $(DOCS)))
	rmdir $(addprefix $(DESTDIR),$(includedir)/tandem $(cmakedir) $(docdir)) 2>/dev/null || :
