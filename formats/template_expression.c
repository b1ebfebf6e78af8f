/* SPDX-License-Identifier: MIT
 * Evaluating the expressions of a template with Python's meaning: whole numbers of 64 bits, floor
 * division and modulo with the divisor's sign, comparisons in chains, `and` and `or` that give an
 * operand. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/tnd_assert.h"
#include "formats/template.h"

/* ---- arguments ---- */

const struct tnd_value *tnd_argument(struct tnd_render *render,
                                     const struct tnd_arguments *arguments, int i, const char *name)
{
    if (i >= 0 && i < arguments->n) {
        return &arguments->items[i];
    }
    for (int k = 0; name != NULL && k < arguments->n_named && render->status == TANDEM_OK; k++) {
        if (tnd_is_string(arguments->named[k].key, name)) {
            return &arguments->named[k].value;
        }
    }
    return NULL;
}

bool tnd_expect_arguments(struct tnd_render *render, const struct tnd_arguments *arguments,
                          const char *function, int least, int most)
{
    const int n = arguments->n + arguments->n_named;
    if (n < least || n > most) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "%s: %d arguments, expected %d to %d", function,
                          n, least, most);
        return false;
    }
    return true;
}

bool tnd_argument_true(struct tnd_render *render, const struct tnd_arguments *arguments, int i,
                       const char *name, bool or_else)
{
    const struct tnd_value *value = tnd_argument(render, arguments, i, name);
    return value != NULL ? tnd_is_true(*value) : or_else;
}

int64_t tnd_argument_int(struct tnd_render *render, const struct tnd_arguments *arguments, int i,
                         const char *name, int64_t or_else)
{
    const struct tnd_value *value = tnd_argument(render, arguments, i, name);
    if (value == NULL || value->kind == TND_KIND_NONE) {
        return or_else;
    }
    if (value->kind == TND_KIND_BOOL) {
        return value->as.truth;
    }
    if (value->kind != TND_KIND_INT) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "%s stands where a whole number is expected",
                          tnd_kind_name(*value));
        return or_else;
    }
    return value->as.integer;
}

const struct tnd_string *tnd_argument_string(struct tnd_render *render,
                                             const struct tnd_arguments *arguments, int i,
                                             const char *name)
{
    const struct tnd_value *value = tnd_argument(render, arguments, i, name);
    if (value == NULL || value->kind == TND_KIND_NONE) {
        return NULL;
    }
    return tnd_to_string(render, *value);
}

/* ---- members ---- */

static struct tnd_value undefined_use(struct tnd_render *render, struct tnd_value value,
                                      const char *use)
{
    return tnd_template_fail(
        render, TANDEM_E_FORMAT, "'%.*s' is undefined and cannot be %s",
        value.as.string != NULL ? (int)(value.as.string->n < 60 ? value.as.string->n : 60) : 0,
        value.as.string != NULL ? value.as.string->bytes : "", use);
}

static struct tnd_value loop_member(struct tnd_render *render, struct tnd_loop *loop,
                                    struct tnd_name name)
{
    const int64_t i = (int64_t)loop->i;
    const int64_t n = (int64_t)loop->n;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"index", i + 1},           {"index0", i}, {"revindex", n - i},
                   {"revindex0", n - i - 1},   {"length", n}, {"depth", loop->depth},
                   {"depth0", loop->depth - 1}};
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        if (strcmp(name.bytes, numbers[k].name) == 0) {
            return tnd_int(numbers[k].value);
        }
    }
    if (strcmp(name.bytes, "first") == 0 || strcmp(name.bytes, "last") == 0) {
        return tnd_bool(name.bytes[0] == 'f' ? i == 0 : i == n - 1);
    }
    if (strcmp(name.bytes, "previtem") == 0 && i > 0) {
        return loop->items[i - 1];
    }
    if (strcmp(name.bytes, "nextitem") == 0 && i + 1 < n) {
        return loop->items[i + 1];
    }
    return tnd_undefined(render, name.bytes, name.n);
}

