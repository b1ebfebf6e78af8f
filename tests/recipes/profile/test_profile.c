/* SPDX-License-Identifier: MIT
 * The profile that profile.patch adds: it is in every runtime, can be forced and is right. */
#include "recipe_product.h"

int main(void)
{
    float values[RECIPE_N * RECIPE_K];
    for (int i = 0; i < RECIPE_N * RECIPE_K; i++) {
        values[i] = (float)(i % 41 - 20) / 16.0f;
    }
    return !recipe_product_is_right(TANDEM_TYPE_F32, values, sizeof(values), values, "cpu-whole");
}
