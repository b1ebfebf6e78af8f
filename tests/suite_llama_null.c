/* SPDX-License-Identifier: MIT
 * NULL in place of every pointer of every public function. A row of the list says what a function
 * takes, a letter an argument; the list is compared with the headers, so that a new function is not
 * forgotten. The calls go through one type of function: pointers and integers travel alike on the
 * machines that we know; arguments of floating point have no letter. */
#include <ctype.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/llama.h"
#include "tandem/tandem.h"
#include "tests/suite_llama.h"
#include "tests/support.h"
#include "tests/support_models.h"

enum { MOST_ARGUMENTS = 10, BUFFER_BYTES = 1 << 16 };

/* Capital letters are needed, small ones may be NULL:
 *   C context, X tensor, G graph, P plan, R runtime, T table, S source, M model, N session,
 *   A sampler, K tokenizer, H chat, E generator, B net, L lowered net, D ONNX model,
 *   J communicator; O memory to read or fill, W a text, F, f a function, Q, q options, e an error,
 *   u what a function is handed, n a number. */
struct row {
    const char *name;
    void (*fn)(void);
    const char *takes;
    bool refuses; /* returns a status, which is not OK when something needed is NULL */
};

#define REFUSES(fn, takes)                                                                         \
    {                                                                                              \
#fn, (void (*)(void))(fn), takes, true                                                     \
    }
#define LIVES(fn, takes)                                                                           \
    {                                                                                              \
#fn, (void (*)(void))(fn), takes, false                                                    \
    }

