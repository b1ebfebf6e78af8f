/* SPDX-License-Identifier: MIT
 * The tensor type that type.patch adds: known by name, exact for its own values, and multiplied
 * although no kernel knows it. */
#include "recipe_product.h"

enum { VALUES = RECIPE_N * RECIPE_K };

int main(void)
{
    enum tandem_type type;
    float values[VALUES];
    float back[VALUES];
    signed char bytes[VALUES];
    for (int i = 0; i < VALUES; i++) {
        values[i] = (float)(i % 41 - 20) / 16.0f;
    }
    if (!tandem_type_from_name("s8", &type) || type != TANDEM_TYPE_S8 ||
        tandem_quantize(type, values, bytes, VALUES) != TANDEM_OK ||
        tandem_dequantize(type, bytes, back, VALUES) != TANDEM_OK) {
        return 1;
    }
    for (int i = 0; i < VALUES; i++) {
        if (back[i] != values[i]) {
            return 1;
        }
    }
    return !recipe_product_is_right(type, bytes, sizeof(bytes), values, NULL);
}
