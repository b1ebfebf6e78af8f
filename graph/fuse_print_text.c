/* SPDX-License-Identifier: MIT
 * The prelude of printed kernels: names of types and functions that differ between dialects,
 * conversions, and functions that their libraries lack. */
#include "graph/fuse_print.h"

static const char c_names[] =
    "#include <math.h>\n"
    "#include <string.h>\n"
    "typedef long long i64;\n"
    "typedef unsigned long long u64;\n"
    "#define FN static inline\n"
    "FN unsigned bits_of(float v) { unsigned b; memcpy(&b, &v, 4); return b; }\n"
    "FN float from_bits(unsigned b) { float v; memcpy(&v, &b, 4); return v; }\n";

/* (the f of a name says the width in C; here the argument does) */
static const char opencl_names[] = "typedef long i64;\n"
                                   "typedef ulong u64;\n"
                                   "#define FN\n"
                                   "#define bits_of as_uint\n"
                                   "#define from_bits as_float\n"
                                   "#define nearbyint rint\n"
                                   "#define nearbyintf rint\n";

static const char cuda_names[] = "typedef long long i64;\n"
                                 "typedef unsigned long long u64;\n"
                                 "#define FN static __device__\n"
                                 "#define bits_of __float_as_uint\n"
                                 "#define from_bits __uint_as_float\n";

