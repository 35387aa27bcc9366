/* Elementwise operations of ops.def as Lua functions, methods and operators:
 * one closure a row. */
#include "arguments.h"
#include "complex_functions.h"
#include "formula.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int elementwise(lua_State *L);
static void explain_mistake(lua_State *L, const lumat_function *f, int count);

/* What operations take, by their number of operands. */
#define OPERAND "matrix|scalar|boolean|sparse"
#define TAKES_1 "A: " OPERAND " {out, device}"
#define TAKES_2 "A: " OPERAND ", B: " OPERAND " elements A {out, device}"
#define TAKES_3                                                             \
    "A: " OPERAND ", B: " OPERAND " elements A, C: " OPERAND " elements A " \
    "{out, device}"

/* Rows of functions in the order of ops.def, each group behind its name. */
#define GROUP(title) {.group = title},
#define OP(word, arity, expression, vector, text, shown, gives_this) \
    {#word,                                                          \
     elementwise,                                                    \
     1,                                                              \
     TAKES_##arity,                                                  \
     "same",                                                         \
     text,                                                           \
     shown,                                                          \
     gives_this,                                                     \
     .on_mistake = explain_mistake,                                  \
     .options = lumat_through_options},
#define TEST(word, arity, expression, vector, text, shown, gives_this) \
    {#word,                                                            \
     elementwise,                                                      \
     1,                                                                \
     TAKES_##arity,                                                    \
     "matrix",                                                         \
     text,                                                             \
     shown,                                                            \
     gives_this,                                                       \
     .on_mistake = explain_mistake,                                    \
     .options = lumat_through_options},
#define STEP(...)
#define REDUCTION(...)
static lumat_function ops[] = {
#include "ops.def"
};

/* --- elementwise ---------------------------------------------------------- */

typedef struct operands {
    int count;      /* matrices among the arguments */
    int has_sparse; /* which are none of these */
    int argument[3];
    const gpu_matrix *matrix[3];
} operands;

static double check_scalar(lua_State *L, int arg)
{
    if (lua_isboolean(L, arg))
        return lua_toboolean(L, arg);
    if (lumat_is_number(L, arg))
        return lua_tonumber(L, arg);
    lumat_refuse_kind(L, arg);
    lumat_refuse_operand(L, arg);
    return 0;
}

/* Splits arguments 1 … count into matrices (inputs) and numbers (constants)
 * and starts a program of them; value gets their numbers. */
static void read_operands(lua_State *L, int count, gpu_program *p, operands *o,
                          int value[3])
{
    o->count = o->has_sparse = 0;
    for (int i = 0; i < count; i++) {
        gpu_matrix *m = lumat_test_matrix(L, i + 1);
        value[i] = -1;
        if (!m)
            continue;
        o->argument[o->count] = i + 1;
        o->matrix[o->count] = m;
        value[i] = o->count++;
    }
    gpu_program_start(p, o->count);
    for (int i = 0; i < count; i++) {
        if (value[i] >= 0)
            continue;
        int is_sparse = lumat_look_at_sparse(L, i + 1) != NULL;
        o->has_sparse |= is_sparse;
        value[i] =
            gpu_program_constant(p, is_sparse ? 0 : check_scalar(L, i + 1));
    }
}

/* --- a second operand of round, log and atan ------------------------------ */

int lumat_has_second(gpu_op op)
{
    return op == GPU_OP_round || op == GPU_OP_log || op == GPU_OP_atan;
}

static int takes_second(lua_State *L, gpu_op op)
{
    return lumat_has_second(op) && !lua_isnoneornil(L, 2) && !lua_istable(L, 2);
}

static int check_digits(lua_State *L)
{
    enum { MOST = LUMAT_MOST_DECIMALS };
    lua_Integer digits = lumat_check_integer(L, 2);
    if (digits < -MOST || digits > MOST)
        lumat_raise_argument(L, 2, "is %I, and goes from -%d to %d",
                             (LUAI_UACINT)digits, MOST, MOST);
    return (int)digits;
}

/* What x is divided or multiplied by to round it, and its two halves, whose
 * products with those of another number are exact. */
typedef struct decimal {
    int scale, high, low;
} decimal;