struct tnd_value tnd_bind(struct tnd_render *render, const struct tnd_builtin *builtin,
                          struct tnd_value self)
{
    struct tnd_function *function = tnd_template_alloc(render, 1, sizeof(*function));
    if (function == NULL) {
        return tnd_none();
    }
    *function = (struct tnd_function){builtin, self};
    return (struct tnd_value){.kind = TND_KIND_FUNCTION, .as.function = function};
}

/* A value by its name in a dict or namespace. */
static const struct tnd_value *named_item(struct tnd_render *render, struct tnd_value value,
                                          struct tnd_name name)
{
    if (value.kind != TND_KIND_DICT && value.kind != TND_KIND_NAMESPACE) {
        return NULL;
    }
    return tnd_dict_find(render, value.as.dict, name.bytes, name.n);
}

struct tnd_value tnd_member_of(struct tnd_render *render, struct tnd_value value,
                               struct tnd_name name)
{
    if (value.kind == TND_KIND_UNDEFINED) {
        return undefined_use(render, value, "looked into");
    }
    const struct tnd_builtin *method = tnd_find_method(value, name.bytes);
    if (method != NULL) {
        return tnd_bind(render, method, value);
    }
    if (value.kind == TND_KIND_LOOP) {
        return loop_member(render, value.as.loop, name);
    }
    const struct tnd_value *found = named_item(render, value, name);
    return found != NULL ? *found : tnd_undefined(render, name.bytes, name.n);
}

/* A whole number as an index from the front; negative ones count from the end. */
static bool index_of(struct tnd_value key, size_t n, size_t *out)
{
    int64_t i = key.kind == TND_KIND_BOOL ? (int64_t)key.as.truth : key.as.integer;
    if (key.kind != TND_KIND_INT && key.kind != TND_KIND_BOOL) {
        return false;
    }
    i += i < 0 ? (int64_t)n : 0;
    *out = (size_t)i;
    return i >= 0 && (uint64_t)i < n;
}

static struct tnd_value character(struct tnd_render *render, const struct tnd_string *string,
                                  size_t i)
{
    const size_t begin = tnd_character_offset(string, i);
    return tnd_substring(render, string, begin, tnd_character_offset(string, i + 1) - begin);
}

struct tnd_value tnd_item_of(struct tnd_render *render, struct tnd_value value,
                             struct tnd_value key)
{
    size_t i;
    if (value.kind == TND_KIND_UNDEFINED) {
        return undefined_use(render, value, "looked into");
    }
    if (value.kind == TND_KIND_DICT) {
        const struct tnd_value *found = tnd_dict_get(render, value.as.dict, key);
        if (found != NULL) {
            return *found;
        }
    } else if ((value.kind == TND_KIND_LIST || value.kind == TND_KIND_TUPLE) &&
               index_of(key, value.as.list->n, &i)) {
        return value.as.list->items[i];
    } else if (value.kind == TND_KIND_STRING &&
               index_of(key, tnd_characters(value.as.string), &i)) {
        return character(render, value.as.string, i);
    }
    if (key.kind == TND_KIND_STRING) { /* as Jinja: items first, then members */
        struct tnd_value name =
            tnd_text_value(render, key.as.string->bytes, key.as.string->n + 0, false);
        char *terminated = tnd_template_alloc(render, key.as.string->n + 1, 1);
        if (terminated == NULL || name.kind != TND_KIND_STRING) {
            return tnd_none();
        }
        memcpy(terminated, key.as.string->bytes, key.as.string->n);
        return tnd_member_of(render, value, (struct tnd_name){terminated, key.as.string->n});
    }
    return tnd_undefined(render, "item", 4);
}

/* One bound of a slice, as Python clips it. */
static int64_t clip(int64_t bound, int64_t n, bool is_down)
{
    bound += bound < 0 ? n : 0;
    const int64_t least = is_down ? -1 : 0;
    const int64_t most = is_down ? n - 1 : n;
    return bound < least ? least : bound > most ? most : bound;
}

