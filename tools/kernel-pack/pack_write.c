/* SPDX-License-Identifier: MIT
 * Writes the header (enums, typed functions) and the source (blob, tables, bodies). */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef TND_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/hash.h"
#include "pack.h"

static const char head[] =
    "/* SPDX-License-Identifier: MIT\n * Made by tools/kernel-pack from backends/opencl/kernels. "
    "*/\n";

static void add_upper(struct pack_text *out, const char *name)
{
    for (; *name != '\0'; name++) {
        char c = (char)toupper((unsigned char)*name);
        pack_add(out, &c, 1);
    }
}

static void add_enums(const struct pack *pack, struct pack_text *out)
{
    pack_printf(out, "enum tnd_gpu_source {\n");
    for (int i = 0; i < pack->n_sources; i++) {
        pack_printf(out, "    TND_GPU_SOURCE_");
        add_upper(out, pack->sources[i].name);
        pack_printf(out, ",\n");
    }
    pack_printf(out, "    TND_GPU_SOURCE_COUNT\n};\n\nenum tnd_gpu_kernel {\n");
    for (int i = 0; i < pack->n_kernels; i++) {
        pack_printf(out, "    TND_GPU_KERNEL_");
        add_upper(out, pack->kernels[i].name);
        pack_printf(out, ",\n");
    }
    pack_printf(out, "    TND_GPU_KERNEL_COUNT\n};\n\n");
}

static void add_prototype(const struct pack_kernel *kernel, struct pack_text *out)
{
    pack_printf(out, "enum tandem_status tnd_gpu_bind_%s(struct tnd_gpu_launch *launch",
                kernel->name);
    for (int i = 0; i < kernel->n_args; i++) {
        const struct pack_arg *arg = &kernel->args[i];
        if (arg->kind == PACK_RANGE) {
            pack_printf(out, ",\n    struct tnd_gpu_range %s", arg->name);
        } else if (arg->kind == PACK_LOCAL) {
            pack_printf(out, ",\n    size_t %s_bytes", arg->name);
        } else {
            pack_printf(out, ",\n    %s %s", arg->c_type, arg->name);
        }
    }
    pack_printf(out, ",\n    struct tandem_error *error)");
}

void pack_write_header(const struct pack *pack, struct pack_text *out)
{
    pack_printf(out, "%s#ifndef TND_GPU_KERNELS_H\n#define TND_GPU_KERNELS_H\n\n", head);
    pack_printf(out, "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
                     "#include \"backends/gpu/driver.h\"\n\n");
    add_enums(pack, out);
    pack_printf(
        out,
        "struct tnd_gpu_launch; /* gpu_launch.h */\n\n"
        "/** A place in device memory: bytes from the start of a buffer. */\n"
        "struct tnd_gpu_range {\n    struct tnd_gpu_buffer *buffer;\n    uint64_t offset;\n};\n\n");
    pack_printf(out, "/** Where a source stands in the unpacked blob. */\n"
                     "struct tnd_gpu_source_row {\n    const char *name;\n    size_t offset;\n"
                     "    size_t bytes;\n    uint64_t hash;\n};\n"
                     "struct tnd_gpu_kernel_row {\n    const char *name;\n"
                     "    enum tnd_gpu_source source;\n};\n");
    pack_printf(out,
                "extern const struct tnd_gpu_source_row tnd_gpu_sources[TND_GPU_SOURCE_COUNT];\n"
                "extern const struct tnd_gpu_kernel_row tnd_gpu_kernels[TND_GPU_KERNEL_COUNT];\n"
                "extern const unsigned char tnd_gpu_blob[];\n"
                "extern const size_t tnd_gpu_blob_bytes; /* as it stands here */\n"
                "extern const size_t tnd_gpu_blob_text_bytes; /* unpacked */\n"
                "extern const bool tnd_gpu_blob_is_deflated; /* else it is the text itself */\n\n");
    for (int i = 0; i < pack->n_kernels; i++) {
        add_prototype(&pack->kernels[i], out);
        pack_printf(out, ";\n");
    }
    pack_printf(out, "\n#endif\n");
}

/* ---- the source ---- */

static void add_argument(struct pack_text *out, int index, const char *bytes, const char *value)
{
    pack_printf(out, "    TND_TRY(tnd_gpu_launch_argument(launch, %d, %s, %s, error));\n", index,
                bytes, value);
}