static decimal add_decimal(gpu_program *p, int digits)
{
    double scale = pow(10, abs(digits)), high;
    uint64_t bits;
    memcpy(&bits, &scale, sizeof bits);
    bits &= ~(uint64_t)0 << 27;
    memcpy(&high, &bits, sizeof high);
    return (decimal){gpu_program_constant(p, scale),
                     gpu_program_constant(p, high),
                     gpu_program_constant(p, scale - high)};
}

/* The product a * scale as computed is wrong by this, exactly. Source: Dekker,
 * A floating-point technique for extending the available precision, 1971. */
static int add_product_error(gpu_program *p, int a, int product, int splitter,
                             decimal d)
{
    int c = gpu_program_add(p, GPU_OP_mul, a, splitter, 0);
    int high = gpu_program_add(p, GPU_OP_sub, c, a, 0);
    high = gpu_program_add(p, GPU_OP_sub, c, high, 0);
    int low = gpu_program_add(p, GPU_OP_sub, a, high, 0);
    int error = gpu_program_add(p, GPU_OP_mul, high, d.high, 0);
    error = gpu_program_add(p, GPU_OP_sub, error, product, 0);
    int part = gpu_program_add(p, GPU_OP_mul, high, d.low, 0);
    error = gpu_program_add(p, GPU_OP_add, error, part, 0);
    part = gpu_program_add(p, GPU_OP_mul, low, d.high, 0);
    error = gpu_program_add(p, GPU_OP_add, error, part, 0);
    part = gpu_program_add(p, GPU_OP_mul, low, d.low, 0);
    return gpu_program_add(p, GPU_OP_add, error, part, 0);
}

/* x rounded to a multiple of 10^-digits, halves to even: to the f64 nearest to
 * it, for up to 22 digits, whose power of ten is exact. scaled = x 10^digits
 * may have been rounded to a half: then its error tells on which side of the
 * half it lies. */
static void add_round(gpu_program *p, int x, int digits)
{
    decimal d = add_decimal(p, digits);
    int splitter = gpu_program_constant(p, 0x1p27 + 1);
    int half = gpu_program_constant(p, 0.5);
    int zero = gpu_program_constant(p, 0);
    int limit = gpu_program_constant(p, 0x1p53); /* from here on x is round */
    int is_up = digits > 0, error;
    gpu_op there = is_up ? GPU_OP_mul : GPU_OP_div;
    gpu_op back = is_up ? GPU_OP_div : GPU_OP_mul;
    int scaled = gpu_program_add(p, there, x, d.scale, 0);
    if (is_up) {
        error = add_product_error(p, x, scaled, splitter, d);
    } else {
        int product = gpu_program_add(p, GPU_OP_mul, scaled, d.scale, 0);
        int part = add_product_error(p, scaled, product, splitter, d);
        error = gpu_program_add(p, GPU_OP_sub, x, product, 0);
        error = gpu_program_add(p, GPU_OP_sub, error, part, 0);
    }
    int whole = gpu_program_add(p, GPU_OP_round, scaled, 0, 0);
    int rest = gpu_program_add(p, GPU_OP_sub, scaled, whole, 0);
    int size = gpu_program_add(p, GPU_OP_abs, rest, 0, 0);
    int is_half = gpu_program_add(p, GPU_OP_eq, size, half, 0);
    int beyond = gpu_program_add(p, GPU_OP_mul, rest, error, 0);
    beyond = gpu_program_add(p, GPU_OP_gt, beyond, zero, 0);
    beyond = gpu_program_add(p, GPU_OP_land, beyond, is_half, 0);
    int next = gpu_program_add(p, GPU_OP_add, rest, rest, 0);
    next = gpu_program_add(p, GPU_OP_add, whole, next, 0);
    whole = gpu_program_add(p, GPU_OP_where, beyond, next, whole);
    int rounded = gpu_program_add(p, back, whole, d.scale, 0);
    size = gpu_program_add(p, GPU_OP_abs, scaled, 0, 0);
    int is_small = gpu_program_add(p, GPU_OP_lt, size, limit, 0);
    gpu_program_add(p, GPU_OP_where, is_small, rounded, x);
    p->compute = GPU_F64;
}

/* The logarithm to a base that has its own function, and to any other. number:
 * the base, where it is known. */
static int add_ratio(gpu_program *p, int x, int base, double number)
{
    if (number == 2 || number == 10)
        return gpu_program_add(p, number == 2 ? GPU_OP_log2 : GPU_OP_log10, x,
                               0, 0);
    int above = gpu_program_add(p, GPU_OP_log, x, 0, 0);
    int below = gpu_program_add(p, GPU_OP_log, base, 0, 0);
    return gpu_program_add(p, GPU_OP_div, above, below, 0);
}