static bool slice_bound(struct tnd_render *render, const struct tnd_template_node *node,
                        struct tnd_scope *scope, int64_t *io_bound)
{
    if (node == NULL) {
        return false;
    }
    const struct tnd_value value = tnd_evaluate(render, node, scope);
    if (value.kind == TND_KIND_NONE) {
        return false;
    }
    if (value.kind != TND_KIND_INT && value.kind != TND_KIND_BOOL) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "%s is no bound of a slice, expected int",
                          tnd_kind_name(value));
        return false;
    }
    *io_bound = value.kind == TND_KIND_INT ? value.as.integer : (int64_t)value.as.truth;
    return true;
}

static struct tnd_value slice(struct tnd_render *render, const struct tnd_template_node *node,
                              struct tnd_scope *scope)
{
    const struct tnd_value value = tnd_evaluate(render, node->a, scope);
    int64_t step = 1;
    int64_t begin = 0;
    int64_t end = 0;
    if (render->status != TANDEM_OK) {
        return value;
    }
    if (value.kind != TND_KIND_STRING && value.kind != TND_KIND_LIST &&
        value.kind != TND_KIND_TUPLE) {
        return value.kind == TND_KIND_UNDEFINED ? undefined_use(render, value, "cut")
                                                : tnd_undefined(render, "slice", 5);
    }
    const struct tnd_list *items = tnd_items_of(render, value);
    const int64_t n = items != NULL ? (int64_t)items->n : 0;
    (void)slice_bound(render, node->d, scope, &step);
    const bool is_down = step < 0;
    begin = slice_bound(render, node->b, scope, &begin) ? clip(begin, n, is_down)
            : is_down                                   ? n - 1
                                                        : 0;
    end = slice_bound(render, node->c, scope, &end) ? clip(end, n, is_down) : is_down ? -1 : n;
    if (step == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "the step of a slice is 0");
    }
    if (value.kind == TND_KIND_STRING && step == 1) {
        const size_t from = tnd_character_offset(value.as.string, (size_t)begin);
        const size_t to = tnd_character_offset(value.as.string, (size_t)end);
        return tnd_substring(render, value.as.string, from, to > from ? to - from : 0);
    }
    struct tnd_value out =
        tnd_list_value(render, value.kind == TND_KIND_TUPLE ? TND_KIND_TUPLE : TND_KIND_LIST, 0);
    struct tnd_builder text = {.render = render};
    /* (beyond n in either direction one step is as good as any) */
    step = step > n ? n + 1 : step < -n ? -n - 1 : step;
    for (int64_t i = begin; is_down ? i > end : i < end; i += step) {
        if (render->status != TANDEM_OK) {
            break;
        }
        if (value.kind == TND_KIND_STRING) {
            tnd_build_value(&text, items->items[i]);
        } else {
            tnd_list_add(render, out.as.list, items->items[i]);
        }
    }
    return value.kind == TND_KIND_STRING ? tnd_built(&text) : out;
}

/* ---- arithmetic ---- */

static struct tnd_value beyond(struct tnd_render *render)
{
    return tnd_template_fail(render, TANDEM_E_LIMIT, "a whole number is beyond 64 bits");
}

static struct tnd_value power(struct tnd_render *render, int64_t base, int64_t exponent)
{
    int64_t result = 1;
    bool fits = true;
    while (exponent > 0 && fits) {
        if (exponent & 1) {
            fits = tnd_mul_i64(result, base, &result);
        }
        exponent >>= 1;
        fits = fits && (exponent == 0 || tnd_mul_i64(base, base, &base));
    }
    return fits ? tnd_int(result) : beyond(render);
}

