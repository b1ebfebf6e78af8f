/* SPDX-License-Identifier: MIT
 * The templates, after the model cards of Llama 2, Llama 3 and Mistral 7B Instruct and OpenAI's
 * description of ChatML. */
#include "llama/chat.h"

#include <string.h>

static const struct tnd_chat_template templates[] = {
    {.name = "llama-2",
     .system_before = "[INST] <<SYS>>\n",
     .system_after = "\n<</SYS>>\n\n",
     .first_user_before = "",
     .user_before = "[INST] ",
     .user_after = " [/INST]",
     .begins_every_turn = true},
    {.name = "llama-3",
     .system_before = "<|start_header_id|>system<|end_header_id|>\n\n",
     .system_after = "<|eot_id|>",
     .first_user_before = "<|start_header_id|>user<|end_header_id|>\n\n",
     .user_before = "<|start_header_id|>user<|end_header_id|>\n\n",
     .user_after = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
     .answer_end = "<|eot_id|>",
     .stop = "<|eot_id|>",
     .has_special_tokens = true},
    {.name = "mistral-instruct",
     .system_before = "[INST] ",
     .system_after = "\n\n",
     .first_user_before = "",
     .user_before = "[INST] ",
     .user_after = " [/INST]"},
    {.name = "chatml",
     .system_before = "<|im_start|>system\n",
     .system_after = "<|im_end|>\n",
     .first_user_before = "<|im_start|>user\n",
     .user_before = "<|im_start|>user\n",
     .user_after = "<|im_end|>\n<|im_start|>assistant\n",
     .answer_end = "<|im_end|>\n",
     .stop = "<|im_end|>",
     .has_special_tokens = true},
    {.name = "plain",
     .system_before = "",
     .system_after = "\n\n",
     .first_user_before = "",
     .user_before = "",
     .user_after = "",
     .answer_end = "\n"},
};
enum { N_TEMPLATES = sizeof(templates) / sizeof(templates[0]) };

const char *tandem_chat_template_name(int i)
{
    return i >= 0 && i < N_TEMPLATES ? templates[i].name : NULL;
}

const struct tnd_chat_template *tnd_chat_template_find(const char *name)
{
    for (int i = 0; i < N_TEMPLATES; i++) {
        if (strcmp(templates[i].name, name) == 0) {
            return &templates[i];
        }
    }
    return NULL;
}

const char *tandem_chat_template_guess(const tandem_source *source,
                                       const tandem_tokenizer *tokenizer)
{
    const char *theirs = NULL;
    const char *guess = "plain";
    if (source == NULL || !tandem_source_text(source, "tokenizer.chat_template", &theirs)) {
        theirs = "";
    }
    if (tandem_tokenizer_find(tokenizer, "<|eot_id|>") >= 0 &&
        tandem_tokenizer_find(tokenizer, "<|start_header_id|>") >= 0) {
        guess = "llama-3";
    } else if (strstr(theirs, "<<SYS>>") != NULL) {
        guess = "llama-2";
    } else if (strstr(theirs, "[INST]") != NULL) {
        guess = "mistral-instruct";
    } else if (tandem_tokenizer_find(tokenizer, "<|im_start|>") >= 0 &&
               tandem_tokenizer_find(tokenizer, "<|im_end|>") >= 0) {
        guess = "chatml";
    }
    return guess;
}