/* clang-format off */
static const struct row rows[] = {
    REFUSES(tandem_set_allocator, "oe"),
    LIVES(tandem_text_visible, "WnOn"),
    LIVES(tandem_devices, "one"),
    REFUSES(tandem_file_read, "WnOOe"),
    LIVES(tandem_file_free, "u"),
    REFUSES(tandem_file_write, "WOnne"),
    REFUSES(tandem_source_open_with, "WqOe"),
    REFUSES(tandem_source_open, "WOe"),
    LIVES(tandem_source_close, "S"),
    REFUSES(tandem_source_synthesize, "OnnOe"),
    REFUSES(tandem_source_convert, "SnOe"),
    LIVES(tandem_source_format, "S"),
    LIVES(tandem_source_tensor_count, "S"),
    LIVES(tandem_source_tensor_at, "SnO"),
    LIVES(tandem_source_find, "SWO"),
    LIVES(tandem_source_integer, "SWO"),
    LIVES(tandem_source_number, "SWO"),
    LIVES(tandem_source_text, "SWO"),
    REFUSES(tandem_source_hparams, "SOe"),
    REFUSES(tandem_source_identity, "SOe"),
    LIVES(tandem_hparams_divisors, "OO"),
    LIVES(tandem_source_array, "SWO"),
    LIVES(tandem_array_integer, "OnO"),
    LIVES(tandem_array_number, "OnO"),
    LIVES(tandem_array_text, "OnOO"),
    LIVES(tandem_source_value_count, "S"),
    LIVES(tandem_source_value_at, "SnO"),
    REFUSES(tandem_source_save_gguf, "SWqe"),
    LIVES(tandem_graph_new, "C"),
    LIVES(tandem_graph_add, "GX"),
    LIVES(tandem_graph_set_runs_once, "G"),
    REFUSES(tandem_graph_finish, "Ge"),
    LIVES(tandem_graph_node_count, "G"),
    LIVES(tandem_graph_node, "Gn"),
    REFUSES(tandem_graph_memory, "GO"),
    REFUSES(tandem_graph_print, "GFu"),
    REFUSES(tandem_model_new, "SOe"),
    REFUSES(tandem_model_load, "WOe"),
    LIVES(tandem_model_free, "M"),
    LIVES(tandem_model_hparams, "M"),
    LIVES(tandem_model_source, "M"),
    REFUSES(tandem_session_new, "MRqOe"),
    LIVES(tandem_session_free, "N"),
    REFUSES(tandem_session_place, "Nqe"),
    REFUSES(tandem_session_decode, "NOnne"),
    REFUSES(tandem_session_decode_batch, "NOne"),
    REFUSES(tandem_session_begin_batch, "NOne"),
    REFUSES(tandem_session_end_batch, "Ne"),
    LIVES(tandem_session_batches_in_flight, "Nn"),
    LIVES(tandem_session_logits, "Nn"),
    LIVES(tandem_session_embedding, "Nn"),
    LIVES(tandem_session_embedding_size, "N"),
    LIVES(tandem_session_set_second, "Nnn"),
    LIVES(tandem_session_position, "Nn"),
    LIVES(tandem_session_context, "N"),
    LIVES(tandem_session_rollback, "Nnn"),
    REFUSES(tandem_session_shift, "Nnnne"),
    REFUSES(tandem_session_copy, "Nnnne"),
    LIVES(tandem_session_set_cancel, "Nfu"),
    LIVES(tandem_session_set_timed, "Nfu"),
    LIVES(tandem_session_set_runtime, "NR"),
    REFUSES(tandem_session_plan, "NnOOe"),
    LIVES(tandem_session_print_plans, "Nfu"),
    LIVES(tandem_session_graph_bytes, "N"),
    LIVES(tandem_session_cache_bytes, "N"),
    LIVES(tandem_session_expert_use, "NO"),
    LIVES(tandem_session_hot_experts, "NO"),
    LIVES(tandem_session_replan_experts, "N0"),
    LIVES(tandem_session_cache, "NnO"),
    LIVES(tandem_session_micro_batches, "NO"),
    LIVES(tandem_session_expect, "NnO"),
    REFUSES(tandem_session_set_draft, "Nqe"),
    LIVES(tandem_session_draft_info, "NO"),
    REFUSES(tandem_session_save, "NWe"),
    REFUSES(tandem_session_load, "NWe"),
    LIVES(tandem_session_state_bytes, "N"),
    REFUSES(tandem_session_state_write, "NOe"),
    REFUSES(tandem_session_state_read, "NOnwe"),
    REFUSES(tandem_sampler_new, "QOe"),
    REFUSES(tandem_sampler_renew, "AQe"),
    LIVES(tandem_sampler_free, "A"),
    REFUSES(tandem_sampler_keep_utf8, "AKe"),
    LIVES(tandem_sampler_sample, "AO"),
    REFUSES(tandem_session_sample_with, "Nnue"),
    LIVES(tandem_session_sample, "NnAo"),
    LIVES(tandem_sample, "CXXxn"),
    LIVES(tandem_runtime_report, "RnOn"),
    LIVES(tandem_sample_settings_fill, "Onnnnn"),
    LIVES(tandem_sample_row, "OOnoOoO"),
    LIVES(tandem_sample_first, "OnnOOO"),
    LIVES(tandem_sample_sum, "OnOn"),
    LIVES(tandem_sample_parts, "OOnOO"),
    LIVES(tandem_sample_memory, "n"),
    LIVES(tandem_sampler_accept, "Ann"),
    LIVES(tandem_sampler_reset, "A"),
    REFUSES(tandem_grammar_new, "QOe"),
    LIVES(tandem_grammar_free, "u"),
    REFUSES(tandem_token_trie_new, "KnOnOe"),
    LIVES(tandem_token_trie_free, "u"),
    REFUSES(tandem_sampler_set_grammar, "Auue"),
    LIVES(tandem_sampler_grammar_state, "A"),
    REFUSES(tandem_chat_template_parse, "WnuOe"),
    REFUSES(tandem_chat_template_open, "WOe"),
    REFUSES(tandem_chat_template_of_source, "SuOe"),
    LIVES(tandem_chat_template_free, "u"),
    LIVES(tandem_chat_template_text, "uO"),
    REFUSES(tandem_chat_template_render, "uWnunQe"),
    LIVES(tandem_rendered_free, "u"),
    REFUSES(tandem_rendered_encode, "KQOnOe"),
    LIVES(tandem_chat_ends, "uMKOn"),
    REFUSES(tandem_chat_new, "QOe"),
    LIVES(tandem_chat_free, "H"),
    REFUSES(tandem_chat_say, "HWne"),
    LIVES(tandem_chat_reset, "H"),
    LIVES(tandem_chat_resume, "H"),
    LIVES(tandem_chat_info, "H"),
    REFUSES(tandem_generator_new, "QOe"),
    LIVES(tandem_generator_free, "E"),
    REFUSES(tandem_generator_next, "EOnOOe"),
    LIVES(tandem_tensor_op, "X"),
    LIVES(tandem_view, "CXnOOn"),
    LIVES(tandem_reshape, "CXnO"),
    LIVES(tandem_permute, "CXnnnn"),
    LIVES(tandem_transpose, "CX"),
    LIVES(tandem_get_rows, "CXX"),
    LIVES(tandem_mul_mat, "CXX"),
    LIVES(tandem_mul_mat_id, "CXXX"),
    LIVES(tandem_top_k, "CXn"),
    LIVES(tandem_gather, "CXX"),
    LIVES(tandem_weighted_sum, "CXX"),
    LIVES(tandem_add, "CXX"),
    LIVES(tandem_sub, "CXX"),
    LIVES(tandem_mul, "CXX"),
    LIVES(tandem_div, "CXX"),
    LIVES(tandem_scale, "CX"),
    LIVES(tandem_sqr, "CX"),
    LIVES(tandem_sqrt, "CX"),
    LIVES(tandem_sigmoid, "CX"),
    LIVES(tandem_tanh, "CX"),
    LIVES(tandem_silu, "CX"),
    LIVES(tandem_gelu, "CX"),
    LIVES(tandem_gelu_erf, "CX"),
    LIVES(tandem_relu, "CX"),
    LIVES(tandem_clamp, "CX"),
    LIVES(tandem_rms_norm, "CX"),
    LIVES(tandem_norm, "CX"),
    LIVES(tandem_soft_max, "CXx"),
    LIVES(tandem_diag_mask_inf, "CXn"),
    LIVES(tandem_rope, "CXXq"),
    LIVES(tandem_rope_factors, "CXXXq"),
    LIVES(tandem_attention, "CXXXx"),
    LIVES(tandem_attention_ordered, "CXXXXn"),
    LIVES(tandem_attention_with, "CXXXq"),
    LIVES(tandem_cpy, "CXX"),
    LIVES(tandem_scatter, "CXXX"),
    LIVES(tandem_cont, "CX"),
    LIVES(tandem_concat, "CXXn"),
    LIVES(tandem_custom, "CnOOnnFu"),
    REFUSES(tandem_plan_new, "nOe"),
    REFUSES(tandem_plan_copy, "POe"),
    LIVES(tandem_plan_free, "P"),
    LIVES(tandem_plan_node_count, "P"),
    LIVES(tandem_plan_threads, "P"),
    LIVES(tandem_plan_took_us, "P"),
    LIVES(tandem_plan_node, "Pn"),
    REFUSES(tandem_plan_set_node, "PnO"),
    REFUSES(tandem_plan_add_part, "POe"),
    LIVES(tandem_plan_part_count, "P"),
    LIVES(tandem_plan_part, "Pn"),
    REFUSES(tandem_plan_set_order, "Pone"),
    LIVES(tandem_plan_order, "P"),
    REFUSES(tandem_plan_add_span, "POe"),
    LIVES(tandem_plan_span_count, "P"),
    LIVES(tandem_plan_span, "Pn"),
    LIVES(tandem_plan_clear_schedule, "P"),
    LIVES(tandem_node_task_conf, "Pnn"),
    REFUSES(tandem_node_set_task_conf, "Pnnn"),
    REFUSES(tandem_runtime_open, "qOe"),
    LIVES(tandem_runtime_close, "R"),
    LIVES(tandem_runtime_backend_count, "R"),
    LIVES(tandem_runtime_backend_name, "Rn"),
    REFUSES(tandem_runtime_add_backend, "ROwe"),
    REFUSES(tandem_runtime_table_status, "Re"),
    REFUSES(tandem_runtime_set_table, "Rte"),
    REFUSES(tandem_tune_graph, "RGqe"),
    REFUSES(tandem_runtime_set_threads, "Rn"),
    LIVES(tandem_runtime_threads, "R"),
    LIVES(tandem_runtime_chooser, "R"),
    LIVES(tandem_runtime_set_execution, "Rn"),
    LIVES(tandem_runtime_pause, "R"),
    LIVES(tandem_runtime_resume, "R"),
    REFUSES(tandem_runtime_set_cpus, "ROn"),
    REFUSES(tandem_runtime_force_profile, "Rwe"),
    REFUSES(tandem_runtime_set_error_bound, "R"),
    REFUSES(tandem_runtime_plan, "RGOe"),
    REFUSES(tandem_runtime_predict, "RGOe"),
    REFUSES(tandem_runtime_force_node, "RGPnWe"),
    REFUSES(tandem_runtime_print_plan, "RGPFu"),
    REFUSES(tandem_runtime_count_steps, "RGPOe"),
    REFUSES(tandem_runtime_prepare, "RGPqe"),
    REFUSES(tandem_runtime_explain, "RGpFu"),
    REFUSES(tandem_runtime_save_plan, "RGPWe"),
    REFUSES(tandem_runtime_load_plan, "RGWOe"),
    REFUSES(tandem_runtime_compute, "RGpqe"),
    REFUSES(tandem_runtime_place, "ROnqe"),
    REFUSES(tandem_runtime_placement, "RO"),
    LIVES(tandem_runtime_placed_on, "Ro"),
    LIVES(tandem_cancel_flag, "u"),
    LIVES(tandem_runtime_drift, "Ron"),
    REFUSES(tandem_runtime_save_drift, "Rwe"),
    LIVES(tandem_candidates_free, "Q"),
    REFUSES(tandem_runtime_find_hosted, "RQe"),
    REFUSES(tandem_runtime_add_hosted, "RQnne"),
    REFUSES(tandem_runtime_fetch, "RXne"),
    LIVES(tandem_runtime_forget, "RX"),
    LIVES(tandem_runtime_profiles, "Ron"),
    REFUSES(tandem_runtime_describe, "RO"),
    REFUSES(tandem_table_new, "Oe"),
    REFUSES(tandem_table_load, "WOe"),
    REFUSES(tandem_table_parse, "WnwOe"),
    REFUSES(tandem_table_save, "TWne"),
    REFUSES(tandem_table_print, "TnFue"),
    REFUSES(tandem_table_merge, "TTe"),
    REFUSES(tandem_table_copy, "TOe"),
    LIVES(tandem_table_free, "T"),
    REFUSES(tandem_table_check, "Te"),
    REFUSES(tandem_table_default_path, "One"),
    LIVES(tandem_judge_times, "Ono"),
    LIVES(tandem_type_from_name, "WO"),
    REFUSES(tandem_dequantize, "nOOn"),
    REFUSES(tandem_quantize, "nOOn"),
    REFUSES(tandem_context_new, "qOe"),
    LIVES(tandem_context_free, "C"),
    LIVES(tandem_context_reset, "C"),
    REFUSES(tandem_context_status, "Ce"),
    LIVES(tandem_context_clear_error, "C"),
    LIVES(tandem_context_set_chain, "Cn"),
    LIVES(tandem_context_bytes, "C"),
    LIVES(tandem_tensor_new, "CnnO"),
    LIVES(tandem_tensor_new_1d, "Cnn"),
    LIVES(tandem_tensor_new_2d, "Cnnn"),
    LIVES(tandem_tensor_borrow, "CnnOOn"),
    LIVES(tandem_tensor_borrow_const, "CnnOOn"),
    LIVES(tandem_tensor_set_name, "XW"),
    LIVES(tandem_tensor_set_role, "Xn"),
    REFUSES(tandem_tensor_set, "XnnOe"),
    REFUSES(tandem_tensor_get, "XnnOe"),
    LIVES(tandem_tensor_type, "X"),
    LIVES(tandem_tensor_ne, "X"),
    LIVES(tandem_tensor_nb, "X"),
    LIVES(tandem_tensor_name, "X"),
    LIVES(tandem_tensor_op_name, "X"),
    LIVES(tandem_tensor_src, "Xn"),
    LIVES(tandem_tensor_data, "X"),
    LIVES(tandem_tensor_elements, "X"),
    LIVES(tandem_tensor_bytes, "X"),
    LIVES(tandem_tensor_is_contiguous, "X"),
    REFUSES(tandem_tokenizer_open, "WnOe"),
    REFUSES(tandem_tokenizer_from_source, "SOe"),
    REFUSES(tandem_source_add_tokenizer, "SWoe"),
    LIVES(tandem_tokenizer_close, "K"),
    LIVES(tandem_tokenizer_vocabulary, "K"),
    LIVES(tandem_tokenizer_bos, "K"),
    LIVES(tandem_tokenizer_eos, "K"),
    LIVES(tandem_tokenizer_adds_bos, "K"),
    LIVES(tandem_tokenizer_adds_eos, "K"),
    LIVES(tandem_tokenizer_find, "KW"),
    REFUSES(tandem_tokenizer_encode, "KWnnOnOe"),
    REFUSES(tandem_tokenizer_encode_with, "KWnqOnOe"),
    REFUSES(tandem_tokenizer_encode_pair, "KWnWnOnOOe"),
    LIVES(tandem_tokenizer_decode, "KnnOn"),
    LIVES(tandem_token_stream_next, "OnOn"),
    LIVES(tandem_token_stream_end, "OOn"),
    REFUSES(tandem_net_new, "Oe"),
    LIVES(tandem_net_free, "B"),
    REFUSES(tandem_net_status, "Be"),
    LIVES(tandem_net_clear_error, "B"),
    LIVES(tandem_net_value, "BnO"),
    REFUSES(tandem_net_print, "BFu"),
    LIVES(tandem_net_input, "BnnOw"),
    LIVES(tandem_net_constant, "BnnOO"),
    LIVES(tandem_net_scalar, "Bn"),
    LIVES(tandem_net_output, "Bnw"),
    LIVES(tandem_net_permute, "BnO"),
    LIVES(tandem_net_reshape, "BnnO"),
    LIVES(tandem_net_expand, "BnnO"),
    LIVES(tandem_net_slice, "Bnnnnn"),
    LIVES(tandem_net_reindex, "BnnOFuo"),
    LIVES(tandem_net_cast, "Bnn"),
    LIVES(tandem_net_unary, "Bnn"),
    LIVES(tandem_net_binary, "Bnnn"),
    LIVES(tandem_net_select, "Bnnn"),
    LIVES(tandem_net_reduce, "BnnOnn"),
    LIVES(tandem_net_arg_reduce, "Bnnn"),
    LIVES(tandem_net_scan, "Bnn"),
    LIVES(tandem_net_arg_sort, "Bnnn"),
    LIVES(tandem_net_softmax, "Bnn"),
    LIVES(tandem_net_norm, "BnnOn"),
    LIVES(tandem_net_matmul, "Bnn"),
    LIVES(tandem_net_attention, "Bnnnn"),
    LIVES(tandem_net_conv, "Bnnq"),
    LIVES(tandem_net_pool, "BnnO"),
    LIVES(tandem_net_concat, "BOnn"),
    LIVES(tandem_net_pad, "BnnOOn"),
    LIVES(tandem_net_gather, "Bnnn"),
    LIVES(tandem_net_gather_elements, "Bnnn"),
    LIVES(tandem_net_scatter_elements, "Bnnnnn"),
    REFUSES(tandem_net_lower, "BqOe"),
    LIVES(tandem_lowered_free, "L"),
    LIVES(tandem_lowered_graph, "L"),
    LIVES(tandem_lowered_serial, "L"),
    LIVES(tandem_lowered_input_count, "L"),
    LIVES(tandem_lowered_output_count, "L"),
    LIVES(tandem_lowered_find_input, "LW"),
    LIVES(tandem_lowered_find_output, "LW"),
    LIVES(tandem_lowered_input, "LnO"),
    LIVES(tandem_lowered_output, "LnO"),
    REFUSES(tandem_lowered_set_input, "LnOne"),
    REFUSES(tandem_onnx_open, "WOe"),
    REFUSES(tandem_onnx_read, "OnwOe"),
    LIVES(tandem_onnx_close, "D"),
    LIVES(tandem_onnx_input_count, "D"),
    LIVES(tandem_onnx_output_count, "D"),
    LIVES(tandem_onnx_input, "DnO"),
    LIVES(tandem_onnx_output, "DnO"),
    LIVES(tandem_onnx_meta, "DO"),
    LIVES(tandem_onnx_property, "DnOO"),
    REFUSES(tandem_onnx_net, "DqOe"),
    LIVES(tandem_onnx_set_chooser, "Du"),
    REFUSES(tandem_onnx_lower, "DOnOe"),
    REFUSES(tandem_onnx_begin, "DOnOOe"),
    REFUSES(tandem_onnx_next, "DOe"),
    REFUSES(tandem_communicator_new, "OOe"),
    REFUSES(tandem_communicator_open, "Oe"),
    LIVES(tandem_communicator_close, "J"),
    LIVES(tandem_communicator_rank, "J"),
    LIVES(tandem_communicator_count, "J"),
    LIVES(tandem_communicator_host, "Jn"),
    LIVES(tandem_communicator_name, "J"),
    LIVES(tandem_communicator_limit, "J"),
    REFUSES(tandem_communicator_reserve, "Jne"),
    LIVES(tandem_communicator_fail, "JO"),
    LIVES(tandem_communicator_error, "J"),
    REFUSES(tandem_communicator_send, "JnOne"),
    REFUSES(tandem_communicator_receive, "JnOne"),
    REFUSES(tandem_communicator_post, "JnOne"),
    LIVES(tandem_communicator_can_post, "J"),
    REFUSES(tandem_communicator_broadcast, "JOne"),
    REFUSES(tandem_communicator_all_gather, "JOOOe"),
    REFUSES(tandem_communicator_gather, "JOOOe"),
    REFUSES(tandem_communicator_all_reduce, "JOne"),
    REFUSES(tandem_communicator_barrier, "Je"),
    REFUSES(tandem_communicator_all_to_all, "JOOOOe"),
    REFUSES(tandem_session_follow, "MRJe"),
    REFUSES(tandem_session_dismiss, "Je"),
};
/* clang-format on */
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Functions without a pointer, and one that returns a structure. */
static const char *const others[] = {
    "tandem_candidates_new",
    "tandem_candidates_choose",
    "tandem_candidates_note",
    "tandem_task_name",
    "tandem_device_type_name",
    "tandem_chat_template_name",
    "tandem_op_name",
    "tandem_dtype_name",
    "tandem_dtype_bytes",
    "tandem_stage_name",
    "tandem_plan_reason_name",
    "tandem_split_name",
    "tandem_lane_name",
    "tandem_status_name",
    "tandem_status_text",
    "tandem_type_name",
    "tandem_type_is_valid",
    "tandem_type_is_quantized",
    "tandem_type_block_values",
    "tandem_type_block_bytes",
    "tandem_type_row_bytes",
    "tandem_version",
    "tandem_token_stream_begin",
    "tandem_guard_mapped_files",
    "tandem_mapped_files_status",
    "tandem_mapped_check",
    "tandem_communicator_launched",
    "tandem_communicator_set_limit",
};

