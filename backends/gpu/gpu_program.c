/* SPDX-License-Identifier: MIT
 * The programs of a device and their kernel objects. */
#include "backends/gpu/gpu_program.h"

#include <stdlib.h>
#include <string.h>
#ifdef TND_HAVE_ZLIB
#include <zlib.h>
#endif

#include "backends/gpu/gpu_binary.h"
#include "backends/gpu/gpu_trim.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "tandem/tensor.h"

enum { N_BUCKETS = 64, CACHE_BYTES_MOST = 256 << 20 };

/* A kernel object that no launch uses. */
struct spare {
    enum tnd_gpu_kernel kernel;
    struct tnd_gpu_function *handle;
};

struct tnd_gpu_program {
    struct tnd_gpu_program *next; /* in its bucket */
    enum tnd_gpu_source source;
    struct tnd_gpu_variant variant;
    struct tnd_gpu_module *handle;
    struct spare *spares;
    int n_spares;
    int spares_capacity;
};

struct tnd_gpu_programs {
    pthread_mutex_t lock; /* guards all members below; taken alone */
    struct tnd_gpu_program *buckets[N_BUCKETS];
    char *folder;                /* of the cache; NULL: off. Fixed */
    bool has_binaries;           /* programs are cached there, too. Fixed */
    struct tandem_error refused; /* why the default folder is not used. Fixed */
    char *texts;                 /* the unpacked blob. Fixed */
    int64_t n_compiled;
    int64_t n_loaded;
    int64_t build_ns;
};

/* ---- opening ---- */

enum tandem_status tnd_gpu_texts(const char *driver, char **out_texts, struct tandem_error *error)
{
    char *texts = tnd_alloc(tnd_gpu_blob_text_bytes);
    bool good = true;
    if (texts == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, driver, (int64_t)tnd_gpu_blob_text_bytes, 0,
                             "backend %s: no memory for the kernels' sources", driver);
    }
#ifdef TND_HAVE_ZLIB
    if (tnd_gpu_blob_is_deflated) {
        uLongf n = (uLongf)tnd_gpu_blob_text_bytes;
        good = uncompress((Bytef *)texts, &n, tnd_gpu_blob, (uLong)tnd_gpu_blob_bytes) == Z_OK &&
               n == tnd_gpu_blob_text_bytes;
    } else
#endif
    {
        good = !tnd_gpu_blob_is_deflated && tnd_gpu_blob_bytes == tnd_gpu_blob_text_bytes;
        if (good) {
            memcpy(texts, tnd_gpu_blob, tnd_gpu_blob_bytes);
        }
    }
    if (!good) {
        tnd_free(texts);
        return tnd_error_set(error, TANDEM_E_FORMAT, driver, 0, 0,
                             "backend %s: the kernels' sources in this library are damaged",
                             driver);
    }
    *out_texts = texts;
    return TANDEM_OK;
}

/* NULL: no cache. */
static char *usual_folder(const char *driver)
{
    struct tnd_text path = TND_TEXT_INIT;
    /* Relative paths are invalid: XDG Base Directory 0.8. */
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    if (cache != NULL && cache[0] == '/') {
        tnd_text_printf(&path, "%s/tandem/%s", cache, driver);
    } else if (home != NULL && home[0] == '/') {
        tnd_text_printf(&path, "%s/.cache/tandem/%s", home, driver);
    }
    if (path.n == 0) {
        tnd_text_fini(&path);
        return NULL;
    }
    return tnd_text_take(&path);
}

enum tandem_status tnd_gpu_programs_open(struct tnd_gpu_device *device, const char *cache,
                                         struct tandem_error *error)
{
    struct tnd_gpu_programs *programs = tnd_calloc(1, sizeof(*programs));
    if (programs == NULL) {
        return tnd_gpu_no_memory(device, sizeof(*programs), error);
    }
    enum tandem_status status = tnd_gpu_texts(device->driver->name, &programs->texts, error);
    if (status != TANDEM_OK) {
        tnd_free(programs);
        return status;
    }
    if (cache == NULL) {
        programs->folder = usual_folder(device->driver->name);
        /* programs are executed: the folder must be ours */
        if (programs->folder != NULL &&
            tnd_file_check_owner(programs->folder, &programs->refused) != TANDEM_OK) {
            tnd_free(programs->folder);
            programs->folder = NULL;
        }
    } else if (strcmp(cache, "off") != 0) {
        programs->folder = tnd_strdup(cache);
    }
    programs->has_binaries = programs->folder != NULL && (cache != NULL || !device->keeps_programs);
    if (programs->has_binaries) {
        tnd_gpu_trim(programs->folder, CACHE_BYTES_MOST);
    }
    pthread_mutex_init(&programs->lock, NULL);
    device->programs = programs;
    return TANDEM_OK;
}