/* Where base to the nearest whole number is x, but for the last bits that a
 * GPU's pow may lack, it is that number: log(125, 5) is 3 on every device. */
static void add_log(gpu_program *p, int x, int base, double number)
{
    int one = gpu_program_constant(p, 1);
    int near = gpu_program_constant(p, 0x1p-50);
    int ratio = add_ratio(p, x, base, number);
    int whole = gpu_program_add(p, GPU_OP_round, ratio, 0, 0);
    int power = gpu_program_add(p, GPU_OP_pow, base, whole, 0);
    int quotient = gpu_program_add(p, GPU_OP_div, power, x, 0);
    int apart = gpu_program_add(p, GPU_OP_sub, quotient, one, 0);
    int size = gpu_program_add(p, GPU_OP_abs, apart, 0, 0);
    int is_whole = gpu_program_add(p, GPU_OP_le, size, near, 0);
    gpu_program_add(p, GPU_OP_where, is_whole, whole, ratio);
    p->compute = GPU_F64;
}

static void add_second(gpu_program *p, gpu_op op, int x, int y, double second)
{
    if (op == GPU_OP_log)
        add_log(p, x, y, second);
    else if (op == GPU_OP_atan)
        gpu_program_add(p, GPU_OP_atan2, x, y, 0);
    else if (second == 0)
        gpu_program_add(p, op, x, 0, 0);
    else
        add_round(p, x, (int)second);
}

void lumat_add_with_second(gpu_program *p, gpu_op op, double second)
{
    add_second(p, op, 0, 1, second);
}

/* log(A, base) of complex matrices, with nothing rounded to whole numbers. */
static void make_complex_log(lua_State *L, gpu_program *p, operands *o)
{
    int value[3];
    if (lua_type(L, 2) != LUA_TNUMBER) {
        read_operands(L, 2, p, o, value);
        add_ratio(p, value[0], value[1], NAN);
        return;
    }
    double base = lua_tonumber(L, 2);
    read_operands(L, 1, p, o, value);
    if (base == 2 || base == 10) {
        gpu_program_add(p, base == 2 ? GPU_OP_log2 : GPU_OP_log10, 0, 0, 0);
        return;
    }
    int below = gpu_program_constant(p, log(base));
    int above = gpu_program_add(p, GPU_OP_log, 0, 0, 0);
    gpu_program_add(p, GPU_OP_div, above, below, 0);
}

static void make_second(lua_State *L, gpu_op op, gpu_program *p, operands *o)
{
    int value[3];
    double second = NAN;
    if (op == GPU_OP_log && lumat_is_any_complex(L, 2)) {
        make_complex_log(L, p, o);
        return;
    }
    if (op == GPU_OP_round)
        second = check_digits(L);
    else if (lua_type(L, 2) == LUA_TNUMBER)
        second = lua_tonumber(L, 2);
    read_operands(L, op == GPU_OP_round ? 1 : 2, p, o, value);
    add_second(p, op, value[0], value[1], second);
}

/* --- functions, methods, operators ---------------------------------------- */

/* The program of one instruction over the first `count` arguments; of more,
 * where they are one more than the operation has operands. */
static void make_program(lua_State *L, gpu_op op, int count, gpu_program *p,
                         operands *o)
{
    int value[3] = {0, 0, 0};
    if (count > gpu_op_arity(op)) {
        make_second(L, op, p, o);
        return;
    }
    read_operands(L, count, p, o, value);
    gpu_program_add(p, op, value[0], value[1], value[2]);
}

#define COMPLEX_THERE(op, where)                                    \
    {                                                               \
        GPU_OP_##op, #op " of a real number " where " is NaN; " #op \
                         "(complex(A)) is complex there"            \
    }

/* What has complex values where that of real numbers is NaN, as noted. */
static const struct {
    gpu_op op;
    const char *note;
} complex_elsewhere[] = {
    COMPLEX_THERE(sqrt, "below 0"),
    COMPLEX_THERE(log, "below 0"),
    COMPLEX_THERE(log2, "below 0"),
    COMPLEX_THERE(log10, "below 0"),
    COMPLEX_THERE(log1p, "below -1"),
    COMPLEX_THERE(asin, "beyond -1 to 1"),
    COMPLEX_THERE(acos, "beyond -1 to 1"),
    COMPLEX_THERE(acosh, "below 1"),
    COMPLEX_THERE(atanh, "beyond -1 to 1"),
    {GPU_OP_pow, "pow of a real number below 0 is NaN where the power is no "
                 "whole number; pow(complex(A), p) is complex there"},
};

