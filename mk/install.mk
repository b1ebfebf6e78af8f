# SPDX-License-Identifier: MIT
# make install and uninstall, with GNU's variables: DESTDIR, PREFIX (prefix), bindir, libdir, ...

LIBRARIES := libtandem libtandem-llama
# A plugin, no library to link with: a folder of its own keeps it out of the linker's way. Programs with
# ggml look for libggml-NAME-*.so in their folder of backends, for NAMEs that they know.
ggmldir ?= $(libdir)/ggml
BRIDGE_ALIAS := libggml-blas-tandem.so
PUBLIC_HEADERS := $(wildcard include/tandem/*.h)
DOCS := $(notdir $(wildcard README.md CHANGELOG.md SECURITY.md LICENSE docs/*.md docs/*.json docs/*.cast)) index.md \
    $(patsubst docs/%,%,$(wildcard docs/pictures/* docs/reports/* docs/examples/*.c)) \
    $(patsubst bindings/python/%,%,$(wildcard bindings/python/examples/*.py))
# Where the library and the tools look for it, from their own folders.
packdir := $(prefix)/share/tandem
pkgconfigdir ?= $(libdir)/pkgconfig
cmakedir ?= $(libdir)/cmake/Tandem
completiondir ?= $(datarootdir)/bash-completion/completions
zshcompletiondir ?= $(datarootdir)/zsh/site-functions
fishcompletiondir ?= $(datarootdir)/fish/vendor_completions.d
# What is installed has no debug symbols; what was built keeps them. STRIP=: keeps them there too.
STRIP ?= strip
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

.PHONY: install uninstall install-python uninstall-python
install: all $(if $(PTX),$(PTX_PACK)) ## install into DESTDIR/PREFIX (/usr/local): tools, libraries, headers, manual pages, completions, documents, examples
	$(Q)$(INSTALL) -d $(addprefix $(DESTDIR),$(bindir) $(libdir) $(ggmldir) $(includedir)/tandem \
	    $(pkgconfigdir) $(cmakedir) $(mandir)/man1 $(completiondir) \
	    $(zshcompletiondir) $(fishcompletiondir))
	$(call say,INSTALL,$(DESTDIR)$(bindir): $(TOOLS))
	$(Q)$(INSTALL) -m 755 $(addprefix $(BIN)/,$(TOOLS)) $(DESTDIR)$(bindir)
	$(Q)$(STRIP) $(addprefix $(DESTDIR)$(bindir)/,$(TOOLS))
	$(call say,INSTALL,$(DESTDIR)$(libdir): $(LIBRARIES); files for pkg-config and CMake)
	$(Q)$(INSTALL) -m 644 $(STATIC) $(SHARED) $(LLAMA) $(LLAMA_SHARED) $(DESTDIR)$(libdir)
	$(Q)$(STRIP) --strip-unneeded $(addprefix $(DESTDIR)$(libdir)/,$(notdir $(SHARED) $(LLAMA_SHARED)))
	$(Q)$(STRIP) -g $(addprefix $(DESTDIR)$(libdir)/,$(notdir $(STATIC) $(LLAMA)))
	$(call say,INSTALL,$(DESTDIR)$(ggmldir): $(notdir $(BRIDGE)))
	$(Q)$(INSTALL) -m 644 $(BRIDGE) $(DESTDIR)$(ggmldir)
	$(Q)$(STRIP) --strip-unneeded $(DESTDIR)$(ggmldir)/$(notdir $(BRIDGE))
	$(Q)ln -sf $(notdir $(BRIDGE)) $(DESTDIR)$(ggmldir)/$(BRIDGE_ALIAS)
	$(Q)for name in $(LIBRARIES); do \
	    ln -sf $$name.so.$(VERSION) $(DESTDIR)$(libdir)/$$name.so.$(SOVERSION); \
	    ln -sf $$name.so.$(SOVERSION) $(DESTDIR)$(libdir)/$$name.so; \
	done
	$(if $(MPI_LIBRARIES),$(Q)$(INSTALL) -m 644 $(MPI_LIBRARIES) $(DESTDIR)$(libdir))
	$(if $(PTX),$(Q)$(INSTALL) -d $(DESTDIR)$(packdir) && $(INSTALL) -m 644 $(PTX_PACK) $(DESTDIR)$(packdir))
	$(call say,INSTALL,$(DESTDIR)$(includedir)/tandem)
	$(Q)$(INSTALL) -m 644 $(PUBLIC_HEADERS) $(DESTDIR)$(includedir)/tandem
	$(Q)$(call fill,tandem.pc.in,$(pkgconfigdir)/tandem.pc)
	$(Q)$(call fill,tandem-llama.pc.in,$(pkgconfigdir)/tandem-llama.pc)
	$(Q)$(call fill,tools/cmake/TandemConfig.cmake.in,$(cmakedir)/TandemConfig.cmake)
	$(Q)$(call fill,tools/cmake/TandemConfigVersion.cmake.in,$(cmakedir)/TandemConfigVersion.cmake)
	$(call say,INSTALL,$(DESTDIR)$(mandir)/man1: manual pages; completions for bash and zsh and fish)
	$(Q)for tool in $(TOOLS); do \
	    bash mk/man_page.sh $(BIN)/$$tool $(VERSION) $(docdir) > $(DESTDIR)$(mandir)/man1/$$tool.1 || exit 1; \
	    bash mk/completion.sh $(BIN)/$$tool > $(DESTDIR)$(completiondir)/$$tool || exit 1; \
	    bash mk/completion.sh $(BIN)/$$tool zsh > $(DESTDIR)$(zshcompletiondir)/_$$tool || exit 1; \
	    bash mk/completion.sh $(BIN)/$$tool fish > $(DESTDIR)$(fishcompletiondir)/$$tool.fish || exit 1; \
	done
	$(call say,INSTALL,$(DESTDIR)$(docdir): documents and examples)
	$(Q)bash mk/install_docs.sh $(DESTDIR)$(docdir)
	@$(if $(DESTDIR),,$(next_steps))

# Behind an installation into the running system.
define next_steps
echo; echo "Installed into $(prefix). What to do next:"; echo; \
echo "  ldconfig"; \
echo "      as root, so that programs find libtandem.so.$(SOVERSION)"; \
echo "      (without rights: export LD_LIBRARY_PATH=$(libdir))"; \
echo "  $(bindir)/mulmat-tune bench --model 1.1B --type q4_0"; \
echo "      once, on a machine with a GPU or many cores: measures what is fastest"; \
echo "  export GGML_BACKEND_PATH=$(ggmldir)/$(notdir $(BRIDGE))"; \
echo "      for llama.cpp and other programs with ggml"; \
echo "  make install-python"; \
echo "      the package tandem_infer for Python, over these libraries"; \
echo; echo "$(docdir)/README.md says more; make uninstall removes all."
endef

uninstall: uninstall-python ## remove what install and install-python have put there
	$(call say,REMOVE,all that was installed below $(DESTDIR)$(prefix))
	$(Q)rm -f $(addprefix $(DESTDIR)$(bindir)/,$(TOOLS)) $(TOOLS:%=$(DESTDIR)$(mandir)/man1/%.1) \
	    $(addprefix $(DESTDIR)$(completiondir)/,$(TOOLS)) $(TOOLS:%=$(DESTDIR)$(zshcompletiondir)/_%) \
	    $(TOOLS:%=$(DESTDIR)$(fishcompletiondir)/%.fish)
	$(Q)rm -f $(foreach name,$(LIBRARIES),$(addprefix $(DESTDIR)$(libdir)/$(name),.a .so .so.$(SOVERSION) \
	    .so.$(VERSION)))
	$(Q)rm -f $(DESTDIR)$(packdir)/$(notdir $(PTX_PACK))
	$(Q)rm -f $(addprefix $(DESTDIR)$(libdir)/libtandem-mpi,-openmpi.so -mpich.so .so)
	$(Q)rm -f $(addprefix $(DESTDIR)$(ggmldir)/,$(notdir $(BRIDGE)) $(BRIDGE_ALIAS))
	$(Q)rm -f $(addprefix $(DESTDIR)$(includedir)/,$(PUBLIC_HEADERS:include/%=%))
	$(Q)rm -f $(addprefix $(DESTDIR)$(pkgconfigdir)/,tandem.pc tandem-llama.pc)
	$(Q)rm -f $(addprefix $(DESTDIR)$(cmakedir)/,TandemConfig.cmake TandemConfigVersion.cmake)
	$(Q)rm -f $(addprefix $(DESTDIR)$(docdir)/,$(DOCS))
	$(Q)rmdir $(addprefix $(DESTDIR),$(includedir)/tandem $(cmakedir) $(ggmldir) $(packdir) \
	    $(addprefix $(docdir)/,examples pictures reports) $(docdir)) 2>/dev/null || :

# ---- Python --------------------------------------------------------------------------------------
# The package without libraries inside: it loads those of `make install`. (A wheel carries its own:
# pip install ./bindings/python.) The folder is what this machine's python3 searches below the prefix:
# dist-packages on Debian, where /usr has one for all versions, else site-packages.
PYTHON ?= python3
pythondir ?= $(shell $(PYTHON) -c 'import os, sys, sysconfig; \
    last = os.path.basename(sysconfig.get_path("purelib")); \
    all = last == "dist-packages" and "$(prefix)" == "/usr"; \
    print("$(prefix)/lib/python%s/%s" % ("3" if all else "%d.%d" % sys.version_info[:2], last))')
PYTHON_FILES := $(wildcard bindings/python/tandem_infer/*.py bindings/python/tandem_infer/py.typed)
PYTHON_INFO = $(DESTDIR)$(pythondir)/tandem_infer-$(VERSION).dist-info

install-python: ## install the Python package over the installed libraries (PYTHON=python3, pythondir=...)
	@$(if $(pythondir),:,echo "$(PYTHON) was not found: install it, or name it: PYTHON=..."; exit 1)
	$(call say,INSTALL,$(DESTDIR)$(pythondir)/tandem_infer)
	$(Q)$(INSTALL) -d $(DESTDIR)$(pythondir)/tandem_infer $(PYTHON_INFO)
	$(Q)$(INSTALL) -m 644 $(PYTHON_FILES) $(DESTDIR)$(pythondir)/tandem_infer
	@printf 'Metadata-Version: 2.1\nName: tandem-infer\nVersion: $(VERSION)\n' > $(PYTHON_INFO)/METADATA
	@sed -n 's/^description = "\(.*\)"/Summary: \1/p; s/^requires-python = "\(.*\)"/Requires-Python: \1/p' \
	    bindings/python/pyproject.toml >> $(PYTHON_INFO)/METADATA
	@echo make > $(PYTHON_INFO)/INSTALLER
	@$(if $(DESTDIR),,echo; echo "Try it:"; \
	    echo "  $(PYTHON) -c 'import tandem_infer; print(tandem_infer.version())'")

uninstall-python:
	$(Q)$(if $(pythondir),rm -rf $(DESTDIR)$(pythondir)/tandem_infer $(PYTHON_INFO))