/* ---- what is valid ---- */

static struct {
    tandem_context *context;
    tandem_tensor *tensor;
    tandem_graph *graph;
    tandem_plan *plan;
    tandem_runtime *runtime;
    tandem_table *table;
    tandem_source *source;
    tandem_model *model;
    tandem_session *session;
    tandem_sampler *sampler;
    tandem_tokenizer *tokenizer;
    tandem_chat *chat;
    tandem_generator *generator;
    tandem_net *net;
    tandem_lowered *lowered;
    tandem_onnx *onnx;
    tandem_communicator *communicator;
    unsigned char buffer[BUFFER_BYTES];
} valid;

static uintptr_t nothing(void)
{
    return 0;
}

/* A net of one input and one constant, of which one is the output. */
static void renew_net(tandem_net **net)
{
    tandem_net_free(*net);
    *net = NULL;
    check_ok(tandem_net_new(net, NULL));
    (void)tandem_net_input(*net, TANDEM_DTYPE_F32, 0, NULL, "x");
    (void)tandem_net_output(*net, tandem_net_scalar(*net, TANDEM_DTYPE_F32, 1.0), "y");
}

/* Builders keep their first error in the context: each call gets a new one. */
static void renew_context(void)
{
    tandem_plan_free(valid.plan);
    tandem_context_free(valid.context);
    valid.plan = NULL;
    check_ok(tandem_context_new(NULL, &valid.context, NULL));
    valid.tensor = tandem_tensor_new_2d(valid.context, TANDEM_TYPE_F32, 4, 4);
    valid.graph = tandem_graph_new(valid.context);
    memset(tandem_tensor_data(valid.tensor), 0, 64);
    tandem_graph_add(valid.graph, tandem_silu(valid.context, valid.tensor));
    check_ok(tandem_graph_finish(valid.graph, NULL));
    renew_net(&valid.net);
    check_ok(tandem_plan_new(tandem_graph_node_count(valid.graph), &valid.plan, NULL));
    memset(valid.buffer, 0, sizeof(valid.buffer));
}