static struct tnd_value integer_arithmetic(struct tnd_render *render, int op, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool fits = true;
    if ((op == '%' || op == TND_OP2('/', '/')) && b == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "division by zero");
    }
    switch (op) {
    case '+':
        fits = tnd_add_i64(a, b, &result);
        break;
    case '-':
        fits = !__builtin_sub_overflow(a, b, &result);
        break;
    case '*':
        fits = tnd_mul_i64(a, b, &result);
        break;
    case '%':
        result = b == -1 ? 0 : a % b;
        result += result != 0 && (result < 0) != (b < 0) ? b : 0;
        break;
    case TND_OP2('/', '/'):
        fits = !(a == INT64_MIN && b == -1);
        result = fits ? a / b : 0;
        result -= fits && a % b != 0 && (a < 0) != (b < 0);
        break;
    default:
        return power(render, a, b);
    }
    return fits ? tnd_int(result) : beyond(render);
}

static struct tnd_value number_arithmetic(struct tnd_render *render, int op, double a, double b)
{
    if ((op == '/' || op == '%' || op == TND_OP2('/', '/')) && b == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "division by zero");
    }
    double rest;
    switch (op) {
    case '+':
        return tnd_number(a + b);
    case '-':
        return tnd_number(a - b);
    case '*':
        return tnd_number(a * b);
    case '/':
        return tnd_number(a / b);
    case '%':
        rest = fmod(a, b);
        return tnd_number(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    case TND_OP2('/', '/'):
        return tnd_number(floor(a / b));
    default:
        return tnd_number(pow(a, b));
    }
}

/* text * n, list * n */
static struct tnd_value repeat(struct tnd_render *render, struct tnd_value value, int64_t times)
{
    struct tnd_builder text = {.render = render};
    struct tnd_value list = {.kind = TND_KIND_UNDEFINED};
    if (value.kind != TND_KIND_STRING) {
        list = tnd_list_value(render, value.kind, 0);
    }
    for (; times > 0 && tnd_template_step(render, 1); times--) {
        if (value.kind == TND_KIND_STRING) {
            tnd_build_string(&text, value.as.string);
            continue;
        }
        for (size_t i = 0; i < value.as.list->n; i++) {
            tnd_list_add(render, list.as.list, value.as.list->items[i]);
        }
    }
    return value.kind == TND_KIND_STRING ? tnd_built(&text) : list;
}

static struct tnd_value add_lists(struct tnd_render *render, struct tnd_value a, struct tnd_value b)
{
    struct tnd_value list = tnd_list_value(render, a.kind, a.as.list->n + b.as.list->n);
    for (size_t i = 0; i < a.as.list->n; i++) {
        tnd_list_add(render, list.as.list, a.as.list->items[i]);
    }
    for (size_t i = 0; i < b.as.list->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, list.as.list, b.as.list->items[i]);
    }
    return list;
}

static struct tnd_value join(struct tnd_render *render, struct tnd_value a, struct tnd_value b)
{
    struct tnd_builder text = {.render = render};
    const bool is_markup = a.as.string->is_markup || b.as.string->is_markup;
    tnd_build_value(&text, is_markup ? tnd_escape(render, a.as.string) : a);
    tnd_build_value(&text, is_markup ? tnd_escape(render, b.as.string) : b);
    const struct tnd_value joined = tnd_built(&text);
    return is_markup && joined.kind == TND_KIND_STRING ? tnd_markup(render, joined.as.string)
                                                       : joined;
}

static bool is_sequence(struct tnd_value value)
{
    return value.kind == TND_KIND_STRING || value.kind == TND_KIND_LIST ||
           value.kind == TND_KIND_TUPLE;
}

static bool is_whole(struct tnd_value value)
{
    return value.kind == TND_KIND_INT || value.kind == TND_KIND_BOOL;
}

static int64_t whole(struct tnd_value value)
{
    return value.kind == TND_KIND_INT ? value.as.integer : (int64_t)value.as.truth;
}