/* NULL: it has none. */
static const char *note_of_nan(gpu_op op)
{
    int count = (int)(sizeof complex_elsewhere / sizeof *complex_elsewhere);
    for (int i = 0; i < count; i++)
        if (complex_elsewhere[i].op == op)
            return complex_elsewhere[i].note;
    return NULL;
}

/* Of the result at index: whether it may have NaN that the operation or one of
 * the operands has brought. */
static void expect_nan(lua_State *L, gpu_op op, const operands *o, int index)
{
    int is_complex = 0;
    if (!lumat_is_noted())
        return;
    for (int i = 0; i < o->count; i++) {
        is_complex |= gpu_is_complex(lumat_test_matrix(L, o->argument[i]));
        lumat_pass_nan_on(L, o->argument[i], index);
    }
    const char *note = is_complex ? NULL : note_of_nan(op);
    if (note)
        lumat_expect_nan(L, index, note);
}

/* A number that the operation has made of numbers, none of them NaN. */
static void note_new_nan(lua_State *L, gpu_op op)
{
    const char *note = note_of_nan(op);
    if (op == GPU_OP_sqrt)
        lumat_note_to_caller(L, "sqrt",
                             "of a real number below 0 the square root is NaN; "
                             "sqrt(complex(-1)) is 0 + 1i");
    else if (note)
        lumat_note_to_caller(L, gpu_op_name(op), note);
}

/* A program without matrices, in double precision. */
static int push_number(lua_State *L, gpu_op op, const gpu_program *p)
{
    for (int i = 1; gpu_is_dry() && i <= lua_gettop(L); i++)
        if (lumat_is_unknown(L, i)) {
            lua_pushvalue(L, i);
            return 1;
        }
    double value[GPU_MAX_VALUES];
    int n = p->constants, was_nan = 0;
    for (int i = 0; i < n; i++)
        was_nan |= isnan(p->constant[i]);
    memcpy(value, p->constant, (size_t)n * sizeof *value);
    for (int i = 0; i < p->length; i++) {
        gpu_instruction c = p->code[i];
        int arity = gpu_op_arity((gpu_op)c.op);
        value[n++] = gpu_op_evaluate((gpu_op)c.op, value[c.x],
                                     arity > 1 ? value[c.y] : 0,
                                     arity > 2 ? value[c.z] : 0);
    }
    if (!was_nan && isnan(value[n - 1]))
        note_new_nan(L, op);
    if (gpu_op_is_test(op))
        lua_pushboolean(L, value[n - 1] != 0);
    else
        lua_pushnumber(L, value[n - 1]);
    return 1;
}

/* Names the first operand and the one that does not go with it. */
static int raise_mismatch(lua_State *L, const operands *o)
{
    const gpu_matrix *a = o->matrix[0], *b = o->matrix[1];
    int same = a->ndim == b->ndim && a->rows == b->rows && a->cols == b->cols;
    int other = o->count == 3 && same ? 2 : 1;
    return lumat_raise_shapes(L, o->argument[0], o->argument[other], 0);
}

/* The first argument whose matrix has been freed, or 0. */
static int find_freed(const operands *o)
{
    for (int i = 0; i < o->count; i++)
        if (!o->matrix[i]->storage)
            return o->argument[i];
    return 0;
}

static void check_status(lua_State *L, gpu_status status, int freed)
{
    if (status != GPU_OK && freed > 0)
        lumat_refuse_kind(L, freed);
    lumat_try(L, status);
}

enum { NO_OPTIONS = 0 };

/* options: the index of the table of options, or of something else. */
static int run(lua_State *L, gpu_op op, const gpu_program *p, operands *o,
               int options)
{
    gpu_team through = lumat_option_through(L, options, o->matrix[0]);
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_team before = gpu_compute_together(through);
    gpu_status status = gpu_map(gpu_op_name(op), p, o->matrix, out);
    gpu_compute_together(before);
    if (status == GPU_SHAPE && o->count >= 2)
        return raise_mismatch(L, o);
    check_status(L, status, find_freed(o));
    lumat_account(L, out);
    expect_nan(L, op, o, -1);
    return 1;
}