/* One rank has nobody to talk to. */
static bool no_exchange(void *self, const struct tandem_message *sends, int n_sends,
                        const struct tandem_message *receives, int n_receives, double limit_s,
                        int *out_rank, char *why, size_t why_bytes)
{
    (void)self, (void)sends, (void)receives, (void)limit_s, (void)out_rank, (void)why;
    (void)why_bytes;
    return n_sends == 0 && n_receives == 0;
}

static void no_close(void *self, bool has_failed)
{
    (void)self, (void)has_failed;
}

static void open_valid(void)
{
    const struct tandem_transport alone = {
        .size = sizeof(alone), .count = 1, .exchange = no_exchange, .close = no_close};
    static const int32_t prompt[] = {1};
    static const unsigned char no_graph[] = {8, 8, 58,
                                             0}; /* an ONNX model: IR version 8, field 7 */
    struct tandem_chat_options chat = TANDEM_CHAT_OPTIONS_INIT;
    struct tandem_generator_options generator = TANDEM_GENERATOR_OPTIONS_INIT;
    const char *tokens = tnd_test_temp("null-tokens.bin");
    memset(&valid, 0, sizeof(valid));
    valid.source = tnd_small_llama(TANDEM_TYPE_F32, 64);
    valid.runtime = tnd_test_runtime(1, "cpu");
    valid.sampler = tnd_test_sampler(300, 0.0F, 1.0F, 1);
    CU_ASSERT_TRUE(tnd_model_write_tokenizer(tokens, 300));
    check_ok(tandem_tokenizer_open(tokens, 0, &valid.tokenizer, NULL));
    check_ok(tandem_table_new(&valid.table, NULL));
    check_ok(tandem_model_new(valid.source, &valid.model, NULL));
    valid.session = tnd_test_session(valid.model, valid.runtime, 32);
    chat.session = generator.session = valid.session;
    chat.sampler = generator.sampler = valid.sampler;
    chat.tokenizer = generator.tokenizer = valid.tokenizer;
    generator.prompt = prompt;
    generator.n_prompt = 1;
    renew_net(&valid.net);
    check_ok(tandem_net_lower(valid.net, NULL, &valid.lowered, NULL));
    check_ok(tandem_onnx_read(no_graph, sizeof(no_graph), NULL, &valid.onnx, NULL));
    check_ok(tandem_communicator_new(&alone, &valid.communicator, NULL));
    check_ok(tandem_chat_new(&chat, &valid.chat, NULL));
    check_ok(tandem_generator_new(&generator, &valid.generator, NULL));
}