static void free_program(const struct tnd_gpu_device *device, struct tnd_gpu_program *program)
{
    for (int i = 0; i < program->n_spares; i++) {
        device->driver->function_free(device->context, program->spares[i].handle);
    }
    device->driver->module_free(device->context, program->handle);
    tnd_free(program->spares);
    tnd_free(program);
}

void tnd_gpu_programs_close(struct tnd_gpu_device *device)
{
    struct tnd_gpu_programs *programs = device->programs;
    if (programs == NULL) {
        return;
    }
    for (int i = 0; i < N_BUCKETS; i++) {
        for (struct tnd_gpu_program *at = programs->buckets[i]; at != NULL;) {
            struct tnd_gpu_program *next = at->next;
            free_program(device, at);
            at = next;
        }
    }
    pthread_mutex_destroy(&programs->lock);
    tnd_free(programs->folder);
    tnd_free(programs->texts);
    tnd_free(programs);
    device->programs = NULL;
}

/* ---- options ---- */

static void add_define(struct tnd_text *out, const char *name, int32_t value)
{
    if (value != 0) {
        tnd_text_printf(out, " -D%s=%d", name, (int)value);
    }
}

/* `type` is 1 + the number of a type, or 0. */
static void add_type(struct tnd_text *out, int32_t type)
{
    if (type > 0) {
        tnd_text_printf(out, " -DTYPE=%d -DTYPE_%s=1", (int)type - 1,
                        tandem_type_name((enum tandem_type)(type - 1)));
    }
}

void tnd_gpu_program_options(const struct tnd_gpu_device *device,
                             const struct tnd_gpu_variant *variant, struct tnd_text *out)
{
    const struct tnd_gpu_caps *caps = &device->caps;
    tnd_text_add(out, device->compiler);
    add_define(out, "HAVE_FP16", caps->fp16);
    add_define(out, "HAVE_FP64", caps->fp64);
    add_define(out, "HAVE_SUBGROUPS", caps->subgroups);
    add_define(out, "HAVE_INTEL_SUBGROUPS", caps->intel_subgroups);
    add_define(out, "IS_CPU", caps->is_cpu);
    add_type(out, variant->type);
#define ADD_OPTION(member, define, what) add_define(out, define, variant->member);
    TND_GPU_OPTION_LIST(ADD_OPTION)
#undef ADD_OPTION
}

/* ---- programs ---- */

static struct tnd_gpu_program **bucket_of(struct tnd_gpu_programs *programs,
                                          enum tnd_gpu_source source,
                                          const struct tnd_gpu_variant *variant)
{
    uint64_t hash = tnd_hash_bytes(variant, sizeof(*variant), (uint64_t)source);
    return &programs->buckets[hash % N_BUCKETS];
}

/* Under the lock. */
static enum tandem_status build_program(struct tnd_gpu_device *device, const char *name,
                                        uint64_t hash, const char *text,
                                        const struct tnd_gpu_variant *variant,
                                        struct tnd_gpu_module **out_program,
                                        struct tandem_error *error)
{
    struct tnd_gpu_programs *programs = device->programs;
    const struct tnd_clock *clock = tnd_clock_real();
    struct tnd_text options = TND_TEXT_INIT;
    bool from_cache = false;
    tnd_gpu_program_options(device, variant, &options);
    if (options.failed) {
        tnd_text_fini(&options);
        return tnd_gpu_no_memory(device, 0, error);
    }
    const struct tnd_gpu_source_row *dialect = &tnd_gpu_sources[device->driver->dialect];
    const struct tnd_gpu_build build = {
        .text = {name, programs->texts + dialect->offset, text, tnd_text_string(&options)},
        .hash = tnd_hash_bytes(&hash, sizeof(hash), dialect->hash),
        .folder = programs->has_binaries ? programs->folder : NULL};
    uint64_t begin = clock->now_ns(clock);
    enum tandem_status status =
        tnd_gpu_build_program(device, &build, out_program, &from_cache, error);
    programs->build_ns += (int64_t)(clock->now_ns(clock) - begin);
    if (status == TANDEM_OK) {
        programs->n_loaded += from_cache;
        programs->n_compiled += !from_cache;
    }
    tnd_text_fini(&options);
    return status;
}

enum tandem_status tnd_gpu_program_generated(struct tnd_gpu_device *device, uint64_t hash,
                                             const char *text, struct tnd_gpu_module **out_program,
                                             struct tandem_error *error)
{
    static const struct tnd_gpu_variant plain = {0};
    pthread_mutex_lock(&device->programs->lock);
    const enum tandem_status status =
        build_program(device, TND_GPU_GENERATED, hash, text, &plain, out_program, error);
    pthread_mutex_unlock(&device->programs->lock);
    return status;
}

