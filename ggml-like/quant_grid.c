/* SPDX-License-Identifier: MIT
 * Codecs of the IQ1, IQ2 and IQ3 types, TQ1_0 and TQ2_0 in plain C: where each bit of a block of
 * 256 values is stored. Layouts: ggml-common.h and ggml-quants.c of the ggml project; gguf-py's
 * quants.py has them in Python. Grid points for values are chosen in quant_grid_fit.c. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_grid.h"

/* ---- grids ---- */

/* The grids are part of the format (iq2xxs_grid and so on of ggml-common.h): selected points of the
 * lattices of 8 digits 0..2, or 4 digits 0..7. Read as numbers of these digits, the first value's
 * digit lowest, the points ascend; so a grid is stored as a list of gaps, one character each: '#'
 * plus the gap, while '~' adds MORE without a point. tools/judges/quants.py compares the decoded
 * values of all points. */
enum { MORE = '~' - '#' };

static const char gaps_iq2_xxs[] =
    "#%%%%%%)%'%%%))'%)%)/+%)'1A//%5G=%)-%)%'/-%)/)%'/17%-;%5A5)'%)/'%)%9;;[-i%)-+5/)'1)/5+-S-U)/"
    "'/7MCE1g%)5\?='gQO%)93+%U+S%s%)51K\?7~(;/S~FW%))'%))+'-%)55\?+';+;+-A)/G39-_u%)5'UM'-[C5)')%"
    "G);=Qis%;mIM-)C__q)5;AK[AG'y%Q~N~~C%)7\?\?//ck%)'15GCE975Iu{m)/)Q9K]U7-{~|O~ZE9Am~(~~uS";

static const char gaps_iq2_xs[] =
    "#%%%%%%%%%%%%'%%%%%%%'%)%%%'%'%-%%%%%%%%%%)%%%'%))'%)5%%%'%)-%)'1+7%%%%%%%'%)%%%'%%'-%)5%%%'"
    "%)-%)-+\?%)1'%\?;%%%%%%)')%))/5+%%)5\?)75)O'-%%%%%%%'%)%%%'%)+%%)5%%%'%)-%)5/%1%%'55G%%%'%)-"
    "%'%/)\?%)5Y/9S%)%3/79'QgM%%%%%%%)-%)55-%)5)3C7E;'%)3%Y\?-C/3_')%-971]/;/I'%7%%%%%%%'%)%%%%%%"
    ")')%)5%%%'%)-%)5'3+%)%1%Y%%%'%'%-%)5/3%)/)O-+9)Q%)5'++E-7)3Cq%%%'%))'%)5\?%)'1%WAU%%)-+5-5+)"
    "S)KC9+/3+E\?-%~6;%)5/+/7%~.1A31o5'O{WUcE+E%%%'%)+%%)5%9%%%%'5-)I5G%3)'%)%%1537AQ7I\?)39-%9+~"
    "(E)+-'%)513;7\?m77'=))cI%O}KI_CG%'%-+QQ)E'%'7\?5GK~X77-%'S))Y%Q%I3";