static void close_valid(void)
{
    tandem_net_free(valid.net);
    tandem_lowered_free(valid.lowered);
    tandem_onnx_close(valid.onnx);
    tandem_generator_free(valid.generator);
    tandem_chat_free(valid.chat);
    tandem_session_free(valid.session);
    tandem_model_free(valid.model);
    tandem_table_free(valid.table);
    tandem_tokenizer_close(valid.tokenizer);
    tandem_sampler_free(valid.sampler);
    tandem_plan_free(valid.plan);
    tandem_context_free(valid.context);
    tandem_runtime_close(valid.runtime);
    tandem_source_close(valid.source);
    tandem_communicator_close(valid.communicator);
}

static uintptr_t argument_of(char letter)
{
    const struct {
        char letter;
        const void *object;
    } objects[] = {{'C', valid.context},   {'X', valid.tensor},      {'G', valid.graph},
                   {'P', valid.plan},      {'R', valid.runtime},     {'T', valid.table},
                   {'S', valid.source},    {'M', valid.model},       {'N', valid.session},
                   {'A', valid.sampler},   {'K', valid.tokenizer},   {'H', valid.chat},
                   {'E', valid.generator}, {'B', valid.net},         {'L', valid.lowered},
                   {'D', valid.onnx},      {'O', valid.buffer},      {'W', "x"},
                   {'Q', valid.buffer},    {'J', valid.communicator}};
    if (letter == 'n') {
        return 1;
    }
    if (letter == 'F') {
        return (uintptr_t)nothing;
    }
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        if (objects[i].letter == letter) {
            return (uintptr_t)objects[i].object;
        }
    }
    return 0;
}