/* Into out, which is there; operands that wait may become part of the pass. */
static int run_into(lua_State *L, gpu_op op, const gpu_program *p, operands *o,
                    gpu_matrix *out, int options)
{
    gpu_team through = lumat_option_through(L, options, o->matrix[0]);
    gpu_matrix taken[3];
    int freed = find_freed(o);
    if (freed > 0) /* while all are still there */
        lumat_refuse_kind(L, freed);
    for (int i = 0; i < o->count; i++)
        o->matrix[i] =
            lumat_take(L, o->argument[i], out, LUMAT_TAKE_ARGUMENT, &taken[i]);
    gpu_team before = gpu_compute_together(through);
    gpu_status status = gpu_map_over(gpu_op_name(op), p, o->matrix, out);
    gpu_compute_together(before);
    for (int i = 0; i < o->count; i++)
        gpu_release(&taken[i]);
    lumat_try(L, status);
    return 1;
}

/* maximum(1, 2, 3) */
static void explain_mistake(lua_State *L, const lumat_function *f, int count)
{
    gpu_op op = (gpu_op)f->tag;
    int most = gpu_op_arity(op) + takes_second(L, op);
    if (lua_type(L, 1) == LUA_TNUMBER &&
        (op == GPU_OP_maximum || op == GPU_OP_minimum) && count > 2)
        lumat_raise(L, "%s: compares two; of more numbers write %s", f->name,
                    op == GPU_OP_maximum ? "max(x, y, z)" : "min(x, y, z)");
    if (count > most && !lua_isnoneornil(L, count) && !lua_istable(L, count))
        lumat_raise(L, "%s: %d arguments are too many: write %s", f->name,
                    count, lumat_push_usage(L, f));
}

static void refuse_options(lua_State *L, gpu_op op, int count)
{
    static const char *const operand[] = {"", "(x)", "(x, y)", "(x, y, z)"};
    const char *name = gpu_op_name(op);
    if (!lua_isnoneornil(L, count + 1))
        lumat_raise(L, "%s: options go with matrices: of numbers write %s%s",
                    name, name, operand[count]);
}

/* Does lumat_push_complex_op have it? Not as a program: of complex numbers, and
 * rounding, which programs of complex matrices lack. */
static int goes_by_parts(lua_State *L, gpu_op op, int count)
{
    return lumat_has_complex(L, count) ||
           (op == GPU_OP_round && lumat_is_any_complex(L, 1));
}

static int elementwise(lua_State *L)
{
    gpu_op op = (gpu_op)lumat_running_row(L)->tag;
    int count = gpu_op_arity(op) + takes_second(L, op);
    gpu_program p;
    operands o;
    if (goes_by_parts(L, op, count)) {
        if (lumat_has_sparse(L, count))
            return lumat_push_sparse_op(L, op, count, count + 1);
        return lumat_push_complex_op(L, op, count,
                                     lumat_option_out(L, count + 1));
    }
    make_program(L, op, count, &p, &o);
    if (o.has_sparse)
        return lumat_push_sparse_op(L, op, count, count + 1);
    if (o.count > 0) {
        gpu_matrix *out = lumat_option_out(L, count + 1);
        return out ? run_into(L, op, &p, &o, out, count + 1)
                   : run(L, op, &p, &o, count + 1);
    }
    refuse_options(L, op, count);
    return push_number(L, op, &p);
}

int lumat_op_at(lua_State *L, int index)
{
    const lumat_function *f = lumat_row_of(L, index);
    return f && f->call == elementwise ? f->tag : -1;
}

/* A:add_(B): the result replaces A's elements. */
static int in_place(lua_State *L)
{
    gpu_op op = (gpu_op)lumat_running_row(L)->tag;
    gpu_matrix *m = lumat_check_matrix(L, 1);
    gpu_program p;
    operands o;
    int count = gpu_op_arity(op) + takes_second(L, op);
    if (goes_by_parts(L, op, count)) {
        lumat_push_complex_op(L, op, count, m);
        lua_settop(L, 1);
        return 1;
    }
    make_program(L, op, count, &p, &o);
    if (o.has_sparse)
        return lumat_raise(L, "%s_: A stays dense: write full(S)",
                           gpu_op_name(op));
    run_into(L, op, &p, &o, m, NO_OPTIONS);
    expect_nan(L, op, &o, 1);
    lua_settop(L, 1);
    return 1;
}