static const char gaps_iq2_s[] =
    "#%%%%%%%%%%%%'%%%%%%%'%%%%%%%'%)''%%%%%%%%'%)%%%'%%%%'%'%)%%)%)%%%'%)+%%%%%'1'''++%%%%%%%'%%"
    "%%%%%%%%%%%%%)%%%%'%'%)%%%%%%%%%'%'%%%%%%%'%)%%%'%)-%%%%'1'%'%)-%)5%%%'%%%%''%%%%%%%%'%)'+1%"
    "%)%%%'+'%'%)-+5-%+'%-E/%%%%%%%'%%'%%%'%%%%%%%'%%''%'%)%%%%%%%%%%%%'%%%%%%%'%)%%%'%3%'%')%)')"
    "%3%)5%%%'%%%%'%'%%%%%%%'%)%%%'%)-%%%%%%%'%)%%%'%)-%)5'%'%)-%)5=%%%%%'%'+%%%'%)-%;%%%'%)-%)39"
    "-)51K%%%'%%%%''%%)%%+)+'1%%)%%)+%%)%)-%)5+/'%');%3'%%%%'%'%)%%%'%)-%)5'%'%)-%)1'\?%)53I')%3%"
    ")=5%%)]9/\?/%7%%%%%%%%%%%'%%%%%%%%%%%)%)'%'%)%%%'%%%%%%)%%%%%%%'%)%%%'%)-%)%%%))'%'%)-%;%%%%"
    "%%%%%%%%'%%%%%%%'%)%%%'%)-%%%%%%%'%)%%%'%)+%%)5%%%'%)-%)59)%'%%%%'%)%%%'%)/)5%%%'%)-%)511%)5"
    "Y%%%'%%%%%%%'%%%%%%%'%)%%%'%3%%%%%%%'%)%%%'%)-%)5'%'%)-%)3%\?%%%%%%%'%)%%%'%)-%)5%%%'%)-%)5"
    "\?%)1'Y%%%'%)-%)+-\?%)5Y3M7'%%'%%%'%)'%'%)/)5%%%'%)-%)531)51C+'%'%)-%)5\?%)5+313e3%)K7/=wO+%"
    "%%'%'%')%)%%%'+')%3%'%%%%'%)%%%'%3%)3%''%%3%)Q%%%%%%%'+%%%'%)-%)5%%%'%)-%)5+7%)3%Y')%3%)I+%;"
    "9W9%/5+%'%%%%))%%%'%)-%)5')%3%)+I%)5U'%%%'%)-%)511%)5M'+C3E%)1'W%E'~25'''+)%%)I)\?9E)/'%A'%3"
    "'%)5E1)3~.W3UQ7\?%-%'G7";