static struct tnd_value arithmetic(struct tnd_render *render, int op, struct tnd_value a,
                                   struct tnd_value b)
{
    if (render->status != TANDEM_OK) {
        return a;
    }
    if (op == '%' && a.kind == TND_KIND_STRING) {
        return tnd_percent_format(render, a.as.string, b);
    }
    if (op == '+' && a.kind == TND_KIND_STRING && b.kind == TND_KIND_STRING) {
        return join(render, a, b);
    }
    if (op == '+' && a.kind == b.kind && (a.kind == TND_KIND_LIST || a.kind == TND_KIND_TUPLE)) {
        return add_lists(render, a, b);
    }
    if (op == '*' && ((is_sequence(a) && is_whole(b)) || (is_whole(a) && is_sequence(b)))) {
        return is_sequence(a) ? repeat(render, a, whole(b)) : repeat(render, b, whole(a));
    }
    if (is_whole(a) && is_whole(b) && op != '/' && !(op == TND_OP2('*', '*') && whole(b) < 0)) {
        return integer_arithmetic(render, op, whole(a), whole(b));
    }
    if (tnd_is_number(a) && tnd_is_number(b)) {
        return number_arithmetic(render, op, tnd_as_number(a), tnd_as_number(b));
    }
    if (a.kind == TND_KIND_UNDEFINED || b.kind == TND_KIND_UNDEFINED) {
        return undefined_use(render, a.kind == TND_KIND_UNDEFINED ? a : b, "computed with");
    }
    return tnd_template_fail(render, TANDEM_E_FORMAT, "'%c' does not take %s and %s", op % 256,
                             tnd_kind_name(a), tnd_kind_name(b));
}

static struct tnd_value unary(struct tnd_render *render, int op, struct tnd_value a)
{
    if (op == '!') {
        return tnd_bool(!tnd_is_true(a));
    }
    if (a.kind == TND_KIND_FLOAT) {
        return tnd_number(op == '-' ? -a.as.number : a.as.number);
    }
    if (!is_whole(a)) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "%s has no sign", tnd_kind_name(a));
    }
    return op == '-' ? integer_arithmetic(render, '-', 0, whole(a)) : tnd_int(whole(a));
}

/* ---- comparisons ---- */

static bool holds(struct tnd_render *render, int op, struct tnd_value a, struct tnd_value b)
{
    switch (op) {
    case TND_OP2('=', '='):
        return tnd_equal(render, a, b);
    case TND_OP2('!', '='):
        return !tnd_equal(render, a, b);
    case 'i':
        return tnd_contains(render, b, a);
    case 'n':
        return !tnd_contains(render, b, a);
    case '<':
        return tnd_order(render, a, b) < 0;
    case '>':
        return tnd_order(render, a, b) > 0;
    case TND_OP2('<', '='):
        return tnd_order(render, a, b) <= 0;
    default:
        return tnd_order(render, a, b) >= 0;
    }
}

static struct tnd_value compare(struct tnd_render *render, const struct tnd_template_node *node,
                                struct tnd_scope *scope)
{
    struct tnd_value left = tnd_evaluate(render, node->a, scope);
    bool all = true;
    for (int i = 0; i < node->n_list && all && render->status == TANDEM_OK; i++) {
        const struct tnd_value right = tnd_evaluate(render, node->list[i]->a, scope);
        all = render->status == TANDEM_OK && holds(render, node->list[i]->op, left, right);
        left = right;
    }
    return tnd_bool(all);
}

/* ---- calls, filters, tests ---- */

static bool take_arguments(struct tnd_render *render, const struct tnd_template_node *node,
                           struct tnd_scope *scope, struct tnd_arguments *out)
{
    struct tnd_value *items = tnd_template_alloc(render, (size_t)node->n_list, sizeof(items[0]));
    struct tnd_member *named = tnd_template_alloc(render, (size_t)node->n_named, sizeof(named[0]));
    if (items == NULL || named == NULL) {
        return false;
    }
    for (int i = 0; i < node->n_list; i++) {
        items[i] = tnd_evaluate(render, node->list[i], scope);
    }
    for (int i = 0; i < node->n_named; i++) {
        named[i].key =
            tnd_text_value(render, node->named[i].name.bytes, node->named[i].name.n, false);
        named[i].value = tnd_evaluate(render, node->named[i].value, scope);
    }
    *out = (struct tnd_arguments){items, node->n_list, named, node->n_named};
    return render->status == TANDEM_OK;
}