/* ---- calling ---- */

/* Bit i of `nulls`: argument i is NULL. Returns what the function returns, as a number. */
static uintptr_t call(const struct row *row, unsigned nulls)
{
    uintptr_t (*fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                    uintptr_t, uintptr_t, uintptr_t);
    uintptr_t a[MOST_ARGUMENTS] = {0};
    renew_context();
    for (int i = 0; row->takes[i] != '\0'; i++) {
        bool is_null = (nulls >> i & 1) != 0 && row->takes[i] != 'n';
        a[i] = is_null ? 0 : argument_of(row->takes[i]);
    }
    if (getenv("TANDEM_TEST_NULL") != NULL) {
        printf("%s(%s) nulls %x\n", row->name, row->takes, nulls);
        fflush(stdout);
    }
    memcpy(&fn, &row->fn, sizeof(fn));
    return fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
}

static void check_refused(const struct row *row, unsigned nulls, const char *what)
{
    int status = (int)call(row, nulls);
    if (row->refuses && status == TANDEM_OK) {
        printf("%s takes NULL (%s of %s)\n", row->name, what, row->takes);
        CU_FAIL("NULL is not refused");
    }
}

static void every_public_function_refuses_null_where_a_pointer_is_needed(void)
{
    open_valid();
    for (int i = 0; i < N_ROWS; i++) {
        const struct row *row = &rows[i];
        bool needs_one = false;
        bool has_optional = false;
        for (int k = 0; row->takes[k] != '\0'; k++) {
            const char what[] = {row->takes[k], '\0'};
            if (isupper((unsigned char)row->takes[k])) {
                check_refused(row, 1U << k, what);
                needs_one = true;
            }
            has_optional = has_optional || strchr("otwpxf", row->takes[k]) != NULL;
        }
        if (needs_one) {
            check_refused(row, ~0U, "all");
        }
        if (has_optional) {
            (void)call(row, 0); /* small letters are NULL */
        }
    }
    (void)tandem_token_stream_begin(NULL, true);
    check_ok(tandem_mapped_files_status(NULL));
    check_ok(tandem_mapped_check(NULL, SIZE_MAX, NULL)); /* any address, and that is in no file */
    close_valid();
}

