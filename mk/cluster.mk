# SPDX-License-Identifier: MIT
# libtandem-mpi*.so: the only part that is linked with an MPI, one for each that is found (Debian has Open
# MPI and MPICH beside each other). MPICC=COMPILER builds libtandem-mpi.so with the MPI of that wrapper
# instead; NO_MPI=1 leaves all out. A program loads the one of its launcher (cluster/open_mpi.c).

MPICC ?=
MPI_FOUND := $(if $(NO_MPI)$(MPICC)$(SAN),,$(if $(call have,ompi-c),openmpi) $(if $(call have,mpich),mpich))
MPI_PC_openmpi := ompi-c
MPI_PC_mpich := mpich
MPI_LIBRARIES := $(strip $(if $(NO_MPI),,$(if $(MPICC),$(BIN)/libtandem-mpi.so,\
    $(MPI_FOUND:%=$(BIN)/libtandem-mpi-%.so))))

.PHONY: cluster
cluster: $(MPI_LIBRARIES) ## build libtandem-mpi*.so, for several machines (docs/cluster.md)

# (-isystem: MPI's headers are not ours to warn about.)
MPI_BUILD = $(Q)$(1) -std=c11 $(WARN) -D_GNU_SOURCE -I. -Iinclude -fPIC -fvisibility=hidden -shared \
    $(HARDENING) $(HARDENING_LD) $(NO_UNDEFINED) $(CFLAGS) $(LDFLAGS) -o $@ $< $(2) -pthread
MPI_NEEDS := cluster/mpi/mpi_transport.c cluster/mpi_library.h include/tandem/communicator.h $(BUILD)/flags.stamp

$(BIN)/libtandem-mpi-%.so: $(MPI_NEEDS)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(call MPI_BUILD,$(CC),$(subst -I/,-isystem /,$(shell $(PKG_CONFIG) --cflags --libs $(MPI_PC_$*))))
$(BIN)/libtandem-mpi.so: $(MPI_NEEDS)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(call MPI_BUILD,$(MPICC),)

# A switch between network namespaces, for tests/netns.sh.
.PHONY: shaped-switch
shaped-switch: $(BUILD)/shaped-switch
$(BUILD)/shaped-switch: tests/shaped_switch.c $(BUILD)/flags.stamp
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(WARN) -D_GNU_SOURCE $(LDSAN) $(CFLAGS) $(LDFLAGS) -o $@ $<