static const char *const opencl_functions[] = {
    "fabs", "exp",  "log",   "sqrt",  "sin",   "cos", "tan",   "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "fmod", "pow"};

static const char shared[] =
    "typedef signed char i8;\n"
    "typedef short i16;\n"
    "typedef int i32;\n"
    "typedef unsigned char u8;\n"
    "typedef unsigned short u16;\n"
    "typedef unsigned int u32;\n"
    "#define SQRT1_2f 0.70710678118654752440f\n"
    "#define SQRT_2_PIf 0.79788456080286535588f\n"
    "#define GELU_CUBEf 0.044715f\n"
    "FN float floor_modf(float a, float b)\n"
    "{\n"
    "    const float rest = fmodf(a, b);\n"
    "    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
    "}\n"
    "FN i64 to_i64f(float v)\n"
    "{\n"
    "    return v != v ? 0 : v >= 9223372036854775808.0f ? (i64)0x7fffffffffffffff\n"
    "           : v < -9223372036854775808.0f ? (i64)0x8000000000000000 : (i64)v;\n"
    "}\n"
    "FN u64 to_u64f(float v)\n"
    "{\n"
    "    return !(v > 0) ? (u64)to_i64f(v) : v < 18446744073709551616.0f ? (u64)v : ~(u64)0;\n"
    "}\n"
    "FN float f16_value(u16 h)\n"
    "{\n"
    "    const u32 sign = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;\n"
    "    const float small = (float)m * 5.9604644775390625e-8f;\n"
    "    return e == 31 ? from_bits(sign | 0x7f800000 | m << 13)\n"
    "           : e != 0 ? from_bits(sign | (e + 112) << 23 | m << 13)\n"
    "           : sign != 0 ? -small : small;\n"
    "}\n"
    "FN u16 f16_bits(float v)\n"
    "{\n"
    "    const u32 sign = bits_of(v) >> 16 & 0x8000, b = bits_of(v) & 0x7fffffff;\n"
    "    const u32 small = bits_of(from_bits(b) + 0.5f) - 0x3f000000;\n"
    "    return (u16)(sign | (b > 0x7f800000 ? 0x7e00 : b >= 0x47800000 ? 0x7c00\n"
    "                         : b < 0x38800000 ? small\n"
    "                         : (b - 0x38000000 + 0xfff + (b >> 13 & 1)) >> 13));\n"
    "}\n"
    "FN float small_value(int e, int m, int bias, int special, u8 code)\n"
    "{\n"
    "    const u32 all = (1u << (e + m)) - 1, b = code & all;\n"
    "    const u32 sign = special == 4 ? 0 : code & (all + 1);\n"
    "    const u32 most = special == 1 ? all - (1u << m) : special == 2 || special == 4 ? all - 1\n"
    "                                                                                   : all;\n"
    "    const int nan = special == 3 ? sign != 0 && b == 0 : b > most;\n"
    "    const u32 scaled = special == 4 ? (b == 0 ? 0x400000 : b << 23)\n"
    "        : b >> m != 0 ? (b << (23 - m)) + ((u32)(127 - bias) << 23)\n"
    "        : bits_of((float)b * from_bits((u32)(128 - bias - m) << 23));\n"
    "    return from_bits((sign != 0 ? 0x80000000 : 0)\n"
    "                     | (special == 1 && b == most + 1 ? 0x7f800000\n"
    "                        : nan ? 0x7fc00000 : scaled));\n"
    "}\n"
    "FN u8 small_bits(int e, int m, int bias, int special, float v)\n"
    "{\n"
    "    const u32 all = (1u << (e + m)) - 1, b = bits_of(v) & 0x7fffffff;\n"
    "    const u32 sign = bits_of(v) >> 31 != 0 ? all + 1 : 0;\n"
    "    const u32 most = special == 1 ? all - (1u << m) : special == 2 ? all - 1 : all;\n"
    "    u32 code;\n"
    "    if (special == 4)\n"
    "        return bits_of(v) == 0x80000000 || bits_of(v) <= 0x400000 ? 0\n"
    "               : bits_of(v) > 0x7f000000 ? 255 : (u8)((b + 0x7fffff) >> 23);\n"
    "    if (v != v)\n"
    "        return (u8)(special == 0 ? 0 : special == 3 ? all + 1\n"
    "                    : special == 1 ? sign | (all - 1) : sign | all);\n"
    "    if (b >= (u32)(128 - bias) << 23)\n"
    "        code = ((b + (1u << (22 - m)) - 1 + (b >> (23 - m) & 1)) >> (23 - m))\n"
    "               - ((u32)(127 - bias) << m);\n"
    "    else\n"
    "        code = bits_of(from_bits(b) * from_bits((u32)(126 + bias + m) << 23) + 8388608.0f)\n"
    "               - 0x4b000000;\n"
    "    if (code > most) code = special == 0 ? all : most + 1;\n"
    "    if (special == 3 && (code == 0 || code > all)) return (u8)(code == 0 ? 0 : all + 1);\n"
    "    return (u8)(sign | code);\n"
    "}\n"
    "FN float bf16_value(u16 h) { return from_bits((u32)h << 16); }\n"
    "FN u16 bf16_bits(float v)\n"
    "{\n"
    "    const u32 b = bits_of(v);\n"
    "    return (u16)(v != v ? (b >> 16 | 64) : (b + 0x7fff + (b >> 16 & 1)) >> 16);\n"
    "}\n";

static const char doubles[] =
    "#define SQRT1_2 0.70710678118654752440\n"
    "#define SQRT_2_PI 0.79788456080286535588\n"
    "#define GELU_CUBE 0.044715\n"
    "FN double floor_mod(double a, double b)\n"
    "{\n"
    "    const double rest = fmod(a, b);\n"
    "    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
    "}\n"
    "FN i64 to_i64(double v)\n"
    "{\n"
    "    return v != v ? 0 : v >= 9223372036854775808.0 ? (i64)0x7fffffffffffffff\n"
    "           : v < -9223372036854775808.0 ? (i64)0x8000000000000000 : (i64)v;\n"
    "}\n"
    "FN u64 to_u64(double v)\n"
    "{\n"
    "    return !(v > 0) ? (u64)to_i64(v) : v < 18446744073709551616.0 ? (u64)v : ~(u64)0;\n"
    "}\n";

void tnd_fuse_print_prelude(enum tnd_dialect dialect, bool has_double, struct tnd_text *out)
{
    if (dialect == TND_DIALECT_OPENCL) {
        tnd_text_add(out, opencl_names);
        for (size_t i = 0; i < sizeof(opencl_functions) / sizeof(opencl_functions[0]); i++) {
            tnd_text_printf(out, "#define %sf %s\n", opencl_functions[i], opencl_functions[i]);
        }
        tnd_text_add(out, has_double ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "");
    } else {
        tnd_text_add(out, dialect == TND_DIALECT_C ? c_names : cuda_names);
    }
    tnd_text_add(out, shared);
    tnd_text_add(out, has_double ? doubles : "");
}