static const char gaps_iq1[] =
    "#%%%%%&(%'%()%%+(%'%((%'%'$)%%%$()'%'%'%%%$*)%%+(%'%((%'%())('%%'%%&&%%'%.%%+)))''$2)))%$$+%"
    "%+%''$$%$$%%%%%%%,&%%%%$$%1'/%)%%%&$'%))%'.%'%((%'%()'+(%'%((%'%()%'($)+$&)%'/%%%)(%'%((%'%("
    "))&&(%%%%((%'%-$%'($)%)'%'%$&/%%(&)%%%%%%%'%')'$$$$$$%%'++%)%3%%+((%'%%%'%+)%%+)'%($%$&'(&$$"
    "%%%$$%'%%)'%&$%$$%%$&'%'%%$$%%%%%%%%$$($$$$%$%%$$%%%$$%%$$%$$%$$%%)%$$+$$%%''%$$%%%&$$$&%$%$"
    "$)&&%+'/'+)%%%%'%%$$%%%))%-1%%'%&*$$%'%$$%$$''+&$%%''%,**%*%%%%%%''%))'&-%'%((%%%%())&&(%'%("
    "(%%%%()%')*$')%%%%$$+((%))(%%&(%'%()'%))(%%&(%'%(+%%)+$$%'%%%)+)%'&&/)))%'%'%$&'%%-%&$%%%%%%"
    ")(%())))($)(%'+-%'%((%'%()%-(%'%-%'%+&%')-%'%)%%%)((%($(%'%-%'%()'%)(%'%((%'%()'+/'%%%%%%3'&"
    "''$%%%'%$$%%'%)%%%%$$%$(%%%%%'%%($$.)%%+)-%''',(-)/&,)%%%%$$($%%%%'%%%%($)&$%'%%$$%%''%%$$%%"
    "$%$$$$&%$$%'$$%'%$$%$(%%%&&($%%%%'%%%%&$$%$%'%%'&''$)%%+)&'(*(%'%'%%%))%%%))&$&$&$%'%%'''%$$"
    "$$%%%%$&)%'%$$'%%%33%%)%%''1-)%$$%'%'%%'%'%'%$$%)%+%)%&$'%)%$$%%$$$$%'$$%%%$$%%$$$$$$$$%%$$%"
    "'%)%$$%%''%')%'%%+%'%%$$%'%,(%%&$',$)%$$$$&&%%%%$$%$$$%$$$$$%$$$$%%)%%%$$%&%$'%$$$$%%$$$$$%$"
    "%%$$%%$$$$$$$%$$$$$$$$$$%$$$$$%%$&$$$%$$$$&%$$%%$$$%$$&%$%$%$$$$$$$&&$$$$$$$$$$$$$%%$&'%$$$$"
    "%&'&%$$$($$%%'%'*(%%%%$$$$%%$$*(%%%%')&$%'%%$$%))%$$%%$$$$$$$$%%$$%&&&&%$$$$)+&*'$'$%)%$&&$$"
    "$'%%%%*&%$$%%/+%%)+)'$$%%%%%&0+)%%%'%)$&%)&&&$%)$&'(&%)'%/'%.$'+$$&0)'+2$%$&%'%%%%%%%%$$%$$%"
    "%+$&%%$$$$%%%')%%%&$%1$$%%$%$$%&%$$%*%$%&$%$&%$$(()(($$%'%%%%$$$%$'%&%%''%$$%&%&2%))-%'%)))("
    "+(%)')%%%%$&$$'%$$%%''&$(()%$&/'$0%'%'%%'$&**&%)'%'%-%'%(($%%%)(%'%((%'%()%%%))%'%%%$$$(%%)&"
    "(%%)(%'%((%'%.%')(%'%((%'%0'/%*&'%%'1'/)'%')%%$&%'%$$%$($$%%%%%%%%%+1'%))%'$$'&$%'&()*')%'%("
    "(%'%%&)%')&%%'%((%'%($(%%+)%%%%%%'%%--%)(%'%((%'%()%%0%'%((%'%()'$$))'%)%%+$()%%%))%%%%'%%%%"
    "%%%'($%$$%'%+%)%%'%%%))%')+%%%%%%+%)+%.&%%''%+'+%%$$$$%$$%+%)$$%')%'%%$$%$$%&&&$%%$$%%$$$$$$"
    "$$%%$$%&&%'$$$$%$$%%%%%%)'&%(%)%$&$%$%)%($'$&$$+%%)-%))''%%$&'$,)'%)+%%%%%%%$$%%'%%%%%%$$%'%"
    "$&%%)%%'%'+,,+%%%'%'/)%$$0%'%((%'%()%%%.%'%((%'%(&&%%%$2%&&%%%%-(%&%0'%$*''%()'%)(%'%((%'%4)"
    ")%)&$%%%&$$$)\?%%%%%+%'%)%$$%)'%%$$%'%%3)'&%&+%&&%$$&%/''$%&%%'%'%-%'%.%%%.%'%((%'%(+'&&)+''"
    "%'%.(0%'%-%'%.%%0%'%((%'%";

static const char gaps_iq3_xxs[] =
    "#%%(%'$%*,<%'%(%*'&%*./+%%(*%*%'-)1')$%.F67(./%')63V:7'%813%(%*%(%%.$;%**%R%(%**E)%1,03.'FK'"
    "56/p1C%*%(%'&,B%%&%**>'$+%*)$%0$07*'O'D1;7->h%.:\?*%*%80()%1,.%>%(08325`26))/>B58K87.1%/'p72"
    "$3)4ABH.D18p&%1U::+)3:B1C+L@.'F+:rO1U3%1@CAHG)iDHTK1U%%$53O-M>(9018D3B%5g";

static const char gaps_iq3_s[] =
    "#$$&%$$$%%%$')(%&%%%(%*&&$$$%'$'&&'%'*0'()$'%$&&&'&')&%%%0&+)'&%*%&)'%0%'&.'%&))&)2-%/%'()'%"
    "2(.&%142*%%/%'(0'7$$%'$%%%$%*&%1%&,)$%&%'(*&)*%1)%-&%$'))&-&-*&&$&))$'(4).%(%0%*'%'8*&)*%2J'"
    "&0%>%(%*/'4)+$%%%$%%%&%'$%*%%&%0$&%&%)&'&&'&)*;&&-%(*%-'-&'%&',%(%*)1.),&*&'<&*(,0$.0+%(-\?'"
    "7'0%.(=*%%%&*%%(%&%-)+%%*(%03-'%-)-%/<*'(%'$,%')1+)('*4)'0*%.(--066C%0%.F'))'&&**3-(%%*)())'"
    "7%(('-(2&)/(%(%*'F%5.$</%-D<47;(..)<)')1'&&/)(%%(*,C),-()0:($20(/))&/-/G/6%ZC%1Z%%/%833*@95)"
    ".()+/(2X121&<78>L%X'&,%/%/)3*.2%\?&')&*4<;&19')(;M3C:J";

