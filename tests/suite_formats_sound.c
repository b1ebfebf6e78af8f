/* SPDX-License-Identifier: MIT
 * Sound: WAVE files of all widths, and spectrograms whose values are known. (tools/judges/mel.py
 * compares whole ones with numpy.) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/mel.h"
#include "formats/speech_config.h"
#include "formats/wav.h"
#include "tests/support.h"
#include "tests/support_blob.h"

/* A file with a chunk that nobody knows in front of its samples. */
static struct tnd_blob make(unsigned kind, unsigned channels, unsigned bits, const void *data,
                            size_t bytes)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_add(&blob, "RIFF\0\0\0\0WAVEfmt ", 16);
    tnd_blob_number(&blob, 16, 4);
    tnd_blob_number(&blob, kind, 2);
    tnd_blob_number(&blob, channels, 2);
    tnd_blob_number(&blob, 16000, 4);
    tnd_blob_number(&blob, 16000 * channels * bits / 8, 4);
    tnd_blob_number(&blob, channels * bits / 8, 2);
    tnd_blob_number(&blob, bits, 2);
    tnd_blob_add(&blob, "odd \3\0\0\0abc\0data", 16);
    tnd_blob_number(&blob, bytes, 4);
    tnd_blob_add(&blob, data, bytes);
    return blob;
}

static void samples_of_all_widths_are_read(void)
{
    static const float floats[] = {0.5F, -1.0F};
    static const struct {
        unsigned kind, channels, bits;
        const char *data;
        size_t bytes;
        float want[2];
    } rows[] = {{1, 1, 8, "\x80\xC0", 2, {0.0F, 0.5F}},
                {1, 1, 16, "\x00\x40\x00\x80", 4, {0.5F, -1.0F}},
                {1, 2, 16, "\x00\x40\x00\x00\x00\x80\x00\x80", 8, {0.25F, -1.0F}},
                {1, 1, 24, "\x00\x00\x40\x00\x00\xC0", 6, {0.5F, -0.5F}},
                {1, 1, 32, "\x00\x00\x00\x40\x00\x00\x00\x80", 8, {0.5F, -1.0F}},
                {3, 1, 32, (const char *)floats, 8, {0.5F, -1.0F}}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_error error = {.text = ""};
        struct tnd_wav wav = {.n = 0};
        struct tnd_blob blob =
            make(rows[i].kind, rows[i].channels, rows[i].bits, rows[i].data, rows[i].bytes);
        check_status(tnd_wav_read(blob.bytes, blob.n, "x.wav", &wav, &error), TANDEM_OK, NULL,
                     &error);
        check_int(wav.rate, 16000);
        check_int(wav.n, 2);
        for (int k = 0; k < 2 && wav.n == 2; k++) {
            CU_ASSERT_EQUAL(wav.samples[k], rows[i].want[k]);
        }
        tnd_wav_free(&wav);
        tnd_blob_free(&blob);
    }
}

static void files_that_cannot_be_read_say_why(void)
{
    static const struct {
        unsigned kind, channels, bits;
        enum tandem_status status;
        const char *part;
    } rows[] = {{2, 1, 4, TANDEM_E_UNSUPPORTED_BUILD, "format 2 of 4 bits"},
                {1, 1, 12, TANDEM_E_UNSUPPORTED_BUILD, "12 bits"},
                {3, 1, 64, TANDEM_E_UNSUPPORTED_BUILD, "64 bits"},
                {1, 0, 16, TANDEM_E_FORMAT, "channels is 0"},
                {1, 65, 16, TANDEM_E_FORMAT, "channels is 65"}};
    struct tandem_error error = {.text = ""};
    struct tnd_wav wav = {.n = 0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tnd_blob blob = make(rows[i].kind, rows[i].channels, rows[i].bits, "12345678", 8);
        check_status(tnd_wav_read(blob.bytes, blob.n, "x.wav", &wav, &error), rows[i].status,
                     rows[i].part, &error);
        tnd_blob_free(&blob);
    }
    struct tnd_blob blob = make(1, 1, 16, "12345678", 8);
    for (size_t cut = 0; cut < blob.n; cut++) {
        CU_ASSERT_NOT_EQUAL(tnd_wav_read(blob.bytes, cut, "x.wav", &wav, &error), TANDEM_OK);
    }
    blob.bytes[0] = 'L';
    check_status(tnd_wav_read(blob.bytes, blob.n, "x.wav", &wav, &error), TANDEM_E_FORMAT,
                 "expected RIFF", &error);
    tnd_blob_free(&blob);
}

/* A tone of 1000 Hz, on frequency 25 of 200: its power in the window is (sum of the window / 2)^2 =
 * 10000, and a quarter of that on both sides. */
