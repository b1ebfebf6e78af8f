/* SPDX-License-Identifier: MIT
 * Detects layouts by calling the host's accessors on a structure filled with numbered words: the
 * result tells which word was read. So an added or removed member is detected before anything is
 * called through it. */
#include "bridge/ggml/bridge_layout.h"

#include <stdio.h>
#include <string.h>

#include "bridge/ggml/bridge_host.h"

static char marks[GGML_WORDS]; /* their addresses are the numbers */

static void number(struct ggml_object *object)
{
    for (int i = 0; i < GGML_WORDS; i++) {
        object->word[i].p = &marks[i];
    }
}

static int number_of(const void *mark)
{
    for (int i = 0; i < GGML_WORDS; i++) {
        if (mark == &marks[i]) {
            return i;
        }
    }
    return -1;
}

static bool find_objects(struct tnd_host_layout *out, char *out_why, size_t why_bytes)
{
    struct ggml_object object;
    number(&object);
    int backend = number_of(tnd_host.ggml_backend_get_device(&object));
    int device = number_of(tnd_host.ggml_backend_dev_backend_reg(&object));
    int buft = number_of(tnd_host.ggml_backend_buft_get_device(&object));
    bool is_known = device == DEVICE_REG &&
                    (backend == BACKEND_DEVICE || backend == BACKEND_DEVICE_OLD) &&
                    (buft == BUFT_DEVICE_2 || buft == BUFT_DEVICE_3);
    if (!is_known) {
        (void)snprintf(out_why, why_bytes,
                       "ggml %s has structures of %d, %d and %d words, which it does not know",
                       tnd_host.ggml_version(), backend, device, buft);
        return false;
    }
    out->backend_device = backend;
    out->backend_compute = backend == BACKEND_DEVICE ? BACKEND_COMPUTE : BACKEND_COMPUTE_OLD;
    out->buft_device = buft;
    out->buft_is_host = buft == BUFT_DEVICE_3 ? BUFT_IS_HOST_3 : BUFT_IS_HOST_2;
    out->buft_get_alignment = buft == BUFT_DEVICE_3 ? BUFT_GET_ALIGNMENT_3 : BUFT_GET_ALIGNMENT_2;
    return true;
}

/* ---- members of a buffer: which function does the host call? ---- */

static int n_init;
static int n_set;

static int on_init(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor)
{
    (void)buffer;
    (void)tensor;
    n_init++;
    return GGML_STATUS_SUCCESS;
}

static void on_set(struct ggml_backend_buffer *buffer, struct ggml_tensor *tensor, const void *data,
                   size_t offset, size_t size)
{
    (void)buffer;
    (void)tensor;
    (void)data;
    (void)offset;
    (void)size;
    n_set++;
}

static int do_nothing(void)
{
    return 0;
}

/* Stubs are harmless for all members that a release may have at these offsets. */
static bool has_buffer_members(void)
{
    enum { LEAST_MEMBERS = 9 };
    static float value;
    union {
        struct ggml_object object;
        struct ggml_backend_buffer buffer;
    } fake;
    memset(&fake, 0, sizeof(fake));
    for (int i = 0; i < LEAST_MEMBERS; i++) {
        fake.object.word[i].fn = (ggml_any_fn)do_nothing;
    }
    fake.buffer.init_tensor = on_init;
    fake.buffer.set_tensor = on_set;
    struct ggml_tensor tensor;
    memset(&tensor, 0, sizeof(tensor));
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        tensor.ne[i] = 1;
        tensor.nb[i] = sizeof(value);
    }
    tensor.buffer = &fake.buffer;
    tensor.data = &value;
    n_init = 0;
    n_set = 0;
    (void)tnd_host.ggml_backend_buffer_init_tensor(&fake.buffer, &tensor);
    bool is_init = n_init == 1 && n_set == 0;
    tnd_host.ggml_backend_tensor_set(&tensor, &value, 0, sizeof(value));
    return is_init && n_init == 1 && n_set == 1;
}

static bool is_as_written(struct ggml_context *context)
{
    struct ggml_tensor *a = tnd_host.ggml_new_tensor_2d(context, 0, 5, 3);
    struct ggml_tensor *b = tnd_host.ggml_new_tensor_2d(context, 0, 5, 2);
    struct ggml_tensor *y = a != NULL && b != NULL ? tnd_host.ggml_mul_mat(context, a, b) : NULL;
    if (y == NULL) {
        return false;
    }
    for (int i = 0; i < GGML_OP_PARAM_WORDS; i++) {
        if (y->op_params[i] != 0) {
            return false;
        }
    }
    const char *name = tnd_host.ggml_op_name(y->op);
    return a->type == 0 && a->ne[0] == 5 && a->ne[1] == 3 && a->ne[2] == 1 && a->ne[3] == 1 &&
           a->nb[0] == 4 && a->nb[1] == 20 && a->data == tnd_host.ggml_get_data(a) &&
           a->name == tnd_host.ggml_get_name(a) && a->view_src == NULL && y->src[0] == a &&
           y->src[1] == b && y->src[2] == NULL && y->ne[0] == 3 && y->ne[1] == 2 && name != NULL &&
           strcmp(name, "MUL_MAT") == 0;
}

static bool check_tensor(char *out_why, size_t why_bytes)
{
    bool is_same = false;
    if (tnd_host.ggml_tensor_overhead() == GGML_OBJECT_BYTES + sizeof(struct ggml_tensor)) {
        struct ggml_context *context =
            tnd_host.ggml_init((struct ggml_init_params){1 << 16, NULL, false});
        if (context != NULL) {
            is_same = is_as_written(context);
            tnd_host.ggml_free(context);
        }
    }
    if (!is_same) {
        (void)snprintf(out_why, why_bytes, "ggml %s has another ggml_tensor than it knows",
                       tnd_host.ggml_version());
    }
    return is_same;
}

bool tnd_host_layout_find(struct tnd_host_layout *out, char *out_why, size_t why_bytes)
{
    if (tnd_host.major == 0 && tnd_host.minor < 9) {
        (void)snprintf(out_why, why_bytes, "ggml %s is none that it knows (0.9 and later)",
                       tnd_host.ggml_version());
        return false;
    }
    out->api_version = tnd_host.major == 0 && tnd_host.minor < 26 ? 2 : 3;
    if (!check_tensor(out_why, why_bytes) || !find_objects(out, out_why, why_bytes)) {
        return false;
    }
    out->has_buffer_members = has_buffer_members();
    return true;
}