/* Magnitudes by digit. IQ1: -1, 0 and 1 times eight, because the shift of its values is an
 * eighth. */
static const int8_t magnitudes_iq2[] = {8, 25, 43};
static const int8_t magnitudes_iq1[] = {-8, 0, 8};
static const int8_t magnitudes_iq3_xxs[] = {4, 12, 20, 28, 36, 44, 52, 62};
static const int8_t magnitudes_iq3_s[] = {1, 3, 5, 7, 9, 11, 13, 15};

static _Alignas(64) int8_t points_iq2_xxs[256 * 8], points_iq2_xs[512 * 8];
static _Alignas(64) int8_t points_iq2_s[1024 * 8], points_iq1[2048 * 8];
static _Alignas(64) int8_t points_iq3_xxs[256 * 4], points_iq3_s[512 * 4];
static uint16_t codes_iq2_xxs[256], codes_iq2_xs[512], codes_iq2_s[1024], codes_iq1[2048];
static uint16_t codes_iq3_xxs[256], codes_iq3_s[512];

/* For each byte of signs, a mask with all bits of byte i set if sign bit i is. */
static uint64_t sign_masks[256];

static const struct tnd_grid grids[TND_GRIDS] = {
    [TND_GRID_IQ2_XXS] = {256, 8, points_iq2_xxs, codes_iq2_xxs, magnitudes_iq2, 3},
    [TND_GRID_IQ2_XS] = {512, 8, points_iq2_xs, codes_iq2_xs, magnitudes_iq2, 3},
    [TND_GRID_IQ2_S] = {1024, 8, points_iq2_s, codes_iq2_s, magnitudes_iq2, 3},
    [TND_GRID_IQ1] = {2048, 8, points_iq1, codes_iq1, magnitudes_iq1, 3},
    [TND_GRID_IQ3_XXS] = {256, 4, points_iq3_xxs, codes_iq3_xxs, magnitudes_iq3_xxs, 8},
    [TND_GRID_IQ3_S] = {512, 4, points_iq3_s, codes_iq3_s, magnitudes_iq3_s, 8},
};

static void make_grid(enum tnd_grid_name name, const char *gaps, int8_t *points, uint16_t *codes)
{
    const struct tnd_grid *grid = &grids[name];
    int code = 0;
    for (int i = 0; i < grid->n; gaps++) {
        const bool has_point = *gaps != '~';
        code += has_point ? *gaps - '#' : MORE;
        if (!has_point) {
            continue;
        }
        codes[i] = (uint16_t)code;
        for (int j = 0, rest = code; j < grid->width; j++, rest /= grid->base) {
            points[i * grid->width + j] = grid->magnitudes[rest % grid->base];
        }
        i++;
    }
}

static void make_grids(void)
{
    make_grid(TND_GRID_IQ2_XXS, gaps_iq2_xxs, points_iq2_xxs, codes_iq2_xxs);
    make_grid(TND_GRID_IQ2_XS, gaps_iq2_xs, points_iq2_xs, codes_iq2_xs);
    make_grid(TND_GRID_IQ2_S, gaps_iq2_s, points_iq2_s, codes_iq2_s);
    make_grid(TND_GRID_IQ1, gaps_iq1, points_iq1, codes_iq1);
    make_grid(TND_GRID_IQ3_XXS, gaps_iq3_xxs, points_iq3_xxs, codes_iq3_xxs);
    make_grid(TND_GRID_IQ3_S, gaps_iq3_s, points_iq3_s, codes_iq3_s);
    for (int i = 0; i < 256; i++) {
        uint8_t bytes[8];
        for (int j = 0; j < 8; j++) {
            bytes[j] = (i >> j & 1) != 0 ? 255 : 0;
        }
        memcpy(&sign_masks[i], bytes, sizeof(bytes));
    }
}

