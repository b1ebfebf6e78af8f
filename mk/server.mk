# SPDX-License-Identifier: MIT
# tandem-server: built where libmicrohttpd and cJSON are. NO_SERVER=1 leaves it out although they are.

MICROHTTPD := $(if $(NO_SERVER),,$(call have,libmicrohttpd))
SERVER := $(if $(NO_CJSON),,$(if $(call have,libcjson),$(MICROHTTPD)))
SERVER_CFLAGS := $(if $(SERVER),$(shell $(PKG_CONFIG) --cflags libmicrohttpd))
SERVER_LIBS := $(if $(SERVER),$(shell $(PKG_CONFIG) --libs libmicrohttpd))

# For the suite and the fuzz targets: all of it but main.
server_SRC := $(filter-out %/main.c,$(wildcard tools/tandem-server/*.c))
tandem-server_LIBS := $(SERVER_LIBS)
server_SUITE_LIBS := $(SERVER_LIBS)
$(OBJ)/tools/tandem-server/%.o: private TND_CPPFLAGS += $(SERVER_CFLAGS)
ifeq ($(SERVER),)
SERVER_LEFT_OUT := tandem-server
SERVER_TESTS := tests/suite_server% tests/fuzz/fuzz_server%
endif

# Many clients at once, for tests/server.sh.
SERVER_LOAD := $(BUILD)/server-load
.PHONY: server-load
server-load: $(SERVER_LOAD)
$(SERVER_LOAD): tests/server_load.c $(BUILD)/flags.stamp
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(WARN) -D_GNU_SOURCE $(LDSAN) $(CFLAGS) $(LDFLAGS) -o $@ $< -pthread
