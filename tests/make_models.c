/* SPDX-License-Identifier: MIT
 * usage: make-models FOLDER [CHECKPOINT]
 * Writes one small llama in all formats that tandem-llama reads, for tests/tools.sh: a synthetic
 * one, or the given llama2.c checkpoint. FOLDER must have folders hf, torch, meta and sharded. */
#include <stdio.h>

#include "tests/support_models.h"

static bool write_all(const tandem_source *model, const char *folder)
{
    char path[4096];
#define IN(name) (snprintf(path, sizeof(path), "%s/%s", folder, name), path)
    return tnd_model_write_llama2c(model, IN("model.bin")) &&
           tnd_model_write_torch(model, IN("model.pth"), false) &&
           tnd_model_write_torch(model, IN("model.pt"), true) &&
           tnd_model_write_safetensors(model, IN("hf/model.safetensors"), 0, 1) &&
           tnd_model_write_config(model, IN("hf/config.json"), "") &&
           tnd_model_write_torch_hf(model, IN("torch/pytorch_model.bin")) &&
           tnd_model_write_config(model, IN("torch/config.json"), "") &&
           tnd_model_write_torch_llama(model, IN("meta/consolidated.00.pth"), false) &&
           tnd_model_write_params(model, IN("meta/params.json")) &&
           tnd_model_write_torch_llama(model, IN("trained.pt"), true) &&
           tnd_model_write_safetensors(model, IN("sharded/part-1.safetensors"), 0, 2) &&
           tnd_model_write_safetensors(model, IN("sharded/part-2.safetensors"), 1, 2) &&
           tnd_model_write_index(model, IN("sharded/model.safetensors.index.json"),
                                 "part-%d.safetensors", 2) &&
           tnd_model_write_config(model, IN("sharded/config.json"), "") &&
           tnd_model_write_tokenizer(IN("tokenizer.bin"), 300);
#undef IN
}

int main(int argc, char **argv)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 256,
                                             .hidden = 512,
                                             .layers = 2,
                                             .heads = 8,
                                             .kv_heads = 2,
                                             .vocabulary = 300,
                                             .context = 128};
    struct tandem_error error = {.text = ""};
    tandem_source *model = NULL;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: make-models FOLDER [CHECKPOINT]\n");
        return 2;
    }
    if ((argc == 3
             ? tandem_source_open(argv[2], &model, &error)
             : tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 7, &model, &error)) != TANDEM_OK) {
        fprintf(stderr, "make-models: %s\n", error.text);
        return 1;
    }
    const bool written = write_all(model, argv[1]);
    tandem_source_close(model);
    if (!written) {
        fprintf(stderr, "make-models: cannot write into %s\n", argv[1]);
    }
    return written ? 0 : 1;
}