static pthread_once_t grids_once = PTHREAD_ONCE_INIT;

const struct tnd_grid *tnd_grid(enum tnd_grid_name name)
{
    pthread_once(&grids_once, make_grids);
    return &grids[name];
}

/* ---- decoding ---- */

static uint32_t load_32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int load_16(const uint8_t *p)
{
    return p[0] | p[1] << 8;
}

/* Bits 0..6 are signs; the eighth sign makes the number of signs even. */
static int eight_signs(uint32_t seven)
{
    uint32_t odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return (int)((seven & 127) | (odd & 1) << 7);
}

/* Applies signs to eight magnitudes: ~q + 1 in each byte whose mask is set. No magnitude is 0, so
 * the addition never carries into the next byte. */
static void put_8(uint64_t eight, int signs, int8_t *out)
{
    const uint64_t mask = sign_masks[signs & 255];
    eight = (eight ^ mask) + (mask & UINT64_C(0x0101010101010101));
    memcpy(out, &eight, sizeof(eight));
}

static uint64_t point_8(const int8_t *points, int i)
{
    uint64_t eight;
    memcpy(&eight, points + 8 * i, sizeof(eight));
    return eight;
}

/* Two grid points of 4 values each. */
static uint64_t points_4(const int8_t *points, int i, int j)
{
    uint64_t eight;
    int8_t bytes[8];
    memcpy(bytes, points + 4 * i, 4);
    memcpy(bytes + 4, points + 4 * j, 4);
    memcpy(&eight, bytes, sizeof(eight));
    return eight;
}

/* {d; per 32 values: 4 indices, then 4 times 7 signs and 4 bits of scale} */
void tnd_grid_decode_IQ2_XXS(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    const int8_t *points = tnd_grid(TND_GRID_IQ2_XXS)->points;
    out->d = (uint16_t)load_16(p);
    p += 2;
    for (int g = 0; g < 8; g++, p += 8) {
        const uint32_t signs = load_32(p + 4);
        out->scale[g] = (int8_t)(2 * (signs >> 28) + 1);
        for (int i = 0; i < 4; i++) {
            put_8(point_8(points, p[i]), eight_signs(signs >> 7 * i & 127),
                  out->q + 32 * g + 8 * i);
        }
    }
}

/* {d, 32 times 9 bits of place and 7 signs, 16 scales of 4 bits} */
void tnd_grid_decode_IQ2_XS(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    const int8_t *points = tnd_grid(TND_GRID_IQ2_XS)->points;
    out->d = (uint16_t)load_16(p);
    for (int i = 0; i < 32; i++) {
        const int word = load_16(p + 2 + 2 * i);
        put_8(point_8(points, word & 511), eight_signs((uint32_t)word >> 9), out->q + 8 * i);
    }
    for (int g = 0; g < 16; g++) {
        out->scale[g] = (int8_t)(2 * (p[66 + g / 2] >> (4 * (g % 2)) & 15) + 1);
    }
}

/* {d, 32 low bytes of indices, 32 times 8 signs, 32 times 2 high bits, 16 scales of 4 bits} */
void tnd_grid_decode_IQ2_S(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    const int8_t *points = tnd_grid(TND_GRID_IQ2_S)->points;
    out->d = (uint16_t)load_16(p);
    for (int i = 0; i < 32; i++) {
        const int place = p[2 + i] | (p[66 + i / 4] >> (2 * (i % 4)) & 3) << 8;
        put_8(point_8(points, place), p[34 + i], out->q + 8 * i);
    }
    for (int g = 0; g < 16; g++) {
        out->scale[g] = (int8_t)(2 * (p[74 + g / 2] >> (4 * (g % 2)) & 15) + 1);
    }
}

