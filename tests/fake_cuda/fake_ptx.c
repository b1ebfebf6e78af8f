/* SPDX-License-Identifier: MIT
 * PTX of a pack of prebuilt kernels (mk/cuda_pack.mk): its first line says which program it is, and
 * the stand-in for NVRTC makes the same one for this CPU. Other PTX is not understood. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_launch.h"
#include "tests/fake_cuda/fake_state.h"

struct program;
struct nvrtc {
    int (*create)(struct program **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(struct program *, int, const char *const *);
    int (*get_size)(const struct program *, size_t *);
    int (*get)(const struct program *, char *);
    int (*destroy)(struct program **);
};

static bool open_nvrtc(struct nvrtc *out)
{
    static const char *const names[] = {"nvrtcCreateProgram", "nvrtcCompileProgram",
                                        "nvrtcGetCUBINSize", "nvrtcGetCUBIN",
                                        "nvrtcDestroyProgram"};
    void *library = dlopen(TND_FAKE_NVRTC, RTLD_NOW | RTLD_LOCAL);
    void *found[sizeof(names) / sizeof(names[0])];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        found[i] = library != NULL ? dlsym(library, names[i]) : NULL;
        if (found[i] == NULL) {
            return false;
        }
    }
    memcpy(out, found, sizeof(*out));
    return true;
}

/* The text of kernels that a program of this name was made from; NULL: there is none. */
static char *text_of(const char *name)
{
    char path[4096];
    char *text = NULL;
    snprintf(path, sizeof(path), "%s/%s.text", TND_FAKE_TEXTS, name);
    FILE *file = fopen(path, "rb");
    size_t n = 0;
    if (file == NULL || getdelim(&text, &n, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

static char *make(const struct nvrtc *nvrtc, const char *kernels, int n, const char *const *options)
{
    const char *const names[] = {"dialect", "kernels"};
    const char *const texts[] = {"", kernels}; /* (the dialect is its own) */
    struct program *program = NULL;
    char *image = NULL;
    size_t bytes = 0;
    if (nvrtc->create(&program, "#include \"dialect\"\nextern \"C\" {\n#include \"kernels\"\n}\n",
                      "main.cu", 2, texts, names) != 0) {
        return NULL;
    }
    if (nvrtc->compile(program, n, options) == 0 && nvrtc->get_size(program, &bytes) == 0 &&
        (image = malloc(bytes)) != NULL && nvrtc->get(program, image) != 0) {
        free(image);
        image = NULL;
    }
    nvrtc->destroy(&program);
    return image;
}

int tnd_fake_ptx_image(const char *ptx, char **out_image)
{
    static const char begin[] = "//tandem ";
    const char *options[32];
    int n = 0;
    char line[1024];
    struct nvrtc nvrtc;
    const size_t length = strcspn(ptx, "\n");
    *out_image = NULL;
    if (strncmp(ptx, begin, sizeof(begin) - 1) != 0 || length >= sizeof(line) ||
        strstr(ptx, "\n.version ") == NULL) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    memcpy(line, ptx, length);
    line[length] = '\0';
    char *rest = NULL;
    char *name = strtok_r(line + sizeof(begin) - 1, " ", &rest);
    char *text = name != NULL ? text_of(name) : NULL;
    while (n < 32 && (options[n] = strtok_r(NULL, " ", &rest)) != NULL) {
        n++;
    }
    *out_image = text != NULL && open_nvrtc(&nvrtc) ? make(&nvrtc, text, n, options) : NULL;
    free(text);
    return *out_image != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