/* Under the lock. */
static enum tandem_status find_or_make(struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                       const struct tnd_gpu_variant *variant,
                                       struct tnd_gpu_program **out_program,
                                       struct tandem_error *error)
{
    struct tnd_gpu_program **bucket = bucket_of(device->programs, source, variant);
    for (struct tnd_gpu_program *at = *bucket; at != NULL; at = at->next) {
        if (at->source == source && memcmp(&at->variant, variant, sizeof(*variant)) == 0) {
            *out_program = at;
            return TANDEM_OK;
        }
    }
    struct tnd_gpu_program *program = tnd_calloc(1, sizeof(*program));
    if (program == NULL) {
        return tnd_gpu_no_memory(device, sizeof(*program), error);
    }
    program->source = source;
    program->variant = *variant;
    const struct tnd_gpu_source_row *row = &tnd_gpu_sources[source];
    enum tandem_status status =
        build_program(device, row->name, row->hash, device->programs->texts + row->offset, variant,
                      &program->handle, error);
    if (status != TANDEM_OK) {
        tnd_free(program);
        return status;
    }
    program->next = *bucket;
    *bucket = program;
    *out_program = program;
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_program_get(struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                       const struct tnd_gpu_variant *variant,
                                       struct tnd_gpu_program **out_program,
                                       struct tandem_error *error)
{
    pthread_mutex_lock(&device->programs->lock);
    enum tandem_status status = find_or_make(device, source, variant, out_program, error);
    pthread_mutex_unlock(&device->programs->lock);
    return status;
}

enum tnd_gpu_source tnd_gpu_program_source(const struct tnd_gpu_program *program)
{
    return program->source;
}

void tnd_gpu_programs_count(struct tnd_gpu_device *device, struct tnd_gpu_statistics *statistics)
{
    struct tnd_gpu_programs *programs = device->programs;
    pthread_mutex_lock(&programs->lock);
    statistics->programs_compiled = programs->n_compiled;
    statistics->programs_loaded = programs->n_loaded;
    statistics->build_ns = programs->build_ns;
    pthread_mutex_unlock(&programs->lock);
}

/* ---- kernel objects ---- */

/* A spare kernel object, or NULL. */
static struct tnd_gpu_function *take_spare(struct tnd_gpu_program *program,
                                           enum tnd_gpu_kernel kernel)
{
    for (int i = program->n_spares - 1; i >= 0; i--) {
        if (program->spares[i].kernel == kernel) {
            struct tnd_gpu_function *handle = program->spares[i].handle;
            program->spares[i] = program->spares[--program->n_spares];
            return handle;
        }
    }
    return NULL;
}

enum tandem_status tnd_gpu_program_take(struct tnd_gpu_device *device,
                                        struct tnd_gpu_program *program, enum tnd_gpu_kernel kernel,
                                        struct tnd_gpu_function **out_handle,
                                        struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&device->programs->lock);
    struct tnd_gpu_function *handle = take_spare(program, kernel);
    if (handle == NULL) {
        status = device->driver->function_new(device->context, program->handle,
                                              tnd_gpu_kernels[kernel].name, &handle, error);
    }
    pthread_mutex_unlock(&device->programs->lock);
    TND_TRY(status);
    *out_handle = handle;
    return TANDEM_OK;
}

static bool keep_spare(struct tnd_gpu_program *program, enum tnd_gpu_kernel kernel,
                       struct tnd_gpu_function *handle)
{
    if (program->n_spares == program->spares_capacity) {
        int capacity = program->spares_capacity * 2 + 4;
        size_t bytes = sizeof(*program->spares);
        struct spare *grown = tnd_realloc(program->spares, (size_t)program->spares_capacity * bytes,
                                          (size_t)capacity * bytes);
        if (grown == NULL) {
            return false;
        }
        program->spares = grown;
        program->spares_capacity = capacity;
    }
    program->spares[program->n_spares++] = (struct spare){kernel, handle};
    return true;
}

void tnd_gpu_program_give(struct tnd_gpu_device *device, struct tnd_gpu_program *program,
                          enum tnd_gpu_kernel kernel, struct tnd_gpu_function *handle)
{
    if (handle == NULL) {
        return;
    }
    pthread_mutex_lock(&device->programs->lock);
    if (!keep_spare(program, kernel, handle)) {
        device->driver->function_free(device->context, handle);
    }
    pthread_mutex_unlock(&device->programs->lock);
}

const char *tnd_gpu_programs_refused(const struct tnd_gpu_device *device)
{
    return device->programs->refused.text;
}

const char *tnd_gpu_programs_folder(const struct tnd_gpu_device *device)
{
    return device->programs->folder;
}