/* {d, 64 indices, per 32 values 4 times 7 signs and 4 bits of scale} */
void tnd_grid_decode_IQ3_XXS(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    const int8_t *points = tnd_grid(TND_GRID_IQ3_XXS)->points;
    out->d = (uint16_t)load_16(p);
    p += 2;
    for (int g = 0; g < 8; g++, p += 8) {
        const uint32_t signs = load_32((const uint8_t *)block + 66 + 4 * g);
        out->scale[g] = (int8_t)(2 * (signs >> 28) + 1);
        for (int i = 0; i < 4; i++) {
            put_8(points_4(points, p[2 * i], p[2 * i + 1]), eight_signs(signs >> 7 * i & 127),
                  out->q + 32 * g + 8 * i);
        }
    }
}

/* {d, 64 low bytes of indices, their ninth bits, 32 times 8 signs, 8 scales of 4 bits} */
void tnd_grid_decode_IQ3_S(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    const int8_t *points = tnd_grid(TND_GRID_IQ3_S)->points;
    out->d = (uint16_t)load_16(p);
    for (int i = 0; i < 32; i++) {
        const int high = p[66 + i / 4] >> (2 * (i % 4));
        put_8(points_4(points, p[2 + 2 * i] | (high & 1) << 8, p[3 + 2 * i] | (high & 2) << 7),
              p[74 + i], out->q + 8 * i);
    }
    for (int g = 0; g < 8; g++) {
        out->scale[g] = (int8_t)(2 * (p[106 + g / 2] >> (4 * (g % 2)) & 15) + 1);
    }
}

/* A grid point plus a shift. Sums of bytes stay in range. */
static void put_shifted(const int8_t *point, int shift, int8_t *out)
{
    for (int j = 0; j < 8; j++) {
        out[j] = (int8_t)(point[j] + shift);
    }
}

/* {d, 32 low bytes of indices, per 32 values 4 times 3 high bits, 3 bits of scale, shift} */
void tnd_grid_decode_IQ1_S(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    const int8_t *points = tnd_grid(TND_GRID_IQ1)->points;
    out->d = (uint16_t)load_16(p);
    for (int g = 0; g < 8; g++) {
        const int word = load_16(p + 34 + 2 * g);
        out->scale[g] = (int8_t)(2 * (word >> 12 & 7) + 1);
        for (int i = 0; i < 4; i++) {
            const int place = p[2 + 4 * g + i] | (word >> 3 * i & 7) << 8;
            put_shifted(points + 8 * place, (word & 0x8000) != 0 ? -1 : 1, out->q + 32 * g + 8 * i);
        }
    }
}

/* {32 low bytes of indices, 32 times 3 high bits and shift, 4 words of 4 scales of 3 bits and 4
 * bits of d} */
void tnd_grid_decode_IQ1_M(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    const int8_t *points = tnd_grid(TND_GRID_IQ1)->points;
    int d = 0;
    for (int i = 0; i < 4; i++) {
        const int word = load_16(p + 48 + 2 * i);
        d |= (word >> 12) << 4 * i;
        for (int j = 0; j < 4; j++) {
            out->scale[4 * i + j] = (int8_t)(2 * (word >> 3 * j & 7) + 1);
        }
    }
    out->d = (uint16_t)d;
    for (int i = 0; i < 32; i++) {
        const int high = p[32 + i / 2] >> (4 * (i % 2));
        const int place = p[i] | (high & 7) << 8;
        put_shifted(points + 8 * place, (high & 8) != 0 ? -1 : 1, out->q + 8 * i);
    }
}

/* ---- three levels ---- */

/* A byte is a fraction of 256 in base 3 with five digits: multiplied by 3^digit, its leading digit
 * is the wanted one. */
static int trit(uint8_t byte, int digit)
{
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    return (uint8_t)(byte * powers[digit]) * 3 >> 8;
}

/* Byte and digit of TQ1_0 that hold value i. Its 52 bytes: 32 with 5 digits each, 16 with 5, 4 with
 * 4; within each part, the first digits of all bytes come first. */
static int tq1_byte(int i, int *out_digit)
{
    const int begin = i < 160 ? 0 : i < 240 ? 160 : 240;
    const int bytes = i < 160 ? 32 : i < 240 ? 16 : 4;
    *out_digit = (i - begin) / bytes;
    return begin / 5 + (i - begin) % bytes;
}

