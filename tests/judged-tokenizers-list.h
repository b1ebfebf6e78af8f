/* SPDX-License-Identifier: MIT
 * Small tokenizers with ids and texts of tokenizers 0.23.3, sentencepiece 0.2.3 and
 * tiktoken 0.14.0. Made by tools/judges/tokenizers.py --write-tests. */
    {"steps behind ByteLevel", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretoken"
        "izers\": [{\"type\": \"Punctuation\", \"behavior\": \"Contiguous\"}, {\"type\": \""
        "ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": "
        "true}, {\"type\": \"Digits\", \"individual_digits\": false}, {\"type\": \"Split\""
        ", \"pattern\": {\"Regex\": \"[0-9][0-9][0-9]\"}, \"behavior\": \"Isolated\", \"in"
        "vert\": false}]}, \"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\""
        ", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}, \"mod"
        "el\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, \"continuing_su"
        "bword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_f"
        "allback\": false, \"ignore_merges\": false, \"vocab\": {\",\": 0, \".\": 1, \"1\""
        ": 2, \"2\": 3, \"3\": 4, \"4\": 5, \"5\": 6, \"a\": 7, \"b\": 8, \"c\": 9, \"\\u0"
        "0a1\": 10, \"\\u00a2\": 11, \"\\u00a3\": 12, \"\\u00b2\": 13, \"\\u00bc\": 14, \""
        "\\u00bd\": 15, \"\\u00c2\": 16, \"\\u00d9\": 17, \"\\u00e0\": 18, \"\\u00e1\": 19"
        ", \"\\u0120\": 20, \"\\u0130\": 21, \"\\u0142\": 22, \"ab\": 23, \"12\": 24}, \"m"
        "erges\": [[\"a\", \"b\"], [\"1\", \"2\"]]}}",
        1090,
        {
            {"a\302\262 34,a",
        "7 16 13 20 4 5 0 7",
        "a\302\262 34,a",
        "a\302\262 34,a"},
            {"a.\331\243 5",
        "7 1 17 12 20 6",
        "a.\331\243 5",
        "a.\331\243 5"},
            {"\302\2751 \340\274\241\340\274\242",
        "16 15 2 20 18 14 10 18 14 11",
        "\302\2751 \340\274\241\340\274\242",
        "\302\2751 \340\274\241\340\274\242"},
            {"abc 12345.",
        "23 9 20 24 4 5 6 1",
        "abc 12345.",
        "abc 12345."},
            {"a \341\240\216 b",
        "7 20 19 22 21 20 8",
        "a \341\240\216 b",
        "a \341\240\216 b"},
        }},
    {"words have marks", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"post_"
        "processor\": null, \"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": \"BPE"
        "\", \"dropout\": null, \"unk_token\": \"<unk>\", \"continuing_subword_prefix\": n"
        "ull, \"end_of_word_suffix\": null, \"fuse_unk\": true, \"byte_fallback\": false, "
        "\"ignore_merges\": false, \"vocab\": {\"<unk>\": 0, \" \": 1, \"-\": 2, \"_\": 3,"
        " \"a\": 4, \"b\": 5, \"c\": 6, \"x\": 7, \"z\": 8, \"\\u0301\": 9, \"\\u0f51\": 1"
        "0, \"\\u0f56\": 11, \"\\u0f66\": 12, \"\\u0f7c\": 13, \"\\u0f90\": 14, \"\\u180e\""
        ": 15, \"\\ud804\\udc13\": 16, \"\\ud804\\udc38\": 17, \"a\\u0301\": 18, \"\\u0f56"
        "\\u0f7c\": 19}, \"merges\": [[\"a\", \"\\u0301\"], [\"\\u0f56\", \"\\u0f7c\"]]}}",
        693,
        {
            {"\340\275\226\340\275\274\340\275\221 \340\275\246\340\276\220\340\275\221",
        "19 10 12 14 10",
        "\340\275\226\340\275\274\340\275\221\340\275\246\340\276\220\340\275\221",
        "\340\275\226\340\275\274\340\275\221\340\275\246\340\276\220\340\275\221"},
            {"\360\221\200\223\360\221\200\270x",
        "16 17 7",
        "\360\221\200\223\360\221\200\270x",
        "\360\221\200\223\360\221\200\270x"},
            {"a\314\201b\341\240\216a",
        "18 5 15 4",
        "a\314\201b\341\240\216a",
        "a\314\201b\341\240\216a"},
            {"a_b-c z",
        "4 3 5 2 6 8",
        "a_b-cz",
        "a_b-cz"},
            {"\342\200\215a\302\262",
        "0 4 0",
        "<unk>a<unk>",
        "<unk>a<unk>"},
        }},
    {"words of a Split", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": "
        "{\"Regex\": \"\\\\w+|\\\\s\"}, \"behavior\": \"Removed\", \"invert\": true}, \"po"
        "st_processor\": null, \"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": \""
        "BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", \"continuing_subword_prefix\""
        ": null, \"end_of_word_suffix\": null, \"fuse_unk\": true, \"byte_fallback\": fals"
        "e, \"ignore_merges\": false, \"vocab\": {\"<unk>\": 0, \" \": 1, \"-\": 2, \"_\":"
        " 3, \"a\": 4, \"b\": 5, \"c\": 6, \"x\": 7, \"z\": 8, \"\\u0301\": 9, \"\\u0f51\""
        ": 10, \"\\u0f56\": 11, \"\\u0f66\": 12, \"\\u0f7c\": 13, \"\\u0f90\": 14, \"\\u18"
        "0e\": 15, \"\\ud804\\udc13\": 16, \"\\ud804\\udc38\": 17, \"a\\u0301\": 18, \"\\u"
        "0f56\\u0f7c\": 19}, \"merges\": [[\"a\", \"\\u0301\"], [\"\\u0f56\", \"\\u0f7c\"]"
        "]}}",
        761,
        {
            {"\340\275\226\340\275\274\340\275\221 \340\275\246\340\276\220\340\275\221",
        "19 10 1 12 14 10",
        "\340\275\226\340\275\274\340\275\221 \340\275\246\340\276\220\340\275\221",
        "\340\275\226\340\275\274\340\275\221 \340\275\246\340\276\220\340\275\221"},
            {"\360\221\200\223\360\221\200\270x",
        "16 17 7",
        "\360\221\200\223\360\221\200\270x",
        "\360\221\200\223\360\221\200\270x"},
            {"a\314\201b\341\240\216a",
        "18 5 4",
        "a\314\201ba",
        "a\314\201ba"},
            {"a_b-c z",
        "4 3 5 6 1 8",
        "a_bc z",
        "a_bc z"},
            {"\342\200\215a\302\262",
        "4 0",
        "a<unk>",
        "a<unk>"},
        }},
    {"blanks as in Llama 2", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [{\"id\": 0, \"content\": \"<unk>\", \"single_word\": false, \"lstrip\": false, "
        "\"rstrip\": false, \"normalized\": false, \"special\": true}, {\"id\": 1, \"conte"
        "nt\": \"<s>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"no"
        "rmalized\": false, \"special\": true}, {\"id\": 2, \"content\": \"</s>\", \"singl"
        "e_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"s"
        "pecial\": true}], \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"t"
        "ype\": \"Prepend\", \"prepend\": \"\\u2581\"}, {\"type\": \"Replace\", \"pattern\""
        ": {\"String\": \" \"}, \"content\": \"\\u2581\"}]}, \"pre_tokenizer\": null, \"po"
        "st_processor\": null, \"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"typ"
        "e\": \"Replace\", \"pattern\": {\"String\": \"\\u2581\"}, \"content\": \" \"}, {\""
        "type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\""
        ": \" \", \"start\": 1, \"stop\": 0}]}, \"model\": {\"type\": \"BPE\", \"dropout\""
        ": null, \"unk_token\": \"<unk>\", \"continuing_subword_prefix\": null, \"end_of_w"
        "ord_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": true, \"ignore_merges"
        "\": false, \"vocab\": {\"<unk>\": 0, \"<s>\": 1, \"</s>\": 2, \"<0xC3>\": 3, \"<0"
        "xA9>\": 4, \"<0x20>\": 5, \"a\": 6, \"b\": 7, \"\\u2581\": 8, \"\\u2581a\": 9}, \""
        "merges\": [[\"\\u2581\", \"a\"]]}}",
        1225,
        {
            {"a b",
        "9 8 7",
        "a b",
        "a b"},
            {" a",
        "8 9",
        " a",
        " a"},
            {"a<s>b",
        "9 1 8 7",
        "a b",
        "a<s> b"},
            {"<s> a",
        "1 8 9",
        " a",
        "<s>  a"},
            {"</s>",
        "2",
        "",
        "</s>"},
            {"\303\251 a",
        "8 3 4 9",
        "\303\251 a",
        "\303\251 a"},
            {"",
        "",
        "",
        ""},
            {"a  b ",
        "9 8 8 7 8",
        "a  b ",
        "a  b "},
        }},
    {"blanks of Metaspace", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [{\"id\": 0, \"content\": \"<unk>\", \"single_word\": false, \"lstrip\": false, "
        "\"rstrip\": false, \"normalized\": false, \"special\": true}, {\"id\": 1, \"conte"
        "nt\": \"<s>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"no"
        "rmalized\": false, \"special\": true}, {\"id\": 2, \"content\": \"</s>\", \"singl"
        "e_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"s"
        "pecial\": true}], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Metaspace"
        "\", \"replacement\": \"\\u2581\", \"prepend_scheme\": \"always\", \"split\": fals"
        "e}, \"post_processor\": null, \"decoder\": {\"type\": \"Metaspace\", \"replacemen"
        "t\": \"\\u2581\", \"prepend_scheme\": \"always\", \"split\": true}, \"model\": {\""
        "type\": \"BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", \"continuing_subwor"
        "d_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallb"
        "ack\": false, \"ignore_merges\": false, \"vocab\": {\"<unk>\": 0, \"<s>\": 1, \"<"
        "/s>\": 2, \"a\": 3, \"b\": 4, \"\\u2581\": 5, \"\\u2581\\u2581\": 6, \"\\u2581a\""
        ": 7}, \"merges\": [[\"\\u2581\", \"\\u2581\"], [\"\\u2581\", \"a\"]]}}",
        1052,
        {
            {"a b",
        "7 5 4",
        "a b",
        "a b"},
            {" a",
        "7",
        "a",
        "a"},
            {"a<s>b",
        "7 1 5 4",
        "a b",
        "a<s> b"},
            {"<s> a",
        "1 7",
        "a",
        "<s> a"},
            {"</s>",
        "2",
        "",
        "</s>"},
            {"\303\251 a",
        "5 0 7",
        " a",
        "<unk> a"},
            {"",
        "",
        "",
        ""},
            {"a  b ",
        "7 6 4 5",
        "a  b ",
        "a  b "},
            {"  a",
        "6 3",
        "a",
        "a"},
        }},
    {"no decoder", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \""
        "post_processor\": null, \"decoder\": null, \"model\": {\"type\": \"BPE\", \"dropo"
        "ut\": null, \"unk_token\": \"<unk>\", \"continuing_subword_prefix\": null, \"end_"
        "of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_m"
        "erges\": false, \"vocab\": {\"<unk>\": 0, \"a\": 1, \"b\": 2, \"ab\": 3}, \"merge"
        "s\": [[\"a\", \"b\"]]}}",
        449,
        {
            {"a b",
        "1 2",
        "a b",
        "a b"},
            {"abb a",
        "3 2 1",
        "ab b a",
        "ab b a"},
            {"c c",
        "0 0",
        "<unk> <unk>",
        "<unk> <unk>"},
        }},
    {"added tokens", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [{\"id\": 6, \"content\": \"HTT\", \"single_word\": false, \"lstrip\": false, \""
        "rstrip\": false, \"normalized\": true, \"special\": false}, {\"id\": 7, \"content"
        "\": \"Ab\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"norma"
        "lized\": false, \"special\": false}], \"normalizer\": {\"type\": \"Lowercase\"}, "
        "\"pre_tokenizer\": null, \"post_processor\": null, \"decoder\": {\"type\": \"Fuse"
        "\"}, \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", "
        "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": "
        "false, \"byte_fallback\": false, \"ignore_merges\": false, \"vocab\": {\"<unk>\":"
        " 0, \"H\": 1, \"T\": 2, \"a\": 3, \"b\": 4, \"p\": 5}, \"merges\": []}}",
        704,
        {
            {"aHTTp",
        "3 6 5",
        "ahttp",
        "ahttp"},
            {"httb",
        "6 4",
        "httb",
        "httb"},
            {"Abab AB",
        "7 3 4 0 3 4",
        "Abab<unk>ab",
        "Abab<unk>ab"},
        }},
    {"unigram", tnd_tokenizer_json_read,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\":"
        " [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replace"
        "ment\": \"\\u2581\", \"prepend_scheme\": \"always\", \"split\": true}, \"post_pro"
        "cessor\": null, \"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"\\u2581"
        "\", \"prepend_scheme\": \"always\", \"split\": true}, \"model\": {\"type\": \"Uni"
        "gram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0.0], [\"\\u2581\", -2.1], [\"a\","
        " -1.3], [\"b\", -1.7], [\"ab\", -3.0000000000000004], [\"ba\", -3.0], [\"aba\", -"
        "4.3], [\"bb\", -3.3], [\"abab\", -6.0]], \"byte_fallback\": false}}",
        555,
        {
            {"abab",
        "1 8",
        "abab",
        "abab"},
            {"ababab bb",
        "1 8 4 1 7",
        "ababab bb",
        "ababab bb"},
            {"aabbaabbab",
        "1 2 2 7 2 2 7 4",
        "aabbaabbab",
        "aabbaabbab"},
            {"cc a",
        "1 0 1 2",
        "<unk> a",
        "<unk> a"},
            {"abcab",
        "1 4 0 4",
        "ab<unk>ab",
        "ab<unk>ab"},
        }},
    {"unigram of sentencepiece", tnd_tokenizer_sentencepiece_read,
        "\012\016\012\005<unk>\025\000\000\000\000\030\002\012\014\012\003<s>\025\000\000\000"
        "\000\030\003\012\015\012\004</s>\025\000\000\000\000\030\003\012\013\012\002zq\025"
        "\000\000\000\000\030\004\012\012\012\003\342\226\201\025@\354\001\300\012\010\012"
        "\001a\025\003\364\014\300\012\013\012\004\342\226\201a\025\333\021\015\300\012\015"
        "\012\006\342\226\201bac\025\325\"\022\300\012\015\012\006\342\226\201cab\025\273\243"
        "\024\300\012\012\012\003aab\025\"\347&\300\012\014\012\005\342\226\201aa\025\222\326"
        "2\300\012\010\012\001c\025\232\3035\300\012\011\012\002bb\025m\365@\300\012\010\012"
        "\001b\025\354\265A\300\012\013\012\004\342\226\201c\025\354\265A\300\022\036\022\022"
        "/tmp/tmp_pg2e4pl/m \017\372\001\002zq\210\002\000\032\014\012\010identity\022\000"
        "",
        239,
        {
            {"aaaaaaa",
        "10 5 5 5 5 5",
        "aaaaaaa",
        NULL},
            {"abcabcabc",
        "6 13 11 5 13 11 5 13 11",
        "abcabcabc",
        NULL},
            {" a  b",
        "6 4 13",
        "a b",
        NULL},
            {"azqb",
        "6 3 13",
        "azqb",
        NULL},
            {"xa \303\251",
        "4 0 5 4 0",
        " \342\201\207 a  \342\201\207 ",
        NULL},
            {"<s>b",
        "4 0 13",
        " \342\201\207 b",
        NULL},
        }},
    {"BPE of sentencepiece", tnd_tokenizer_sentencepiece_read,
        "\012\016\012\005<unk>\025\000\000\000\000\030\002\012\014\012\003<s>\025\000\000\000"
        "\000\030\003\012\015\012\004</s>\025\000\000\000\000\030\003\012\013\012\002zq\025"
        "\000\000\000\000\030\004\012\011\012\002ab\025\000\000\000\200\012\011\012\002ba\025"
        "\000\000\200\277\012\011\012\002aa\025\000\000\000\300\012\013\012\004\342\226\201"
        "c\025\000\000@\300\012\012\012\003bac\025\000\000\200\300\012\015\012\006\342\226"
        "\201bac\025\000\000\240\300\012\011\012\002bb\025\000\000\300\300\012\012\012\003"
        "aab\025\000\000\340\300\012\012\012\003cab\025\000\000\000\301\012\014\012\005\342"
        "\226\201aa\025\000\000\020\301\012\014\012\005\342\226\201bb\025\000\000 \301\012"
        "\014\012\005\342\226\201cc\025\000\0000\301\012\013\012\004abba\025\000\000@\301\012"
        "\015\012\006\342\226\201cab\025\000\000P\301\012\016\012\007\342\226\201aaab\025\000"
        "\000`\301\012\015\012\006cabaab\025\000\000p\301\012\011\012\002ac\025\000\000\200"
        "\301\012\011\012\002ca\025\000\000\210\301\012\011\012\002cc\025\000\000\220\301\012"
        "\013\012\004\342\226\201a\025\000\000\230\301\012\013\012\004\342\226\201b\025\000"
        "\000\240\301\012\012\012\003aba\025\000\000\250\301\012\010\012\001a\025\000\000\260"
        "\301\012\010\012\001b\025\000\000\270\301\012\010\012\001c\025\000\000\300\301\012"
        "\012\012\003\342\226\201\025\000\000\310\301\022 \022\022/tmp/tmp_pg2e4pl/m\030\002"
        " \036\372\001\002zq\210\002\000\032\016\012\010identity\022\000\030\000",
        430,
        {
            {"aaaaaaa",
        "6 6 6 26",
        "aaaaaaa",
        NULL},
            {"abcabcabc",
        "4 12 12 28",
        "abcabcabc",
        NULL},
            {" a  b",
        "26 24",
        "a b",
        NULL},
            {"azqb",
        "26 3 27",
        "azqb",
        NULL},
            {"xa \303\251",
        "0 26 29 0",
        " \342\201\207 a  \342\201\207 ",
        NULL},
            {"<s>b",
        "0 27",
        " \342\201\207 b",
        NULL},
        }},
    {"characters of sentencepiece", tnd_tokenizer_sentencepiece_read,
        "\012\016\012\005<unk>\025\000\000\000\000\030\002\012\014\012\003<s>\025\000\000\000"
        "\000\030\003\012\015\012\004</s>\025\000\000\000\000\030\003\012\013\012\002zq\025"
        "\000\000\000\000\030\004\012\010\012\001a\025\264\211\211\277\012\012\012\003\342"
        "\226\201\025\030h\250\277\012\010\012\001b\0258\233\264\277\012\010\012\001c\025\364"
        "\375\365\277\022 \022\022/tmp/tmp_pg2e4pl/m\030\004 \010\372\001\002zq\210\002\000"
        "\032\014\012\010identity\022\000",
        148,
        {
            {"aaaaaaa",
        "5 4 4 4 4 4 4 4",
        "aaaaaaa",
        NULL},
            {"abcabcabc",
        "5 4 6 7 4 6 7 4 6 7",
        "abcabcabc",
        NULL},
            {" a  b",
        "5 4 5 6",
        "a b",
        NULL},
            {"azqb",
        "5 4 3 6",
        "azqb",
        NULL},
            {"xa \303\251",
        "5 0 4 5 0",
        " \342\201\207 a  \342\201\207 ",
        NULL},
            {"<s>b",
        "5 0 6",
        " \342\201\207 b",
        NULL},
        }},
    {"tokens by rank, of Llama 3", tnd_tokenizer_tiktoken_read,
        "AA== 0\012AQ== 1\012Ag== 2\012Aw== 3\012BA== 4\012BQ== 5\012Bg== 6\012Bw== 7\012C"
        "A== 8\012CQ== 9\012Cg== 10\012Cw== 11\012DA== 12\012DQ== 13\012Dg== 14\012Dw== 15"
        "\012EA== 16\012EQ== 17\012Eg== 18\012Ew== 19\012FA== 20\012FQ== 21\012Fg== 22\012"
        "Fw== 23\012GA== 24\012GQ== 25\012Gg== 26\012Gw== 27\012HA== 28\012HQ== 29\012Hg=="
        " 30\012Hw== 31\012IA== 32\012IQ== 33\012Ig== 34\012Iw== 35\012JA== 36\012JQ== 37\012"
        "Jg== 38\012Jw== 39\012KA== 40\012KQ== 41\012Kg== 42\012Kw== 43\012LA== 44\012LQ=="
        " 45\012Lg== 46\012Lw== 47\012MA== 48\012MQ== 49\012Mg== 50\012Mw== 51\012NA== 52\012"
        "NQ== 53\012Ng== 54\012Nw== 55\012OA== 56\012OQ== 57\012Og== 58\012Ow== 59\012PA=="
        " 60\012PQ== 61\012Pg== 62\012Pw== 63\012QA== 64\012QQ== 65\012Qg== 66\012Qw== 67\012"
        "RA== 68\012RQ== 69\012Rg== 70\012Rw== 71\012SA== 72\012SQ== 73\012Sg== 74\012Sw=="
        " 75\012TA== 76\012TQ== 77\012Tg== 78\012Tw== 79\012UA== 80\012UQ== 81\012Ug== 82\012"
        "Uw== 83\012VA== 84\012VQ== 85\012Vg== 86\012Vw== 87\012WA== 88\012WQ== 89\012Wg=="
        " 90\012Ww== 91\012XA== 92\012XQ== 93\012Xg== 94\012Xw== 95\012YA== 96\012YQ== 97\012"
        "Yg== 98\012Yw== 99\012ZA== 100\012ZQ== 101\012Zg== 102\012Zw== 103\012aA== 104\012"
        "aQ== 105\012ag== 106\012aw== 107\012bA== 108\012bQ== 109\012bg== 110\012bw== 111\012"
        "cA== 112\012cQ== 113\012cg== 114\012cw== 115\012dA== 116\012dQ== 117\012dg== 118\012"
        "dw== 119\012eA== 120\012eQ== 121\012eg== 122\012ew== 123\012fA== 124\012fQ== 125\012"
        "fg== 126\012fw== 127\012gA== 128\012gQ== 129\012gg== 130\012gw== 131\012hA== 132\012"
        "hQ== 133\012hg== 134\012hw== 135\012iA== 136\012iQ== 137\012ig== 138\012iw== 139\012"
        "jA== 140\012jQ== 141\012jg== 142\012jw== 143\012kA== 144\012kQ== 145\012kg== 146\012"
        "kw== 147\012lA== 148\012lQ== 149\012lg== 150\012lw== 151\012mA== 152\012mQ== 153\012"
        "mg== 154\012mw== 155\012nA== 156\012nQ== 157\012ng== 158\012nw== 159\012oA== 160\012"
        "oQ== 161\012og== 162\012ow== 163\012pA== 164\012pQ== 165\012pg== 166\012pw== 167\012"
        "qA== 168\012qQ== 169\012qg== 170\012qw== 171\012rA== 172\012rQ== 173\012rg== 174\012"
        "rw== 175\012sA== 176\012sQ== 177\012sg== 178\012sw== 179\012tA== 180\012tQ== 181\012"
        "tg== 182\012tw== 183\012uA== 184\012uQ== 185\012ug== 186\012uw== 187\012vA== 188\012"
        "vQ== 189\012vg== 190\012vw== 191\012wA== 192\012wQ== 193\012wg== 194\012ww== 195\012"
        "xA== 196\012xQ== 197\012xg== 198\012xw== 199\012yA== 200\012yQ== 201\012yg== 202\012"
        "yw== 203\012zA== 204\012zQ== 205\012zg== 206\012zw== 207\0120A== 208\0120Q== 209\012"
        "0g== 210\0120w== 211\0121A== 212\0121Q== 213\0121g== 214\0121w== 215\0122A== 216\012"
        "2Q== 217\0122g== 218\0122w== 219\0123A== 220\0123Q== 221\0123g== 222\0123w== 223\012"
        "4A== 224\0124Q== 225\0124g== 226\0124w== 227\0125A== 228\0125Q== 229\0125g== 230\012"
        "5w== 231\0126A== 232\0126Q== 233\0126g== 234\0126w== 235\0127A== 236\0127Q== 237\012"
        "7g== 238\0127w== 239\0128A== 240\0128Q== 241\0128g== 242\0128w== 243\0129A== 244\012"
        "9Q== 245\0129g== 246\0129w== 247\012+A== 248\012+Q== 249\012+g== 250\012+w== 251\012"
        "/A== 252\012/Q== 253\012/g== 254\012/w== 255\012YWI= 256\012YmM= 257\012YWJj 258\012"
        "IGE= 259\012IGFi 260\012MTI= 261\012w6k= 262\012",
        2257,
        {
            {"abc ab",
        "258 260",
        "abc ab",
        "abc ab"},
            {"abcbc",
        "258 257",
        "abcbc",
        "abcbc"},
            {"12345",
        "261 51 52 53",
        "12345",
        "12345"},
            {"\303\251a",
        "262 97",
        "\303\251a",
        "\303\251a"},
            {"<|eot_id|>a",
        "272 97",
        "a",
        "<|eot_id|>a"},
            {"a\012\012 b",
        "97 10 10 32 98",
        "a\012\012 b",
        "a\012\012 b"},
            {"I'LL",
        "73 39 76 76",
        "I'LL",
        "I'LL"},
        }},