/* ---- the list is complete ---- */

static bool is_listed(const char *name, size_t n)
{
    for (int i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].name) == n && strncmp(rows[i].name, name, n) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strlen(others[i]) == n && strncmp(others[i], name, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Names of functions in the declarations of a header; how many. */
static int check_header(char *text)
{
    int n = 0;
    for (char *at = strstr(text, "\nTANDEM_API "); at != NULL; at = strstr(at, "\nTANDEM_API ")) {
        const char *name = strstr(at, "tandem_");
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
        at++;
        while (name[length] != '(' && name[length] != ';') { /* a type of what is returned */
            name = strstr(name + length, "tandem_");
            length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
        }
        n += name[length] == '(';
        if (name[length] == '(' && !is_listed(name, length)) {
            printf("%.*s is not in the list of this test\n", (int)length, name);
            CU_FAIL("a public function is not tested with NULL");
        }
    }
    return n;
}

static void the_list_has_every_public_function(void)
{
    glob_t headers;
    int n = 0;
    check_int(glob("include/tandem/*.h", 0, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        char *text = tnd_test_read_file(headers.gl_pathv[i], NULL);
        n += text != NULL ? check_header(text) : 0;
        free(text);
    }
    globfree(&headers);
    CU_ASSERT_TRUE(n >= 200);
}

static CU_TestInfo tests[] = {
    {"every_public_function_refuses_null_where_a_pointer_is_needed",
     every_public_function_refuses_null_where_a_pointer_is_needed},
    {"the_list_has_every_public_function", the_list_has_every_public_function},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_llama_null[];
CU_SuiteInfo suites_llama_null[] = {
    {"null", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