void tnd_grid_decode_TQ1_0(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    out->d = (uint16_t)load_16(p + 52);
    memset(out->scale, 1, sizeof(out->scale));
    for (int i = 0; i < TND_GRID_VALUES; i++) {
        int digit;
        const int byte = tq1_byte(i, &digit);
        out->q[i] = (int8_t)(trit(p[byte], digit) - 1);
    }
}

/* Bits are stored as in Q2_K. */
void tnd_grid_decode_TQ2_0(const void *block, struct tnd_grid_values *out)
{
    const uint8_t *p = block;
    out->d = (uint16_t)load_16(p + 64);
    memset(out->scale, 1, sizeof(out->scale));
    for (int i = 0; i < TND_GRID_VALUES; i++) {
        out->q[i] = (int8_t)((p[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1);
    }
}

/* Levels -1, 0, 1 with d, the largest magnitude, as their unit. */
static uint16_t three_levels(const float *x, uint8_t levels[TND_GRID_VALUES])
{
    float top = 0;
    for (int i = 0; i < TND_GRID_VALUES; i++) {
        const float magnitude = x[i] < 0 ? -x[i] : x[i];
        top = magnitude > top ? magnitude : top;
    }
    const float id = top > 0 ? 1.0f / top : 0.0f;
    for (int i = 0; i < TND_GRID_VALUES; i++) {
        const float scaled = x[i] * id;
        levels[i] = (uint8_t)(1 + (scaled >= 0.5f ? 1 : 0) - (scaled <= -0.5f ? 1 : 0));
    }
    return tnd_f32_to_f16(top);
}

void tnd_quantize_TQ1_0(const float *src, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / TND_GRID_VALUES; b++) {
        uint8_t levels[TND_GRID_VALUES];
        int bytes[52] = {0};
        uint8_t *block = (uint8_t *)dst + b * 54;
        const uint16_t d = three_levels(src + b * TND_GRID_VALUES, levels);
        for (int i = 0; i < TND_GRID_VALUES; i++) {
            static const int powers[5] = {81, 27, 9, 3, 1};
            int digit;
            const int byte = tq1_byte(i, &digit);
            bytes[byte] += powers[digit] * levels[i];
        }
        for (int i = 0; i < 52; i++) { /* five digits to a fraction of 256, rounded up */
            block[i] = (uint8_t)((bytes[i] * 256 + 242) / 243);
        }
        block[52] = (uint8_t)d;
        block[53] = (uint8_t)(d >> 8);
    }
}

void tnd_quantize_TQ2_0(const float *src, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / TND_GRID_VALUES; b++) {
        uint8_t levels[TND_GRID_VALUES];
        uint8_t *block = (uint8_t *)dst + b * 66;
        const uint16_t d = three_levels(src + b * TND_GRID_VALUES, levels);
        memset(block, 0, 64);
        for (int i = 0; i < TND_GRID_VALUES; i++) {
            uint8_t *byte = &block[i / 128 * 32 + i % 32];
            *byte = (uint8_t)(*byte | levels[i] << (i % 128 / 32 * 2));
        }
        block[64] = (uint8_t)d;
        block[65] = (uint8_t)(d >> 8);
    }
}

/* ---- rows ---- */

static void dequantize(tnd_grid_decode_fn *decode, size_t bytes, int group, float unit,
                       const void *src, float *dst, int64_t n)
{
    for (int64_t b = 0; b < n / TND_GRID_VALUES; b++) {
        struct tnd_grid_values values;
        decode((const char *)src + (size_t)b * bytes, &values);
        const float d = tnd_f16_to_f32(values.d);
        for (int i = 0; i < TND_GRID_VALUES; i++) {
            const float scale = d * (float)values.scale[i / group] * unit;
            dst[b * TND_GRID_VALUES + i] = scale * (float)values.q[i];
        }
    }
}

#define DEQUANTIZE(NAME, bytes, group, unit)                                                       \
    void tnd_dequantize_##NAME(const void *src, float *dst, int64_t n)                             \
    {                                                                                              \
        dequantize(tnd_grid_decode_##NAME, bytes, group, unit, src, dst, n);                       \
    }
TND_GRID_LIST(DEQUANTIZE)