/* Operators pass a second operand even where there is one (__unm, __bnot). */
static const char *event_of(gpu_op op)
{
    return op == GPU_OP_add ? "__add" : op == GPU_OP_sub ? "__sub" : "__div";
}

static int operator(lua_State *L)
{
    gpu_op op = (gpu_op)lua_tointeger(L, lua_upvalueindex(1));
    int has_right = op == GPU_OP_add || op == GPU_OP_sub || op == GPU_OP_div;
    if (lua_istable(L, 2) && has_right && lumat_call_right(L, event_of(op)))
        return 1;
    gpu_program p;
    operands o;
    int arity = gpu_op_arity(op);
    if (lumat_has_complex(L, arity))
        return lumat_has_sparse(L, arity)
                   ? lumat_push_sparse_op(L, op, arity, NO_OPTIONS)
                   : lumat_push_complex_op(L, op, arity, NULL);
    make_program(L, op, arity, &p, &o);
    if (o.has_sparse)
        return lumat_push_sparse_op(L, op, arity, NO_OPTIONS);
    return o.count ? run(L, op, &p, &o, NO_OPTIONS) : push_number(L, op, &p);
}

static int is_any_matrix(lua_State *L, int index)
{
    return lumat_test_matrix(L, index) || lumat_look_at_sparse(L, index);
}

/* A % B is the product element by element, A % 3 and 3 % A the remainder. */
static int percent(lua_State *L)
{
    gpu_program p;
    operands o;
    int both = is_any_matrix(L, 1) && is_any_matrix(L, 2);
    if (lumat_call_right(L, "__mod"))
        return 1;
    gpu_op op = both ? GPU_OP_mul : GPU_OP_mod;
    if (!both && lumat_is_any_complex(L, 2))
        return lumat_raise(L, "%%: complex numbers have no remainder; the "
                              "product with a number is z * A");
    make_program(L, op, 2, &p, &o);
    if (o.has_sparse)
        return lumat_push_sparse_op(L, op, 2, NO_OPTIONS);
    return o.count ? run(L, op, &p, &o, NO_OPTIONS) : push_number(L, op, &p);
}

/* --- whole-matrix questions ----------------------------------------------- */

static int matrices_equal(lua_State *L, const gpu_matrix *a,
                          const gpu_matrix *b)
{
    if (a->ndim != b->ndim || a->rows != b->rows || a->cols != b->cols)
        return 0;
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_ne, 0, 1, 0);
    p.reduction = GPU_REDUCE_any;
    const gpu_matrix *in[] = {a, b};
    double differs;
    lumat_try(L, gpu_reduce_all("==", &p, in, &differs));
    if (gpu_is_dry())
        lumat_raise(L, "A == B depends on the elements: it has to be run");
    return differs == 0;
}

static int equal(lua_State *L)
{
    gpu_matrix *a = lumat_test_matrix(L, 1), *b = lumat_test_matrix(L, 2);
    int same = a && b && a->storage && b->storage && matrices_equal(L, a, b);
    lua_pushboolean(L, same);
    return 1;
}

/* A < B and A <= B, and > and >=, which Lua turns round. */
static int no_order(lua_State *L)
{
    int strict = lua_toboolean(L, lua_upvalueindex(1));
    int left = lumat_test_matrix(L, 1) != NULL;
    int number = lua_type(L, left ? 2 : 1) == LUA_TNUMBER;
    const char *other = number ? lumat_tolstring(L, left ? 2 : 1, NULL) : "B";
    const char *method = left ? (strict ? "lt" : "le") : strict ? "gt" : "ge";
    const char *turned = strict ? "gt" : "ge", *sign = strict ? "<" : "<=";
    if (number)
        return lumat_raise(L,
                           "a comparison of a matrix with %s gives a single "
                           "true or false in Lua: write A:%s(%s) for a mask",
                           other, method, other);
    return lumat_raise(L,
                       "A %s B gives a single true or false in Lua: write "
                       "A:%s(B) for a mask (or A:%s(B) for %s)",
                       sign, method, turned, strict ? ">" : ">=");
}

/* --- opening -------------------------------------------------------------- */

/* The rows of A:add_(B) and the like, which hold calls alone. */
static struct change {
    lumat_function row;
    char name[16], usage[32];
} changes[sizeof ops / sizeof *ops];

