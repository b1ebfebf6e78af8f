/* SPDX-License-Identifier: MIT
 * Detects the launcher that started this process and loads the library for its MPI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dl.h"
#include "cluster/mpi_library.h"

enum { PATH = 4096, MOST_RANKS = 1 << 20 };

/* Environment variables set by launchers, and the usual MPI of each. (Slurm sets the number of
 * ranks whatever MPI runs, so it counts only together with a PMIx rank.) */
static const struct launcher {
    const char *count, *beside, *library;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", NULL, "openmpi"}, /* Open MPI's mpirun */
    {"PMI_SIZE", NULL, "mpich"},               /* Hydra: MPICH, Intel MPI; srun --mpi=pmi2 */
    {"SLURM_NTASKS", "PMIX_RANK", "openmpi"},  /* srun --mpi=pmix */
};

static const struct launcher *find_launcher(int *out_count)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        const char *text = getenv(launchers[i].count);
        const long count = text != NULL ? strtol(text, NULL, 10) : 0;
        const char *beside = launchers[i].beside;
        if (count > 0 && count < MOST_RANKS && (beside == NULL || getenv(beside) != NULL)) {
            *out_count = (int)count;
            return &launchers[i];
        }
    }
    *out_count = 0;
    return NULL;
}

int tandem_communicator_launched(void)
{
    int count;
    (void)find_launcher(&count);
    return count;
}

/* Folder of this library, or of the program that it is linked into; ends with '/'. */
static void find_folder(char out[PATH])
{
    const char *path = tnd_dl_path((void (*)(void))tandem_communicator_open);
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    out[0] = '\0';
    if (slash != NULL && slash - path + 1 < PATH) {
        memcpy(out, path, (size_t)(slash - path + 1));
        out[slash - path + 1] = '\0';
    }
}

/* Opens the library for a launcher's MPI: from our own folder, from lib/ next to bin/, or from the
 * system's search path. A build with MPICC set leaves the MPI's name out of the file's. */
static enum tandem_status open_library(const char *mpi, tnd_mpi_transport_fn *out_start,
                                       struct tandem_error *error)
{
    struct table {
        tnd_mpi_transport_fn start;
    } table = {NULL};
    static const struct tnd_dl_symbol symbol =
        TND_DL_REQUIRED(struct table, start, TND_MPI_LIBRARY_ENTRY);
    enum { NAMES = 6 };
    char folder[PATH];
    char names[NAMES][PATH + 64];
    const char *list[NAMES + 1] = {NULL};
    void *library = NULL;
    find_folder(folder);
    for (int i = 0; i < NAMES; i++) {
        const bool is_named = i % 2 == 0;
        snprintf(names[i], sizeof(names[i]), "%s%slibtandem-mpi%s%s.so", i < 4 ? folder : "",
                 i / 2 == 1 ? "../lib/" : "", is_named ? "-" : "", is_named ? mpi : "");
        list[i] = names[i];
    }
    TND_TRY(tnd_dl_open(list, &symbol, 1, &table, &library, error));
    *out_start = table.start; /* never unloaded: MPI cannot be started twice */
    return TANDEM_OK;
}

enum tandem_status tandem_communicator_open(tandem_communicator **out_communicator,
                                            struct tandem_error *error)
{
    struct tandem_transport transport = {.size = sizeof(transport)};
    struct tandem_error reason = {.text = ""};
    char why[200] = "";
    int count;
    const struct launcher *launcher = find_launcher(&count);
    tnd_mpi_transport_fn start = NULL;
    TND_REQUIRE(out_communicator, "communicator_open", error);
    const char *mpi = launcher != NULL ? launcher->library : "openmpi";
    if (open_library(mpi, &start, &reason) != TANDEM_OK) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "cluster", count, 0,
                             "cluster: %d processes were started together, and there is no "
                             "libtandem-mpi-%s.so or libtandem-mpi.so that loads (make builds it "
                             "where an MPI is installed): %.80s",
                             count, mpi, reason.text);
    }
    if (!start(TANDEM_VERSION_STRING, &transport, why, sizeof(why))) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "cluster", count, 0,
                             "cluster: %s", why);
    }
    return tandem_communicator_new(&transport, out_communicator, error);
}