static void add_body(const struct pack_kernel *kernel, struct pack_text *out)
{
    char bytes[PACK_MAX_NAME + 32];
    char value[PACK_MAX_NAME + 32];
    add_prototype(kernel, out);
    pack_printf(out, "\n{\n    TND_TRY(tnd_gpu_launch_take(launch, TND_GPU_KERNEL_");
    add_upper(out, kernel->name);
    pack_printf(out, ", error));\n");
    int index = 0;
    for (int i = 0; i < kernel->n_args; i++) {
        const struct pack_arg *arg = &kernel->args[i];
        if (arg->kind == PACK_LOCAL) {
            snprintf(bytes, sizeof(bytes), "%s_bytes", arg->name);
            add_argument(out, index++, bytes, "NULL");
            continue;
        }
        const char *member = arg->kind == PACK_RANGE ? ".buffer" : "";
        snprintf(bytes, sizeof(bytes), "sizeof(%s%s)", arg->name, member);
        snprintf(value, sizeof(value), "&%s%s", arg->name, member);
        add_argument(out, index++, bytes, value);
        if (arg->kind == PACK_RANGE) {
            snprintf(bytes, sizeof(bytes), "sizeof(%s.offset)", arg->name);
            snprintf(value, sizeof(value), "&%s.offset", arg->name);
            add_argument(out, index++, bytes, value);
        }
    }
    pack_printf(out, "    return TANDEM_OK;\n}\n\n");
}

/* Concatenates all sources, each with a zero byte. */
static void add_tables(const struct pack *pack, struct pack_text *out, struct pack_text *text)
{
    pack_printf(out, "const struct tnd_gpu_source_row tnd_gpu_sources[TND_GPU_SOURCE_COUNT] = {\n");
    for (int i = 0; i < pack->n_sources; i++) {
        const struct pack_text *source = &pack->sources[i].text;
        pack_printf(out, "    {\"%s\", %zu, %zu, UINT64_C(0x%016llx)},\n", pack->sources[i].name,
                    text->n, source->n,
                    (unsigned long long)tnd_hash_bytes(source->bytes, source->n, 0));
        pack_add(text, source->bytes, source->n + 1);
    }
    pack_printf(
        out, "};\n\nconst struct tnd_gpu_kernel_row tnd_gpu_kernels[TND_GPU_KERNEL_COUNT] = {\n");
    for (int i = 0; i < pack->n_kernels; i++) {
        pack_printf(out, "    {\"%s\", TND_GPU_SOURCE_", pack->kernels[i].name);
        add_upper(out, pack->sources[pack->kernels[i].source].name);
        pack_printf(out, "},\n");
    }
    pack_printf(out, "};\n\n");
}

static bool deflate_text(const struct pack_text *text, struct pack_text *out)
{
#ifdef TND_HAVE_ZLIB
    uLongf n = compressBound((uLong)text->n);
    unsigned char *bytes = malloc(n);
    if (bytes == NULL ||
        compress2(bytes, &n, (const Bytef *)text->bytes, (uLong)text->n, 9) != Z_OK) {
        pack_fail("kernel-pack", 0, "the sources cannot be compressed");
    }
    pack_add(out, (const char *)bytes, n);
    free(bytes);
    return true;
#else
    pack_add(out, text->bytes, text->n);
    return false;
#endif
}

static void add_blob(struct pack_text *out, const struct pack_text *text)
{
    struct pack_text blob = {0};
    bool is_deflated = deflate_text(text, &blob);
    pack_printf(out, "const unsigned char tnd_gpu_blob[] = {");
    for (size_t i = 0; i < blob.n; i++) {
        pack_printf(out, "%s%u,", i % 24 == 0 ? "\n    " : "",
                    (unsigned)(unsigned char)blob.bytes[i]);
    }
    pack_printf(out,
                "\n};\nconst size_t tnd_gpu_blob_bytes = %zu;\n"
                "const size_t tnd_gpu_blob_text_bytes = %zu;\n"
                "const bool tnd_gpu_blob_is_deflated = %s;\n",
                blob.n, text->n, is_deflated ? "true" : "false");
    free(blob.bytes);
}

void pack_write_source(const struct pack *pack, struct pack_text *out)
{
    struct pack_text text = {0};
    pack_printf(out, "%s#include \"backends/gpu/gpu_launch.h\"\n\n", head);
    for (int i = 0; i < pack->n_kernels; i++) {
        add_body(&pack->kernels[i], out);
    }
    add_tables(pack, out, &text);
    add_blob(out, &text);
    free(text.bytes);
}