static void add_in_place(lua_State *L, const lumat_function *f)
{
    static const char *const takes[] = {
        "", "A: matrix", "A: matrix, B: " OPERAND " elements A",
        "A: matrix, B: " OPERAND " elements A, C: " OPERAND " elements A"};
    static const char *const given[] = {"", "", "B", "B, C"};
    gpu_op op = (gpu_op)f->tag;
    int arity = gpu_op_arity(op);
    struct change *c = &changes[op];
    const char *second = op == GPU_OP_round  ? "digits"
                         : op == GPU_OP_log  ? "base"
                         : op == GPU_OP_atan ? "B"
                                             : given[arity];
    snprintf(c->name, sizeof c->name, "%s_", f->name);
    snprintf(c->usage, sizeof c->usage, "A:%s_(%s)", f->name, second);
    c->row = *f;
    c->row.name = c->name;
    c->row.usage = c->usage;
    c->row.call = in_place;
    c->row.on_mistake = NULL;
    c->row.takes = op == GPU_OP_round  ? "A: matrix [, digits: integer]"
                   : op == GPU_OP_log  ? "A: matrix [, base: " OPERAND "]"
                   : op == GPU_OP_atan ? "A: matrix [, B: " OPERAND "]"
                                       : takes[arity];
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.methods");
    lumat_push_checked(L, &c->row);
    lumat_push_method(L);
    lua_setfield(L, -3, c->name);
    lua_pop(L, 2);
}

/* Of what takes a second operand besides those of its expression. */
static const char *takes_of(gpu_op op)
{
    switch (op) {
    case GPU_OP_round:
        return "A: " OPERAND " [, digits: integer] {out, device}";
    case GPU_OP_log:
        return "A: " OPERAND " [, base: " OPERAND "] {out, device}";
    case GPU_OP_atan:
        return "A: " OPERAND " [, B: " OPERAND " elements A] {out, device}";
    default:
        return NULL;
    }
}

static void add_op(lua_State *L, lumat_function *f, const char *group, int op)
{
    const char *takes = takes_of((gpu_op)op);
    f->tag = op;
    f->group = group;
    f->takes = takes ? takes : f->takes;
    lumat_register_one(L, f);
    if (!gpu_op_is_test((gpu_op)op))
        add_in_place(L, f);
}

static void add_operators(lua_State *L)
{
    static const struct {
        const char *event;
        int op;
    } operators[] = {
        {"__add", GPU_OP_add},   {"__sub", GPU_OP_sub},
        {"__div", GPU_OP_div},   {"__idiv", GPU_OP_idiv},
        {"__unm", GPU_OP_neg},   {"__band", GPU_OP_land},
        {"__bor", GPU_OP_lor},   {"__bxor", GPU_OP_lxor},
        {"__bnot", GPU_OP_lnot},
    };
    int top = lua_gettop(L);
    static const char *const metatables[] = {LUMAT_COMPLEX, LUMAT_SPARSE,
                                             "lumat.matrix"};
    for (int k = 0; k < 3; k++) {
        lua_settop(L, top);
        luaL_getmetatable(L, metatables[k]);
        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
            lua_pushinteger(L, operators[i].op);
            lua_pushcclosure(L, operator, 1);
            lua_setfield(L, -2, operators[i].event);
        }
        lua_pushcfunction(L, percent);
        lua_setfield(L, -2, "__mod");
    }
    lua_pushcfunction(L, equal);
    lua_setfield(L, -2, "__eq");
    lua_pushboolean(L, 1);
    lua_pushcclosure(L, no_order, 1);
    lua_setfield(L, -2, "__lt");
    lua_pushboolean(L, 0);
    lua_pushcclosure(L, no_order, 1);
    lua_setfield(L, -2, "__le");
    lua_pop(L, 1);
    luaL_getmetatable(L, LUMAT_COMPLEX);
    lua_pushinteger(L, GPU_OP_mul);
    lua_pushcclosure(L, operator, 1);
    lua_setfield(L, -2, "__mul");
    lua_pushinteger(L, GPU_OP_pow);
    lua_pushcclosure(L, operator, 1);
    lua_setfield(L, -2, "__pow");
    lua_pop(L, 1);
}

void lumat_open_ops(lua_State *L)
{
    const char *group = NULL;
    int op = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (ops[i].name)
            add_op(L, &ops[i], group, op++);
        else
            group = ops[i].group;
    }
    add_operators(L);
    lumat_open_reductions(L);
}