struct tnd_value tnd_call(struct tnd_render *render, struct tnd_value function,
                          const struct tnd_arguments *arguments)
{
    if (function.kind == TND_KIND_FUNCTION) {
        return tnd_call_builtin(render, function.as.function->builtin, function.as.function->self,
                                arguments);
    }
    if (function.kind == TND_KIND_MACRO) {
        return tnd_call_macro(render, function.as.macro, arguments);
    }
    if (function.kind == TND_KIND_LOOP && function.as.loop->node->op && arguments->n == 1) {
        const struct tnd_loop *loop = function.as.loop;
        struct tnd_builder text = {.render = render};
        tnd_render_loop(render, loop->node, loop->scope, arguments->items[0], loop->depth + 1,
                        &text);
        return tnd_built(&text);
    }
    return function.kind == TND_KIND_UNDEFINED
               ? undefined_use(render, function, "called")
               : tnd_template_fail(render, TANDEM_E_FORMAT, "a %s cannot be called",
                                   tnd_kind_name(function));
}

static struct tnd_value call(struct tnd_render *render, const struct tnd_template_node *node,
                             struct tnd_scope *scope)
{
    struct tnd_arguments arguments;
    const struct tnd_value function = tnd_evaluate(render, node->a, scope);
    if (render->status != TANDEM_OK || !take_arguments(render, node, scope, &arguments)) {
        return tnd_none();
    }
    render->line = node->line;
    return tnd_call(render, function, &arguments);
}

struct tnd_value tnd_apply_filter(struct tnd_render *render, const struct tnd_template_node *node,
                                  struct tnd_scope *scope, struct tnd_value value)
{
    struct tnd_arguments arguments;
    const struct tnd_builtin *filter = tnd_find_filter(node->name.bytes);
    if (node->a != NULL) {
        value = node->a->kind == TND_NODE_FILTER ? tnd_apply_filter(render, node->a, scope, value)
                                                 : tnd_evaluate(render, node->a, scope);
    }
    if (render->status != TANDEM_OK) {
        return value;
    }
    render->line = node->line;
    if (filter == NULL) {
        return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD, "there is no filter '%.60s'",
                                 node->name.bytes);
    }
    return take_arguments(render, node, scope, &arguments)
               ? tnd_call_builtin(render, filter, value, &arguments)
               : tnd_none();
}

static struct tnd_value test(struct tnd_render *render, const struct tnd_template_node *node,
                             struct tnd_scope *scope)
{
    struct tnd_arguments arguments;
    const struct tnd_builtin *found = tnd_find_test(node->name.bytes);
    const struct tnd_value value = tnd_evaluate(render, node->a, scope);
    if (found == NULL) {
        return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD, "there is no test '%.60s'",
                                 node->name.bytes);
    }
    if (!take_arguments(render, node, scope, &arguments)) {
        return tnd_none();
    }
    const bool is_true = tnd_is_true(tnd_call_builtin(render, found, value, &arguments));
    return tnd_bool(is_true != (node->op != 0));
}

/* ---- the rest ---- */

static struct tnd_value look_up(struct tnd_render *render, const struct tnd_template_node *node,
                                const struct tnd_scope *scope)
{
    for (; scope != NULL; scope = scope->parent) {
        const struct tnd_value *found =
            tnd_dict_find(render, &scope->names, node->name.bytes, node->name.n);
        if (found != NULL) {
            return *found;
        }
    }
    return tnd_undefined(render, node->name.bytes, node->name.n);
}