static void a_tone_has_its_power_in_its_bins(void)
{
    enum { SAMPLES = 160 * 20, BINS = 80 };
    float samples[SAMPLES];
    struct tandem_error error = {.text = ""};
    struct tnd_array *mel = NULL;
    for (int i = 0; i < SAMPLES; i++) {
        samples[i] = (float)sin(2 * 3.14159265358979 * 1000.0 * i / 16000.0);
    }
    check_status(tnd_mel(samples, SAMPLES, BINS, 0, &mel, &error), TANDEM_OK, NULL, &error);
    check_int(mel->shape.n, 3);
    check_int(mel->shape.dims[1], BINS);
    check_int(mel->shape.dims[2], 20);
    int most = 0;
    double sum = 0;
    for (int b = 0; b < BINS; b++) {
        most =
            tnd_array_number(mel, b * 20 + 10) > tnd_array_number(mel, most * 20 + 10) ? b : most;
        sum += pow(10.0, tnd_array_number(mel, b * 20 + 10) * 4 - 4);
    }
    check_int(most, 26); /* around 15 mel of 45.2, in steps of 45.2 / 81 */
    /* Triangles of area 1 overlap in pairs: in steps of 37.2 Hz they have together 1 / 37.2. */
    CU_ASSERT_DOUBLE_EQUAL(sum, 15000.0 / 37.3, 15000.0 / 37.3 * 0.03);
    tnd_array_free(mel);
}

static void silence_is_at_the_floor_and_sizes_are_checked(void)
{
    static const float silence[400];
    struct tandem_error error = {.text = ""};
    struct tnd_array *mel = NULL;
    check_ok(tnd_mel(silence, 400, 3, 5, &mel, &error));
    for (int64_t i = 0; i < mel->n; i++) {
        CU_ASSERT_EQUAL(tnd_array_number(mel, i), -1.5); /* (log10(1e-10) + 4) / 4 */
    }
    tnd_array_free(mel);
    check_status(tnd_mel(silence, 400, 0, 5, &mel, &error), TANDEM_E_ARGUMENT, "0 bins", &error);
    check_status(tnd_mel(silence, 0, 80, 0, &mel, &error), TANDEM_E_ARGUMENT, "0 frames", &error);
}

/* ---- what a model's configuration says ---- */

static enum tandem_status configure(struct tnd_speech_config *config, const char *text,
                                    struct tandem_error *error)
{
    return tnd_speech_config_read(config, text, strlen(text), "config.json", error);
}

static void a_later_configuration_replaces_what_it_states(void)
{
    struct tnd_speech_config config;
    tnd_speech_config_init(&config);
    check_int(config.start, -1);
    check_ok(
        configure(&config,
                  "{\"decoder_start_token_id\": 50258, \"eos_token_id\": 50257,"
                  " \"suppress_tokens\": [], \"num_mel_bins\": 128, \"d_model\": {\"x\": [1.5]},"
                  " \"max_target_positions\": 448, \"no_timestamps_token_id\": null}",
                  NULL));
    check_ok(configure(&config,
                       "{\"eos_token_id\": [1, 2, null], \"begin_suppress_tokens\": [220, 50257],"
                       " \"lang_to_id\": {\"<|en|>\": 50259, \"<|de|>\": 50261},"
                       " \"suppress_tokens\": null}",
                       NULL));
    check_int(config.start, 50258);
    check_int(config.bins, 128);
    check_int(config.max_tokens, 448);
    check_int(config.no_timestamps, -1);
    check_int(config.ends.n, 2);
    check_int(config.ends.ids[1], 2);
    check_int(config.never.n, 0);
    check_int(config.never_first.ids[0], 220);
    check_int(config.n_languages, 2);
    check_string(config.languages[1].name, "<|de|>");
    check_int(config.languages[1].id, 50261);
    check_ok(tnd_speech_config_open(&config, "/no/such/config.json", NULL));
    check_int(config.start, 50258);
}

static void wrong_configurations_have_a_reason(void)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "config.json"},
        {"[]", "config.json"},
        {"{\"eos_token_id\": \"a\"}", "config.json"},
        {"{\"eos_token_id\": [1, -2]}", "config.json"},
        {"{\"eos_token_id\": 2147483648}", "2147483648"},
        {"{\"eos_token_id\": 1.5}", "config.json"},
        {"{\"lang_to_id\": {\"<|a language without an end|>\": 1}}", "config.json"},
        {"{\"eos_token_id\": 1} x", "config.json"},
    };
    struct tnd_speech_config config;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {.text = ""};
        tnd_speech_config_init(&config);
        CU_ASSERT_NOT_EQUAL(configure(&config, cases[i].text, &error), TANDEM_OK);
        check_contains(error.text, cases[i].part);
    }
    char text[8192] = "{\"suppress_tokens\": [0";
    for (int i = 0; i < TND_SPEECH_MAX_TOKENS; i++) {
        strcat(text, ", 1");
    }
    strcat(text, "]}");
    struct tandem_error error = {.text = ""};
    check_status(configure(&config, text, &error), TANDEM_E_LIMIT, "512", &error);
}

static CU_TestInfo tests_sound[] = {
    {"a_later_configuration_replaces_what_it_states",
     a_later_configuration_replaces_what_it_states},
    {"wrong_configurations_have_a_reason", wrong_configurations_have_a_reason},
    {"samples of all widths are read", samples_of_all_widths_are_read},
    {"files that cannot be read say why", files_that_cannot_be_read_say_why},
    {"a tone has its power in its bins", a_tone_has_its_power_in_its_bins},
    {"silence is at the floor, and sizes are checked",
     silence_is_at_the_floor_and_sizes_are_checked},
    CU_TEST_INFO_NULL,
};

/* clang-format off */
CU_SuiteInfo suites_formats_sound[] = {
    {.pName = "sound", .pTests = tests_sound},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */
