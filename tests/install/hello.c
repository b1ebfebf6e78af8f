/* SPDX-License-Identifier: MIT
 * The tiny program that is built against an installed Tandem (tools/dev/check_install.sh). */
#include <stdio.h>
#include <string.h>

#include <tandem/tandem.h>

int main(void)
{
    tandem_context *context = NULL;
    struct tandem_error error;
    if (tandem_context_new(NULL, &context, &error) != TANDEM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    int64_t ne[] = {4, 2};
    const tandem_tensor *tensor = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, ne);
    int64_t elements = tensor != NULL ? tandem_tensor_elements(tensor) : 0;
    tandem_context_free(context);
    printf("tandem %s\n", tandem_version());
    return elements == 8 && strcmp(tandem_version(), TANDEM_VERSION_STRING) == 0 ? 0 : 1;
}