static struct tnd_value literal(struct tnd_render *render, const struct tnd_template_node *node,
                                struct tnd_scope *scope)
{
    struct tnd_value value;
    if (node->kind == TND_NODE_DICT) {
        value = tnd_dict_value(render);
        for (int i = 0; i + 1 < node->n_list && render->status == TANDEM_OK; i += 2) {
            const struct tnd_value key = tnd_evaluate(render, node->list[i], scope);
            tnd_dict_set(render, value.as.dict, key,
                         tnd_evaluate(render, node->list[i + 1], scope));
        }
        return value;
    }
    value = tnd_list_value(render, node->kind == TND_NODE_LIST ? TND_KIND_LIST : TND_KIND_TUPLE,
                           (size_t)node->n_list);
    for (int i = 0; i < node->n_list && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, value.as.list, tnd_evaluate(render, node->list[i], scope));
    }
    return value;
}

static struct tnd_value concatenate(struct tnd_render *render, const struct tnd_template_node *node,
                                    struct tnd_scope *scope)
{
    struct tnd_builder text = {.render = render};
    for (int i = 0; i < node->n_list && render->status == TANDEM_OK; i++) {
        tnd_build_value(&text, tnd_evaluate(render, node->list[i], scope));
    }
    return tnd_built(&text);
}

static struct tnd_value evaluate(struct tnd_render *render, const struct tnd_template_node *node,
                                 struct tnd_scope *scope)
{
    struct tnd_value a;
    switch (node->kind) {
    case TND_NODE_CONST:
        return node->value;
    case TND_NODE_NAME:
        return look_up(render, node, scope);
    case TND_NODE_LIST:
    case TND_NODE_TUPLE:
    case TND_NODE_DICT:
        return literal(render, node, scope);
    case TND_NODE_MEMBER:
        a = tnd_evaluate(render, node->a, scope);
        return render->status == TANDEM_OK ? tnd_member_of(render, a, node->name) : a;
    case TND_NODE_ITEM:
        a = tnd_evaluate(render, node->a, scope);
        return render->status == TANDEM_OK
                   ? tnd_item_of(render, a, tnd_evaluate(render, node->b, scope))
                   : a;
    case TND_NODE_SLICE:
        return slice(render, node, scope);
    case TND_NODE_CALL:
        return call(render, node, scope);
    case TND_NODE_FILTER:
        return tnd_apply_filter(render, node, scope, tnd_none());
    case TND_NODE_TEST:
        return test(render, node, scope);
    case TND_NODE_UNARY:
        a = tnd_evaluate(render, node->a, scope);
        return render->status == TANDEM_OK ? unary(render, node->op, a) : a;
    case TND_NODE_BINARY:
        a = tnd_evaluate(render, node->a, scope);
        return arithmetic(render, node->op, a, tnd_evaluate(render, node->b, scope));
    case TND_NODE_AND:
    case TND_NODE_OR:
        a = tnd_evaluate(render, node->a, scope);
        return tnd_is_true(a) == (node->kind == TND_NODE_AND) ? tnd_evaluate(render, node->b, scope)
                                                              : a;
    case TND_NODE_COMPARE:
        return compare(render, node, scope);
    case TND_NODE_CONCAT:
        return concatenate(render, node, scope);
    case TND_NODE_CONDITION:
        if (tnd_is_true(tnd_evaluate(render, node->a, scope))) {
            return tnd_evaluate(render, node->b, scope);
        }
        return node->c != NULL ? tnd_evaluate(render, node->c, scope)
                               : tnd_undefined(render, "condition", 9);
    default:
        TND_ASSERT(false);
        return tnd_none();
    }
}

struct tnd_value tnd_evaluate(struct tnd_render *render, const struct tnd_template_node *node,
                              struct tnd_scope *scope)
{
    struct tnd_value value = {.kind = TND_KIND_UNDEFINED};
    if (!tnd_template_step(render, 1)) {
        return value;
    }
    if (++render->depth > TND_TEMPLATE_MAX_DEPTH) {
        render->line = node->line > 0 ? node->line : render->line;
        value = tnd_template_fail(render, TANDEM_E_LIMIT, "expressions are nested too deep");
    } else {
        value = evaluate(render, node, scope);
    }
    render->depth--;
    return render->status == TANDEM_OK ? value : (struct tnd_value){.kind = TND_KIND_UNDEFINED};
}
