/* Functions in Lua read as formulas: their compiled instructions are followed
 * with signs in the place of elements, and what is computed of a sign is noted
 * instead of computed.
 *
 * Calling f with objects that note what is done to them would be shorter, and
 * wrong: Lua asks no object whether it is equal to 0, or true, and so
 * `if x == 0 then` would go one way for all elements without a word. And what
 * else f does, printing, counting, drawing random numbers, would be done once.
 * Here every instruction is seen before anything is done. Those that do more
 * than compute end the reading. So nothing that f reads can change meanwhile,
 * and what depends on no element is computed as it is: loops with a known
 * count, tables of coefficients, options.
 *
 * A condition on elements is followed both ways to where they meet, and where()
 * chooses between the values that differ there; if those cannot be told apart
 * by a number, a string and a table say, f is read again, and each way followed
 * to the end of f. Integers are Lua's: they are
 * formulas only where doubles hold them exactly, their zero has no sign.
 *
 * Instructions are those of lopcodes.h of Lua 5.4. They may come of a dump that
 * somebody changed, so registers, constants and jumps are checked. */
#include "formula.h"
#include "function.h"
#include "math_functions.h"
#include "op_list.h"
#include "parse.h"

#include "lauxlib.h"
#include "lualib.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    OP_MOVE,
    OP_LOADI,
    OP_LOADF,
    OP_LOADK,
    OP_LOADKX,
    OP_LOADFALSE,
    OP_LFALSESKIP,
    OP_LOADTRUE,
    OP_LOADNIL,
    OP_GETUPVAL,
    OP_SETUPVAL,
    OP_GETTABUP,
    OP_GETTABLE,
    OP_GETI,
    OP_GETFIELD,
    OP_SETTABUP,
    OP_SETTABLE,
    OP_SETI,
    OP_SETFIELD,
    OP_NEWTABLE,
    OP_SELF,
    OP_ADDI,
    OP_ADDK,
    OP_IDIVK = 28,
    OP_BANDK,
    OP_BXORK = 31,
    OP_SHRI,
    OP_SHLI,
    OP_ADD,
    OP_IDIV = 40,
    OP_BAND,
    OP_SHR = 45,
    OP_MMBIN,
    OP_MMBINI,
    OP_MMBINK,
    OP_UNM,
    OP_BNOT,
    OP_NOT,
    OP_LEN,
    OP_CONCAT,
    OP_CLOSE,
    OP_TBC,
    OP_JMP,
    OP_EQ,
    OP_LT,
    OP_LE,
    OP_EQK,
    OP_EQI,
    OP_LTI,
    OP_LEI,
    OP_GTI,
    OP_GEI,
    OP_TEST,
    OP_TESTSET,
    OP_CALL,
    OP_TAILCALL,
    OP_RETURN,
    OP_RETURN0,
    OP_RETURN1,
    OP_FORLOOP,
    OP_FORPREP,
    OP_TFORPREP,
    OP_TFORCALL,
    OP_TFORLOOP,
    OP_SETLIST,
    OP_CLOSURE,
    OP_VARARG,
    OP_VARARGPREP
};

enum {
    DEEPEST = 12,      /* calls in calls */
    MOST_KNOWN = 24,   /* conditions decided on one way through f */
    MOST_STEPS = 20000 /* instructions of all ways */
};

/* A call of a function: on the stack it is below its registers. */
typedef struct frame {
    lumat_bytecode code;
    int base; /* index of register 0 */
    int next; /* instruction */
    int top;  /* behind the results of a call of any number, a register */
    int to,
        wanted; /* where the caller has the results, and how many; -1: all */
} frame;

typedef struct reading {
    lua_State *L;
    lumat_formula *f;
    int dumps;  /* a table that keeps them */
    int bottom; /* index of the first frame's function */
    frame frames[DEEPEST];
    int depth; /* the frame that runs */
    int steps;
    struct {
        int condition, truth;
    } known[MOST_KNOWN];
    int knowns;
    int undecided; /* the condition that an instruction waits for; -1: none */
    int joins;     /* do ways that meet go on as one? */
} reading;

/* What an instruction did. */
typedef enum step { STOPPED, GOES_ON, IS_OVER } step;

/* --- what hinders --------------------------------------------------------- */

static int line_of(const reading *r)
{
    if (r->depth < 0)
        return 0;
    const frame *f = &r->frames[r->depth];
    return lumat_line_at(&f->code, f->next - 1);
}

/* Returns STOPPED. */
__attribute__((format(printf, 2, 3))) static step stop(reading *r,
                                                       const char *format, ...)
{
    char *text = r->f->hindrance;
    int line = line_of(r);
    va_list list;
    va_start(list, format);
    vsnprintf(text, LUMAT_HINDRANCE, format, list);
    va_end(list);
    size_t used = strlen(text);
    if (line > 0)
        snprintf(text + used, LUMAT_HINDRANCE - used, " (line %d)", line);
    return STOPPED;
}

/* Of what is an error, too: it tells of itself when f is called. */
static step stop_at_error(reading *r)
{
    return stop(r, "does what numbers cannot");
}

static step stop_at_many(reading *r)
{
    return stop(r, "takes more than %d operations", LUMAT_MOST_VALUES);
}

/* --- values of the formula ------------------------------------------------ */

static int is_same(const lumat_formula_value *a, const lumat_formula_value *b)
{
    return a->is == b->is && a->kind == b->kind && a->op == b->op &&
           a->x == b->x && a->y == b->y && a->z == b->z &&
           memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

/* The number of a value like this one; -1, and stopped, when there are too
 * many. What was computed before is not computed again. */
static int add_value(reading *r, lumat_formula_value v)
{
    lumat_formula *f = r->f;
    for (int i = 0; i < f->count; i++)
        if (is_same(&f->values[i], &v))
            return i;
    if (f->count == LUMAT_MOST_VALUES) {
        stop_at_many(r);
        return -1;
    }
    f->values[f->count] = v;
    return f->count++;
}

static int add_constant(reading *r, double number, lumat_value_kind kind)
{
    return add_value(r, (lumat_formula_value){.is = LUMAT_VALUE_CONSTANT,
                                              .kind = kind,
                                              .number = number,
                                              .low = number,
                                              .high = number});
}

static int add_op(reading *r, lumat_value_kind kind, gpu_op op, int x, int y,
                  int z)
{
    if (x < 0 || y < 0 || z < 0)
        return -1;
    return add_value(r, (lumat_formula_value){.is = LUMAT_VALUE_OPERATION,
                                              .kind = kind,
                                              .op = op,
                                              .x = x,
                                              .y = y,
                                              .z = z});
}

/* An integer operation, whose value's range is known. Its zero may have got a
 * sign where that is said. */
static int add_whole(reading *r, gpu_op op, int x, int y, double low,
                     double high, int may_be_negative_zero)
{
    int v = add_op(r, LUMAT_WHOLE, op, x, y, 0);
    if (v >= 0)
        r->f->values[v].low = low, r->f->values[v].high = high;
    if (v < 0 || !may_be_negative_zero)
        return v;
    v = add_op(r, LUMAT_WHOLE, GPU_OP_add, v, add_constant(r, 0, LUMAT_FLOAT),
               0);
    if (v >= 0)
        r->f->values[v].low = low, r->f->values[v].high = high;
    return v;
}

static lumat_formula_value *value_at(const reading *r, int v)
{
    return &r->f->values[v];
}

/* What a value is that is x or y, by their kinds: with the range of the
 * integers among them. */
static void set_kind_of_two(reading *r, lumat_formula_value *v, int x, int y)
{
    const lumat_formula_value *a = value_at(r, x), *b = value_at(r, y);
    int has_a = a->kind != LUMAT_FLOAT, has_b = b->kind != LUMAT_FLOAT;
    v->kind = a->kind == b->kind ? a->kind : LUMAT_EITHER;
    v->low = !has_a ? b->low : !has_b ? a->low : fmin(a->low, b->low);
    v->high = !has_a ? b->high : !has_b ? a->high : fmax(a->high, b->high);
}

/* x where the condition holds, else y: both are numbers or both truth values.
 */
static int add_where(reading *r, int condition, int x, int y)
{
    lumat_formula_value v = {.is = LUMAT_VALUE_OPERATION,
                             .op = GPU_OP_where,
                             .x = condition,
                             .y = x,
                             .z = y};
    if (condition < 0 || x < 0 || y < 0)
        return -1;
    set_kind_of_two(r, &v, x, y);
    return add_value(r, v);
}

/* --- signs: light userdata, on Lua's stack -------------------------------- */

static void push_sign(reading *r, int v)
{
    lua_pushlightuserdata(r->L, value_at(r, v));
}

/* The number of the value whose sign is at index; -1: it is Lua's own. */
static int sign_at(const reading *r, int index)
{
    const char *first = (const char *)r->f->values;
    if (lua_type(r->L, index) != LUA_TLIGHTUSERDATA)
        return -1;
    const char *p = lua_touserdata(r->L, index);
    if (p < first || p >= first + sizeof r->f->values)
        return -1;
    return (int)((p - first) / (ptrdiff_t)sizeof *r->f->values);
}

static int is_sign(const reading *r, int index)
{
    return sign_at(r, index) >= 0;
}

static int is_truth(const reading *r, int v)
{
    return value_at(r, v)->kind == LUMAT_TRUTH;
}

/* The value at index as one of the formula, a number of Lua's as a constant;
 * -1: it is neither number nor, where takes_truth, boolean. */
static int value_of(reading *r, int index, int takes_truth)
{
    lua_State *L = r->L;
    int v = sign_at(r, index), type = lua_type(L, index);
    if (v >= 0)
        return is_truth(r, v) && !takes_truth ? -1 : v;
    if (type == LUA_TBOOLEAN && takes_truth)
        return add_constant(r, lua_toboolean(L, index), LUMAT_TRUTH);
    if (type != LUA_TNUMBER)
        return -1;
    return add_constant(r, lua_tonumber(L, index),
                        lua_isinteger(L, index) ? LUMAT_WHOLE : LUMAT_FLOAT);
}

/* --- arithmetic ----------------------------------------------------------- */

/* Up to here an integer is what its double says; 2^53 + 1 gives that of 2^53.
 */
static const double exact = 0x1p53 - 1;

static step stop_at_large(reading *r)
{
    return stop(r, "computes with integers that may be large: math.floor and "
                   "the like give such, floor(x) gives a float");
}

typedef struct range {
    double low, high;
} range;

static range range_of_product(range a, range b)
{
    double p[] = {a.low * b.low, a.low * b.high, a.high * b.low,
                  a.high * b.high};
    range all = {p[0], p[0]};
    for (int i = 1; i < 4; i++) {
        all.low = fmin(all.low, p[i]);
        all.high = fmax(all.high, p[i]);
    }
    return all;
}

static int is_exact(range a)
{
    return a.low >= -exact && a.high <= exact;
}

/* Integers of which nothing is known may be floats without end: those of
 * math.floor(1e300). Their remainder keeps its sign where it is 0. */
static int add_remainder(reading *r, int x, int y, range a, double divisor)
{
    double low = divisor < 0 ? divisor + 1 : 0;
    double high = divisor < 0 ? 0 : divisor - 1;
    if (is_exact(a))
        return add_whole(r, GPU_OP_mod, x, y, low, high,
                         a.low < 0 || divisor < 0);
    int rest = add_whole(r, GPU_OP_mod, x, y, low, high, 0);
    int without = add_whole(r, GPU_OP_mod, x, y, low, high, 1);
    int size = add_op(r, LUMAT_FLOAT, GPU_OP_abs, x, 0, 0);
    int limit = add_constant(r, 0x1p63, LUMAT_FLOAT);
    int is_integer = add_op(r, LUMAT_TRUTH, GPU_OP_le, size, limit, 0);
    int v = add_op(r, LUMAT_WHOLE, GPU_OP_where, is_integer, without, rest);
    if (v >= 0)
        value_at(r, v)->low = low, value_at(r, v)->high = high;
    return v;
}

/* The quotient of integers is rounded down: exactly, for those that doubles
 * hold. */
static int add_quotient(reading *r, int x, int y, range a, double divisor)
{
    double p = floor(a.low / divisor), q = floor(a.high / divisor);
    return add_whole(r, GPU_OP_idiv, x, y, fmin(p, q), fmax(p, q),
                     a.low < 0 || divisor < 0);
}

/* Returns the value, or -1 when stopped. */
static int add_integers(reading *r, int op, int x, int y)
{
    range a = {value_at(r, x)->low, value_at(r, x)->high};
    range b = {value_at(r, y)->low, value_at(r, y)->high}, all = a;
    int is_division = op == LUA_OPMOD || op == LUA_OPIDIV;
    if (is_division && (b.low != b.high || b.low == 0)) {
        stop(r, "divides integers by others that may be 0");
        return -1;
    }
    if (op == LUA_OPADD)
        all = (range){a.low + b.low, a.high + b.high};
    else if (op == LUA_OPSUB)
        all = (range){a.low - b.high, a.high - b.low};
    else if (op == LUA_OPMUL)
        all = range_of_product(a, b);
    int fits = is_exact(b) && is_exact(all) && is_exact(a);
    if (!fits && !(op == LUA_OPMOD && is_exact(b))) {
        stop_at_large(r);
        return -1;
    }
    switch (op) {
    case LUA_OPADD:
        return add_whole(r, GPU_OP_add, x, y, all.low, all.high, 0);
    case LUA_OPSUB:
        return add_whole(r, GPU_OP_sub, x, y, all.low, all.high, 0);
    case LUA_OPMUL:
        return add_whole(r, GPU_OP_mul, x, y, all.low, all.high,
                         a.low < 0 || b.low < 0);
    case LUA_OPMOD:
        return add_remainder(r, x, y, a, b.low);
    default:
        return add_quotient(r, x, y, a, b.low);
    }
}

static int add_floats(reading *r, int op, int x, int y)
{
    static const gpu_op ops[] = {
        [LUA_OPADD] = GPU_OP_add,  [LUA_OPSUB] = GPU_OP_sub,
        [LUA_OPMUL] = GPU_OP_mul,  [LUA_OPMOD] = GPU_OP_mod,
        [LUA_OPPOW] = GPU_OP_pow,  [LUA_OPDIV] = GPU_OP_div,
        [LUA_OPIDIV] = GPU_OP_idiv};
    const lumat_formula_value *b = value_at(r, y);
    if (op == LUA_OPPOW && b->is == LUMAT_VALUE_CONSTANT && b->number == 2)
        return add_op(r, LUMAT_FLOAT, GPU_OP_mul, x, x, 0); /* as Lua does */
    return add_op(r, LUMAT_FLOAT, ops[op], x, y, 0);
}

static int stop_at_either(reading *r)
{
    stop(r, "computes with integers for some elements, with floats for others");
    return -1;
}

/* Of integers for some elements, floats for others: what gives both the same
 * number, with the same sign where it is 0. */
static int add_either(reading *r, int op, int x, int y)
{
    range a = {value_at(r, x)->low, value_at(r, x)->high};
    range b = {value_at(r, y)->low, value_at(r, y)->high}, all;
    if (op == LUA_OPADD)
        all = (range){a.low + b.low, a.high + b.high};
    else if (op == LUA_OPSUB)
        all = (range){a.low - b.high, a.high - b.low};
    else if (op == LUA_OPMUL && a.low >= 0 && b.low >= 0)
        all = range_of_product(a, b);
    else
        return stop_at_either(r);
    if (!is_exact(a) || !is_exact(b) || !is_exact(all))
        return stop_at_either(r);
    int v = add_op(r, LUMAT_EITHER,
                   op == LUA_OPADD   ? GPU_OP_add
                   : op == LUA_OPSUB ? GPU_OP_sub
                                     : GPU_OP_mul,
                   x, y, 0);
    if (v >= 0)
        value_at(r, v)->low = all.low, value_at(r, v)->high = all.high;
    return v;
}

/* The two on top are numbers of Lua's. Integers are not divided by 0. */
static int can_compute(lua_State *L, int op)
{
    int is_integer = lua_isinteger(L, -1) && lua_isinteger(L, -2);
    if (lua_type(L, -1) != LUA_TNUMBER || lua_type(L, -2) != LUA_TNUMBER)
        return 0;
    if (op == LUA_OPMOD || op == LUA_OPIDIV)
        return !is_integer || lua_tointeger(L, -1) != 0;
    return op <= LUA_OPIDIV || is_integer;
}

static step stop_at_operand(reading *r, int index)
{
    lua_State *L = r->L;
    index = lua_absindex(L, index);
    if (lumat_test_matrix(L, index))
        return stop(r,
                    "takes a matrix from outside, where map(A, %s, f) "
                    "would give f its elements",
                    lumat_name_of(L, index, "B"));
    return stop_at_error(r);
}

/* Replaces the two on top by what comes of them. */
static step compute(reading *r, int op)
{
    lua_State *L = r->L;
    if (!is_sign(r, -1) && !is_sign(r, -2)) {
        if (!can_compute(L, op))
            return stop_at_operand(r, lua_isnumber(L, -1) ? -2 : -1);
        lua_arith(L, op);
        return GOES_ON;
    }
    int x = value_of(r, -2, 0), y = value_of(r, -1, 0), v;
    if (x < 0 || y < 0)
        return stop_at_operand(r, x < 0 ? -2 : -1);
    if (op > LUA_OPIDIV)
        return stop(r, "takes bits of elements");
    lumat_value_kind a = value_at(r, x)->kind, b = value_at(r, y)->kind;
    if (a == LUMAT_FLOAT || b == LUMAT_FLOAT || op == LUA_OPPOW ||
        op == LUA_OPDIV)
        v = add_floats(r, op, x, y);
    else if (a == LUMAT_WHOLE && b == LUMAT_WHOLE)
        v = add_integers(r, op, x, y);
    else
        v = add_either(r, op, x, y);
    if (v < 0)
        return STOPPED;
    lua_pop(L, 2);
    push_sign(r, v);
    return GOES_ON;
}

/* Replaces the one on top by its negative. */
static step negate(reading *r)
{
    lua_State *L = r->L;
    int x = value_of(r, -1, 0), v;
    if (x < 0)
        return stop_at_operand(r, -1);
    if (!is_sign(r, -1)) {
        lua_arith(L, LUA_OPUNM);
        return GOES_ON;
    }
    if (value_at(r, x)->kind == LUMAT_WHOLE)
        v = add_integers(r, LUA_OPSUB, add_constant(r, 0, LUMAT_WHOLE), x);
    else if (value_at(r, x)->kind == LUMAT_EITHER)
        v = stop_at_either(r);
    else
        v = add_op(r, LUMAT_FLOAT, GPU_OP_neg, x, 0, 0);
    if (v < 0)
        return STOPPED;
    lua_pop(L, 1);
    push_sign(r, v);
    return GOES_ON;
}

/* --- conditions ----------------------------------------------------------- */

/* What the condition is on this way; -1: not decided, the instruction is to be
 * done again once it is. */
static int decide(reading *r, int condition)
{
    const lumat_formula_value *v = value_at(r, condition);
    if (v->is == LUMAT_VALUE_OPERATION && v->op == GPU_OP_lnot) {
        int truth = decide(r, v->x);
        return truth < 0 ? -1 : !truth;
    }
    for (int i = 0; i < r->knowns; i++)
        if (r->known[i].condition == condition)
            return r->known[i].truth;
    r->undecided = condition;
    return -1;
}

/* Is what is at index true? -1: not decided. */
static int truth_of(reading *r, int index)
{
    int v = sign_at(r, index);
    if (v < 0)
        return lua_toboolean(r->L, index);
    return is_truth(r, v) ? decide(r, v) : 1;
}

/* Is it no integer of Lua's that no double holds? What is said of doubles is
 * not said of it. */
static int is_comparable(const reading *r, int v)
{
    const lumat_formula_value *c = value_at(r, v);
    return c->is != LUMAT_VALUE_CONSTANT || c->kind != LUMAT_WHOLE ||
           fabs(c->number) <= exact;
}

/* Are the two equal? Objects have their own idea of it. Returns 0 when stopped.
 */
static int raw_equal(reading *r, int x, int y, int *truth)
{
    lua_State *L = r->L;
    int type = lua_type(L, x);
    *truth = lua_rawequal(L, x, y);
    if (*truth || type != lua_type(L, y) ||
        (type != LUA_TTABLE && type != LUA_TUSERDATA))
        return 1;
    stop(r, "compares objects");
    return 0;
}

/* *truth of a comparison of which neither side is a sign. */
static int compare_known(reading *r, gpu_op op, int x, int y, int *truth)
{
    lua_State *L = r->L;
    int type = lua_type(L, x);
    if (op == GPU_OP_eq)
        return raw_equal(r, x, y, truth);
    if (type != lua_type(L, y) || (type != LUA_TNUMBER && type != LUA_TSTRING))
        return stop_at_error(r), 0;
    *truth = lua_compare(L, x, y, op == GPU_OP_lt ? LUA_OPLT : LUA_OPLE);
    return 1;
}

/* *truth of the comparison of what is at x and y: 0, 1, or -1 while it is not
 * decided. Returns 0 when stopped. */
static int compare(reading *r, gpu_op op, int x, int y, int *truth)
{
    if (!is_sign(r, x) && !is_sign(r, y))
        return compare_known(r, op, x, y, truth);
    int a = value_of(r, x, 1), b = value_of(r, y, 1);
    if (r->f->count == LUMAT_MOST_VALUES)
        return stop_at_many(r), 0;
    int are_alike = a >= 0 && b >= 0 && is_truth(r, a) == is_truth(r, b);
    if (op != GPU_OP_eq && (!are_alike || is_truth(r, a)))
        return stop_at_error(r), 0;
    *truth = 0; /* a number is equal to no value of another kind */
    if (!are_alike)
        return 1;
    if (!is_comparable(r, a) || !is_comparable(r, b))
        return stop_at_large(r), 0;
    int v = add_op(r, LUMAT_TRUTH, op, a, b, 0);
    if (v >= 0)
        *truth = decide(r, v);
    return v >= 0;
}

/* --- functions of C ------------------------------------------------------- */

/* Those of Lua's math that are operations; others below have lines of their
 * own. Read when the library is opened, before anyone can change them. */
static struct known {
    const char *name;
    int op; /* -1: see call_math */
    lua_CFunction f;
} known_math[] = {{"sin", GPU_OP_sin, NULL},   {"cos", GPU_OP_cos, NULL},
                  {"tan", GPU_OP_tan, NULL},   {"asin", GPU_OP_asin, NULL},
                  {"acos", GPU_OP_acos, NULL}, {"exp", GPU_OP_exp, NULL},
                  {"sqrt", GPU_OP_sqrt, NULL}, {"atan", -1, NULL},
                  {"log", -1, NULL},           {"floor", -1, NULL},
                  {"ceil", -1, NULL},          {"abs", -1, NULL},
                  {"max", -1, NULL},           {"min", -1, NULL},
                  {"deg", -1, NULL},           {"rad", -1, NULL},
                  {"fmod", -1, NULL}};
enum { KNOWN_MATH = sizeof known_math / sizeof *known_math };

void lumat_know_math(lua_State *L)
{
    lua_getglobal(L, LUA_MATHLIBNAME);
    for (int i = 0; i < KNOWN_MATH; i++) {
        lua_getfield(L, -1, known_math[i].name);
        known_math[i].f = lumat_c_function(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static const struct known *find_math(lua_State *L, int index)
{
    lua_CFunction f = lumat_c_function(L, index);
    for (int i = 0; f && i < KNOWN_MATH; i++)
        if (known_math[i].f == f)
            return &known_math[i];
    return NULL;
}

/* math.floor(x), math.ceil(x): integers, where they fit in one. */
static int add_rounded(reading *r, gpu_op op, int x)
{
    if (value_at(r, x)->kind == LUMAT_WHOLE)
        return x;
    return add_whole(r, op, x, 0, -0x1p63, 0x1p63, 1);
}

static int add_absolute(reading *r, int x)
{
    lumat_formula_value *a = value_at(r, x);
    double low = a->low, high = a->high;
    if (a->kind == LUMAT_FLOAT)
        return add_op(r, LUMAT_FLOAT, GPU_OP_abs, x, 0, 0);
    if (!is_exact((range){low, high})) {
        stop_at_large(r);
        return -1;
    }
    int v = add_op(r, a->kind, GPU_OP_abs, x, 0, 0);
    if (v >= 0)
        value_at(r, v)->low = 0, value_at(r, v)->high = fmax(-low, high);
    return v;
}

/* Is the other one of two arguments of math.max or min taken, as a condition?
 * As Lua compares: NaN is neither larger nor smaller. -1: stopped. */
static int add_is_other(reading *r, int best, int other, int is_max)
{
    if (!is_comparable(r, best) || !is_comparable(r, other)) {
        stop_at_large(r);
        return -1;
    }
    return add_op(r, LUMAT_TRUTH, GPU_OP_lt, is_max ? best : other,
                  is_max ? other : best, 0);
}

/* math.max and math.min of what is at first …: leaves the result on top. Of an
 * integer and a float both ways are followed, where they do not meet. */
static step add_extreme(reading *r, int first, int count, int is_max)
{
    lua_State *L = r->L;
    lua_pushvalue(L, first);
    int best = lua_gettop(L);
    for (int i = first + 1; i < first + count; i++) {
        int a = value_of(r, best, 0), b = value_of(r, i, 0), truth;
        if (a < 0 || b < 0)
            return stop_at_error(r);
        int are_known = !is_sign(r, best) && !is_sign(r, i);
        int are_alike = value_at(r, a)->kind == value_at(r, b)->kind;
        if (are_known || (!are_alike && !r->joins)) {
            int x = is_max ? best : i, y = is_max ? i : best;
            if (!compare(r, GPU_OP_lt, x, y, &truth) || truth < 0)
                return STOPPED;
            if (truth)
                lua_copy(L, i, best);
            continue;
        }
        int v = add_where(r, add_is_other(r, a, b, is_max), b, a);
        if (v < 0)
            return STOPPED;
        push_sign(r, v);
        lua_replace(L, best);
    }
    return GOES_ON;
}

/* The logarithm to a base as Lua has it. */
static int add_logarithm(reading *r, int x, int base)
{
    const lumat_formula_value *b = value_at(r, base);
    if (b->is != LUMAT_VALUE_CONSTANT) {
        stop(r, "takes logarithms to a base that is an element");
        return -1;
    }
    if (b->number == 2 || b->number == 10)
        return add_op(r, LUMAT_FLOAT,
                      b->number == 2 ? GPU_OP_log2 : GPU_OP_log10, x, 0, 0);
    int above = add_op(r, LUMAT_FLOAT, GPU_OP_log, x, 0, 0);
    int below = add_constant(r, log(b->number), LUMAT_FLOAT);
    return add_op(r, LUMAT_FLOAT, GPU_OP_div, above, below, 0);
}

/* Of the arguments from first on, of which one is a sign. */
static int add_math(reading *r, const struct known *f, int first, int count)
{
    static const double pi = 3.141592653589793238462643383279502884;
    const char *name = f->name;
    int x = count > 0 ? value_of(r, first, 0) : -1;
    int has_second = count > 1 && !lua_isnil(r->L, first + 1);
    int y = has_second ? value_of(r, first + 1, 0) : -1;
    if (x < 0) {
        stop_at_error(r);
        return -1;
    }
    if (f->op >= 0)
        return add_op(r, LUMAT_FLOAT, f->op, x, 0, 0);
    if (strcmp(name, "floor") == 0 || strcmp(name, "ceil") == 0)
        return add_rounded(r, *name == 'f' ? GPU_OP_floor : GPU_OP_ceil, x);
    if (strcmp(name, "abs") == 0)
        return add_absolute(r, x);
    if (strcmp(name, "deg") == 0 || strcmp(name, "rad") == 0)
        return add_op(r, LUMAT_FLOAT, GPU_OP_mul, x,
                      add_constant(r, *name == 'd' ? 180.0 / pi : pi / 180.0,
                                   LUMAT_FLOAT),
                      0);
    if (strcmp(name, "fmod") == 0) {
        stop(r, "calls math.fmod, whose sign %% and mod do not have");
        return -1;
    }
    if (has_second && y < 0) {
        stop_at_error(r);
        return -1;
    }
    if (strcmp(name, "atan") == 0)
        return has_second ? add_op(r, LUMAT_FLOAT, GPU_OP_atan2, x, y, 0)
                          : add_op(r, LUMAT_FLOAT, GPU_OP_atan, x, 0, 0);
    return has_second ? add_logarithm(r, x, y)
                      : add_op(r, LUMAT_FLOAT, GPU_OP_log, x, 0, 0);
}

/* round(x, digits), log(x, base), atan(y, x): the program that they are
 * becomes part of the formula. */
static int add_with_second(reading *r, gpu_op op, int x, int y)
{
    const lumat_formula_value *b = value_at(r, y);
    int is_known = b->is == LUMAT_VALUE_CONSTANT;
    double second = is_known ? b->number : NAN;
    if (op == GPU_OP_round &&
        !(fabs(second) <= LUMAT_MOST_DECIMALS && second == floor(second))) {
        stop(r, "rounds to digits that are no number from outside");
        return -1;
    }
    gpu_program p;
    int at[GPU_MAX_VALUES] = {x, y}, n = 2;
    gpu_program_start(&p, 2);
    lumat_add_with_second(&p, op, second);
    for (int i = 0; i < p.constants; i++)
        at[n++] = add_constant(r, p.constant[i], LUMAT_FLOAT);
    for (int i = 0; i < p.length; i++, n++) {
        const gpu_instruction *c = &p.code[i];
        int arity = gpu_op_arity(c->op);
        at[n] = add_op(r, gpu_op_is_test(c->op) ? LUMAT_TRUTH : LUMAT_FLOAT,
                       c->op, arity > 0 ? at[c->x] : 0,
                       arity > 1 ? at[c->y] : 0, arity > 2 ? at[c->z] : 0);
        if (at[n] < 0)
            return -1;
    }
    return at[n - 1];
}

static int add_operation(reading *r, gpu_op op, int first, int count)
{
    int v[3] = {0, 0, 0}, arity = gpu_op_arity(op);
    if (count != arity && !(lumat_has_second(op) && count == arity + 1)) {
        stop_at_error(r);
        return -1;
    }
    for (int i = 0; i < count; i++)
        if ((v[i] = value_of(r, first + i, 1)) < 0) {
            stop_at_operand(r, first + i);
            return -1;
        }
    if (count > arity)
        return add_with_second(r, op, v[0], v[1]);
    return add_op(r, gpu_op_is_test(op) ? LUMAT_TRUTH : LUMAT_FLOAT, op, v[0],
                  v[1], v[2]);
}

/* Numbers alone: the function itself is called, and changes nothing. */
static step call_known(reading *r, int function, int count)
{
    lua_State *L = r->L;
    for (int i = 0; i < count; i++)
        if (lua_type(L, function + 1 + i) != LUA_TNUMBER &&
            !lua_isboolean(L, function + 1 + i))
            return stop_at_operand(r, function + 1 + i);
    luaL_checkstack(L, count + 2, "map");
    for (int i = 0; i <= count; i++)
        lua_pushvalue(L, function + i);
    return lua_pcall(L, count, 1, 0) == LUA_OK ? GOES_ON : stop_at_error(r);
}

/* The key by which the function that is called was found, or "a function". */
static const char *called_name(reading *r, int a)
{
    const frame *f = &r->frames[r->depth];
    lumat_constant k = {.is = LUMAT_CONSTANT_NIL};
    for (int i = f->next - 2; i >= 0; i--) {
        uint32_t word = lumat_instruction_at(&f->code, i);
        int op = word & 0x7f;
        if ((int)(word >> 7 & 0xff) != a)
            continue;
        if (op == OP_GETUPVAL)
            return lua_getupvalue(r->L, f->base - 1, (word >> 16 & 0xff) + 1);
        if ((op == OP_GETTABUP || op == OP_GETFIELD || op == OP_SELF) &&
            lumat_read_constant(&f->code, word >> 24, &k) &&
            k.is == LUMAT_CONSTANT_STRING)
            return lua_pushlstring(r->L, k.text, k.length);
        break;
    }
    return "a function";
}

static step stop_at_call(reading *r, int function)
{
    const lumat_function *row = lumat_row_of(r->L, function);
    int type = lua_type(r->L, function);
    if (lumat_test_matrix(r->L, function) ||
        (type != LUA_TFUNCTION && type != LUA_TTABLE && type != LUA_TUSERDATA))
        return stop_at_operand(r, function);
    if (row)
        return stop(r, "calls %.60s", row->name);
    if (r->depth < 0)
        return stop(r, "is a function of another kind");
    return stop(r, "calls %.60s",
                called_name(r, function - r->frames[r->depth].base));
}

/* Leaves the one result on top. */
static step call_c(reading *r, int function, int count)
{
    int op = lumat_op_at(r->L, function), has_sign = 0, v;
    const struct known *math = op < 0 ? find_math(r->L, function) : NULL;
    if (op < 0 && !math)
        return stop_at_call(r, function);
    for (int i = 1; i <= count; i++)
        has_sign |= is_sign(r, function + i);
    if (!has_sign)
        return call_known(r, function, count);
    luaL_checkstack(r->L, 4, "map");
    if (math && math->name[0] == 'm') /* max, min */
        return add_extreme(r, function + 1, count, math->name[1] == 'a');
    v = math ? add_math(r, math, function + 1, count)
             : add_operation(r, op, function + 1, count);
    if (v < 0)
        return STOPPED;
    push_sign(r, v);
    return GOES_ON;
}

/* --- frames --------------------------------------------------------------- */

/* A buffer begins on top of the stack, and lua_dump wants its function there:
 * so it begins with the first bytes. */
typedef struct dump {
    int is_begun;
    luaL_Buffer text;
} dump;

static int add_to_dump(lua_State *L, const void *data, size_t size, void *to)
{
    dump *d = to;
    if (!d->is_begun)
        luaL_buffinit(L, &d->text);
    d->is_begun = 1;
    luaL_addlstring(&d->text, data, size);
    return 0;
}

/* Pushes the dump of the Lua function at index, which r keeps. */
static const char *push_dump(reading *r, int function, size_t *length)
{
    lua_State *L = r->L;
    dump d = {.is_begun = 0};
    lua_pushvalue(L, function);
    if (lua_rawget(L, r->dumps) != LUA_TNIL)
        return lua_tolstring(L, -1, length);
    lua_pop(L, 1);
    lua_pushvalue(L, function);
    lua_dump(L, add_to_dump, &d, 0);
    luaL_pushresult(&d.text);
    lua_replace(L, -2);
    lua_pushvalue(L, function);
    lua_pushvalue(L, -2);
    lua_rawset(L, r->dumps);
    return lua_tolstring(L, -1, length);
}

/* Returns 0 where it cannot be read. */
static int read_code(reading *r, int function, lumat_bytecode *out)
{
    size_t length;
    const char *text = push_dump(r, function, &length);
    int is_read = lumat_read_bytecode(text, length, out);
    lua_pop(r->L, 1);
    return is_read && out->parameters <= out->registers;
}

/* Calls the Lua function at index with what is behind it: its registers follow
 * on the stack, which is to have nothing else above. */
static step enter(reading *r, int function, int count, int to, int wanted)
{
    lua_State *L = r->L;
    lumat_bytecode code;
    if (r->depth + 1 == DEEPEST)
        return stop(r, "calls functions in functions, deeper than %d", DEEPEST);
    luaL_checkstack(L, 300, "map");
    if (!read_code(r, function, &code))
        return stop(r, "calls a function that cannot be read");
    lua_pushvalue(L, function);
    int base = lua_gettop(L) + 1;
    for (int i = 0; i < code.registers; i++) {
        if (i < code.parameters && i < count)
            lua_pushvalue(L, function + 1 + i);
        else
            lua_pushnil(L);
    }
    r->frames[++r->depth] = (frame){code, base, 0, 0, to, wanted};
    return GOES_ON;
}

/* --- instructions --------------------------------------------------------- */

typedef struct instruction {
    int op, a, b, c, k, bx;
} instruction;

static instruction decode(uint32_t word)
{
    return (instruction){.op = word & 0x7f,
                         .a = word >> 7 & 0xff,
                         .k = word >> 15 & 1,
                         .b = word >> 16 & 0xff,
                         .c = word >> 24,
                         .bx = word >> 15};
}

static const int half_byte = 127; /* added to signed operands of 8 bits */

static int jump_of(uint32_t word)
{
    enum { HALF = 16777215 };
    return (int)(word >> 7) - HALF;
}

/* In a register that holds different things behind two ways that met: nobody
 * reads it, as a rule. */
static const char unsettled;

static int is_unsettled(const reading *r, int index)
{
    return lua_touserdata(r->L, index) == &unsettled;
}

/* Pushes the register; 0: there is none, or it is not settled. */
static int push_register(reading *r, int i)
{
    const frame *f = &r->frames[r->depth];
    if (i < 0 || i >= f->code.registers || is_unsettled(r, f->base + i))
        return 0;
    lua_pushvalue(r->L, f->base + i);
    return 1;
}

/* Pops the register's value. */
static step set_register(reading *r, int i)
{
    const frame *f = &r->frames[r->depth];
    if (i < 0 || i >= f->code.registers)
        return stop_at_error(r);
    lua_replace(r->L, f->base + i);
    return GOES_ON;
}

static int push_constant(reading *r, int i)
{
    lua_State *L = r->L;
    lumat_constant k;
    if (!lumat_read_constant(&r->frames[r->depth].code, i, &k))
        return 0;
    switch (k.is) {
    case LUMAT_CONSTANT_NIL:
        lua_pushnil(L);
        break;
    case LUMAT_CONSTANT_BOOLEAN:
        lua_pushboolean(L, (int)k.integer);
        break;
    case LUMAT_CONSTANT_INTEGER:
        lua_pushinteger(L, k.integer);
        break;
    case LUMAT_CONSTANT_NUMBER:
        lua_pushnumber(L, k.number);
        break;
    case LUMAT_CONSTANT_STRING:
        lua_pushlstring(L, k.text, k.length);
    }
    return 1;
}

static int push_upvalue(reading *r, int i)
{
    return lua_getupvalue(r->L, r->frames[r->depth].base - 1, i + 1) != NULL;
}

/* Replaces the container and the key on top by what is there, raw. */
static step index_top(reading *r)
{
    lua_State *L = r->L;
    if (is_sign(r, -1))
        return stop(r, "takes what an element is the place of");
    if (is_sign(r, -2) || !lua_istable(L, -2))
        return stop_at_operand(r, -2);
    if (lua_rawget(L, -2) == LUA_TNIL && lua_getmetatable(L, -2)) {
        lua_pop(L, 1);
        return stop(r, "reads a table that has a metatable");
    }
    lua_remove(L, -2);
    return GOES_ON;
}

static step get(reading *r, const instruction *i)
{
    int found;
    if (i->op == OP_GETTABUP)
        found = push_upvalue(r, i->b);
    else
        found = push_register(r, i->b);
    if (found && i->op == OP_SELF) {
        lua_pushvalue(r->L, -1);
        if (set_register(r, i->a + 1) == STOPPED)
            return STOPPED;
    }
    if (!found)
        return stop_at_error(r);
    if (i->op == OP_GETI)
        lua_pushinteger(r->L, i->c), found = 1;
    else if (i->op == OP_GETTABLE || (i->op == OP_SELF && !i->k))
        found = push_register(r, i->c);
    else
        found = push_constant(r, i->c);
    if (!found)
        return stop_at_error(r);
    return index_top(r) == GOES_ON ? set_register(r, i->a) : STOPPED;
}

/* The operands and what they are combined by, by families of instructions. */
static step arithmetic(reading *r, const instruction *i)
{
    int op = i->op, found = push_register(r, i->b), lua_op;
    if (op == OP_ADDI) {
        lua_pushinteger(r->L, i->c - half_byte);
        lua_op = LUA_OPADD;
    } else if (op < OP_SHRI) {
        found = found && push_constant(r, i->c);
        lua_op = op < OP_BANDK ? op - OP_ADDK + LUA_OPADD
                               : op - OP_BANDK + LUA_OPBAND;
    } else {
        found = found && push_register(r, i->c);
        lua_op =
            op < OP_BAND ? op - OP_ADD + LUA_OPADD : op - OP_BAND + LUA_OPBAND;
    }
    if (!found)
        return stop_at_error(r);
    return compute(r, lua_op) == GOES_ON ? set_register(r, i->a) : STOPPED;
}

/* Behind a test: the jump that follows is taken where it came out as k. */
static void jump_if(reading *r, int truth, int k)
{
    r->frames[r->depth].next += truth != k;
}

static step test(reading *r, const instruction *i)
{
    lua_State *L = r->L;
    static const gpu_op ops[] = {GPU_OP_eq, GPU_OP_lt, GPU_OP_le,
                                 GPU_OP_eq, GPU_OP_eq, GPU_OP_lt,
                                 GPU_OP_le, GPU_OP_lt, GPU_OP_le};
    int found = push_register(r, i->a), truth = -1, turned = i->op >= OP_GTI;
    if (i->op <= OP_LE)
        found = found && push_register(r, i->b);
    else if (i->op == OP_EQK)
        found = found && push_constant(r, i->b);
    else
        lua_pushinteger(L, i->b - half_byte);
    if (!found)
        return stop_at_error(r);
    int top = lua_gettop(L);
    if (!compare(r, ops[i->op - OP_EQ], turned ? top : top - 1,
                 turned ? top - 1 : top, &truth) ||
        truth < 0)
        return STOPPED;
    lua_pop(L, 2);
    jump_if(r, truth, i->k);
    return GOES_ON;
}

static step test_value(reading *r, const instruction *i)
{
    int from = i->op == OP_TEST ? i->a : i->b;
    if (!push_register(r, from))
        return stop_at_error(r);
    int truth = truth_of(r, -1);
    if (truth < 0)
        return STOPPED;
    jump_if(r, truth, i->k);
    if (i->op == OP_TESTSET && truth == i->k)
        return set_register(r, i->a);
    lua_pop(r->L, 1);
    return GOES_ON;
}

static step negation(reading *r, const instruction *i)
{
    lua_State *L = r->L;
    if (!push_register(r, i->b))
        return stop_at_error(r);
    int v = sign_at(r, -1);
    if (v >= 0 && is_truth(r, v)) {
        if ((v = add_op(r, LUMAT_TRUTH, GPU_OP_lnot, v, 0, 0)) < 0)
            return STOPPED;
        push_sign(r, v);
    } else {
        lua_pushboolean(L, v < 0 && !lua_toboolean(L, -1));
    }
    lua_remove(L, -2);
    return set_register(r, i->a);
}

static step length(reading *r, const instruction *i)
{
    lua_State *L = r->L;
    if (!push_register(r, i->b))
        return stop_at_error(r);
    int has_own = luaL_getmetafield(L, -1, "__len") != LUA_TNIL;
    if (has_own || (!lua_istable(L, -1) && lua_type(L, -1) != LUA_TSTRING))
        return stop_at_error(r);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    lua_remove(L, -2);
    return set_register(r, i->a);
}

/* --- calls and results ---------------------------------------------------- */

/* Puts count values from index `from` on into the registers of a call's
 * results. */
static step give_results(reading *r, int from, int count, int to, int wanted)
{
    lua_State *L = r->L;
    frame *f = &r->frames[r->depth];
    int all = wanted < 0 ? count : wanted;
    if (to < 0 || to + all > f->code.registers)
        return stop(r, "hands on many results");
    luaL_checkstack(L, all + 1, "map");
    for (int i = 0; i < all; i++) {
        if (i < count)
            lua_pushvalue(L, from + i);
        else
            lua_pushnil(L);
        lua_replace(L, f->base + to + i);
    }
    f->top = to + all;
    return GOES_ON;
}

/* How many values are in registers from `first` on: one less than given, or
 * those up to the top. -1: there are not so many, or one is not settled. */
static int count_values(const reading *r, int first, int given)
{
    const frame *f = &r->frames[r->depth];
    int count = given > 0 ? given - 1 : f->top - first;
    if (first + count > f->code.registers)
        return -1;
    for (int i = 0; i < count; i++)
        if (is_unsettled(r, f->base + first + i))
            return -1;
    return count;
}

static step do_call(reading *r, const instruction *i, int wanted)
{
    lua_State *L = r->L;
    frame *f = &r->frames[r->depth];
    int function = f->base + i->a, top = lua_gettop(L);
    int count = i->a < f->code.registers ? count_values(r, i->a + 1, i->b) : -1;
    if (count < 0 || is_unsettled(r, function))
        return stop_at_error(r);
    if (lua_type(L, function) != LUA_TFUNCTION)
        return stop_at_call(r, function);
    if (!lua_iscfunction(L, function))
        return enter(r, function, count, i->a, wanted);
    if (call_c(r, function, count) == STOPPED)
        return STOPPED;
    step s = give_results(r, lua_gettop(L), 1, i->a, wanted);
    lua_settop(L, top);
    return s;
}

/* Ends the frame with count results in registers from first on. */
static step give_back(reading *r, int first, int count)
{
    lua_State *L = r->L;
    frame *f = &r->frames[r->depth];
    int from = f->base + first, bottom = f->base - 2;
    if (count < 0)
        return stop_at_error(r);
    if (r->depth == 0) {
        if (count > 0)
            lua_pushvalue(L, from);
        else
            lua_pushnil(L);
        return IS_OVER;
    }
    r->depth--;
    step s = give_results(r, from, count, f->to, f->wanted);
    lua_settop(L, bottom);
    return s;
}

/* The results of a call at the end are those of the function: a call and then
 * RETURN, which stands behind every such call. */
static step tail_call(reading *r, const instruction *i)
{
    return do_call(r, i, -1);
}

/* --- loops ---------------------------------------------------------------- */

static step stop_at_loop(reading *r)
{
    return stop(r, "has a loop whose end depends on elements, or is no number");
}

/* How often an integer loop goes round; -1: not at all. Like Lua's forprep. */
static lua_Integer count_rounds(lua_Integer from, lua_Integer to,
                                lua_Integer by)
{
    if (by > 0 ? from > to : from < to)
        return -1;
    lua_Unsigned way = by > 0 ? (lua_Unsigned)to - (lua_Unsigned)from
                              : (lua_Unsigned)from - (lua_Unsigned)to;
    way /= by > 0 ? (lua_Unsigned)by : (lua_Unsigned) - (by + 1) + 1u;
    return way > MOST_STEPS ? MOST_STEPS : (lua_Integer)way;
}

/* Registers a, a + 1, a + 2: first, last and step, then the place, the rounds
 * that are left and the step. Of integers alone. */
static step prepare_loop(reading *r, const instruction *i)
{
    lua_State *L = r->L;
    frame *f = &r->frames[r->depth];
    int exactly, at = f->base + i->a;
    if (i->a + 3 >= f->code.registers)
        return stop_at_error(r);
    lua_Integer to = lua_tointegerx(L, at + 1, &exactly);
    if (!exactly || lua_type(L, at + 1) != LUA_TNUMBER ||
        !lua_isinteger(L, at) || !lua_isinteger(L, at + 2) ||
        lua_tointeger(L, at + 2) == 0)
        return stop_at_loop(r);
    lua_Integer rounds =
        count_rounds(lua_tointeger(L, at), to, lua_tointeger(L, at + 2));
    if (rounds < 0) {
        f->next += i->bx + 1;
        return GOES_ON;
    }
    lua_pushinteger(L, rounds);
    lua_replace(L, at + 1);
    lua_copy(L, at, at + 3);
    return GOES_ON;
}

static step go_round(reading *r, const instruction *i)
{
    lua_State *L = r->L;
    frame *f = &r->frames[r->depth];
    int at = f->base + i->a;
    if (i->a + 3 >= f->code.registers || !lua_isinteger(L, at + 1) ||
        !lua_isinteger(L, at) || !lua_isinteger(L, at + 2))
        return stop_at_error(r);
    lua_Integer left = lua_tointeger(L, at + 1);
    if (left <= 0)
        return GOES_ON;
    lua_pushinteger(L, left - 1);
    lua_replace(L, at + 1);
    lua_pushvalue(L, at);
    lua_pushvalue(L, at + 2);
    lua_arith(L, LUA_OPADD);
    lua_copy(L, -1, at + 3);
    lua_replace(L, at);
    f->next -= i->bx;
    return GOES_ON;
}

/* --- one after the other -------------------------------------------------- */

static step refuse(reading *r, const instruction *i)
{
    const char *name;
    switch (i->op) {
    case OP_SETUPVAL:
        name = lua_getupvalue(r->L, r->frames[r->depth].base - 1, i->b + 1);
        return stop(r, "sets %.60s, which lives on after it",
                    name ? name : "a variable");
    case OP_SETTABUP:
        if (push_constant(r, i->b) && lua_type(r->L, -1) == LUA_TSTRING)
            return stop(r, "sets %.60s, which lives on after it",
                        lua_tostring(r->L, -1));
        return stop(r, "sets a global");
    case OP_SETTABLE:
    case OP_SETI:
    case OP_SETFIELD:
        return stop(r, "writes to a table");
    case OP_NEWTABLE:
    case OP_SETLIST:
        return stop(r, "makes a table");
    case OP_CLOSURE:
        return stop(r, "makes a function");
    case OP_CONCAT:
        return stop(r, "makes a text");
    case OP_VARARG:
        return stop(r, "takes any number of arguments, as ...");
    case OP_TFORPREP:
    case OP_TFORCALL:
    case OP_TFORLOOP:
        return stop(r, "goes through a table; for i = 1, #t do is read");
    default:
        return stop(r, "takes bits of elements, or closes variables");
    }
}

static step load(reading *r, const instruction *i)
{
    lua_State *L = r->L;
    enum { HALF = 65535 };
    frame *f = &r->frames[r->depth];
    int found = 1;
    switch (i->op) {
    case OP_MOVE:
        found = push_register(r, i->b);
        break;
    case OP_LOADI:
        lua_pushinteger(L, i->bx - HALF);
        break;
    case OP_LOADF:
        lua_pushnumber(L, i->bx - HALF);
        break;
    case OP_LOADK:
        found = push_constant(r, i->bx);
        break;
    case OP_LOADFALSE:
    case OP_LFALSESKIP:
        lua_pushboolean(L, 0);
        f->next += i->op == OP_LFALSESKIP;
        break;
    case OP_LOADTRUE:
        lua_pushboolean(L, 1);
        break;
    case OP_GETUPVAL:
        found = push_upvalue(r, i->b);
        break;
    default:
        found = 0;
    }
    return found ? set_register(r, i->a) : stop_at_error(r);
}

static step load_nils(reading *r, const instruction *i)
{
    for (int k = i->a; k <= i->a + i->b; k++) {
        lua_pushnil(r->L);
        if (set_register(r, k) == STOPPED)
            return STOPPED;
    }
    return GOES_ON;
}

static step jump(reading *r, uint32_t word)
{
    r->frames[r->depth].next += jump_of(word);
    return GOES_ON;
}

static step minus(reading *r, const instruction *i)
{
    if (!push_register(r, i->b))
        return stop_at_error(r);
    return negate(r) == GOES_ON ? set_register(r, i->a) : STOPPED;
}

static step run_instruction(reading *r, uint32_t word)
{
    instruction i = decode(word);
    if (i.op <= OP_LOADK || (i.op >= OP_LOADFALSE && i.op <= OP_LOADTRUE) ||
        i.op == OP_GETUPVAL)
        return load(r, &i);
    if (i.op == OP_LOADNIL)
        return load_nils(r, &i);
    if ((i.op >= OP_GETTABUP && i.op <= OP_GETFIELD) || i.op == OP_SELF)
        return get(r, &i);
    if ((i.op >= OP_ADDI && i.op <= OP_BXORK) ||
        (i.op >= OP_ADD && i.op <= OP_SHR))
        return arithmetic(r, &i);
    if (i.op >= OP_EQ && i.op <= OP_GEI)
        return test(r, &i);
    switch (i.op) {
    case OP_MMBIN:
    case OP_MMBINI:
    case OP_MMBINK:
    case OP_VARARGPREP:
        return GOES_ON;
    case OP_UNM:
        return minus(r, &i);
    case OP_NOT:
        return negation(r, &i);
    case OP_LEN:
        return length(r, &i);
    case OP_JMP:
        return jump(r, word);
    case OP_TEST:
    case OP_TESTSET:
        return test_value(r, &i);
    case OP_CALL:
        return do_call(r, &i, i.c - 1);
    case OP_TAILCALL:
        return tail_call(r, &i);
    case OP_RETURN:
        return give_back(r, i.a, count_values(r, i.a, i.b));
    case OP_RETURN0:
        return give_back(r, 0, 0);
    case OP_RETURN1:
        return give_back(r, i.a, count_values(r, i.a, 2));
    case OP_FORPREP:
        return prepare_loop(r, &i);
    case OP_FORLOOP:
        return go_round(r, &i);
    default:
        return refuse(r, &i);
    }
}

/* --- ways through f ------------------------------------------------------- */

/* An instruction of the frame at a depth, before it is done. */
typedef struct meeting {
    int depth, at;
} meeting;

static const meeting nowhere = {-1, 0};

/* What follow returns besides a value's number. */
enum { FAILED = -1, HAS_MET = -2, GOES_ON_AS_ONE = -3 };

static int follow(reading *r, meeting until);

/* What is on top as a value of the formula, popped; FAILED: stopped. */
static int take_result(reading *r)
{
    int v = value_of(r, -1, 1);
    if (v < 0)
        stop(r, "gives a %s, no number", lumat_kind_of(r->L, -1));
    lua_pop(r->L, 1);
    return v;
}

static int is_number(const reading *r, int v, double number)
{
    const lumat_formula_value *c = value_at(r, v);
    return c->is == LUMAT_VALUE_CONSTANT && c->number == number;
}

static int add_choice(reading *r, int condition, int yes, int no)
{
    if (yes < 0 || no < 0)
        return FAILED;
    int are_truths = is_truth(r, yes) && is_truth(r, no);
    if (yes == no)
        return yes;
    if (are_truths && is_number(r, yes, 1) && is_number(r, no, 0))
        return condition;
    if (are_truths && is_number(r, yes, 0) && is_number(r, no, 1))
        return add_op(r, LUMAT_TRUTH, GPU_OP_lnot, condition, 0, 0);
    if (is_truth(r, yes) != is_truth(r, no)) { /* elements of f's result */
        r->f->is_mixed = 1;
        return add_op(r, LUMAT_FLOAT, GPU_OP_where, condition, yes, no);
    }
    return add_where(r, condition, yes, no);
}

/* The instructions that may follow the one at `at`, in the order of the code:
 * a loop's back to its start is left out, as it ends one time. Returns how many
 * there are; 0: the function ends there, or it is not known where it goes. */
static int next_instructions(const lumat_bytecode *c, int at, int next[2])
{
    instruction i = decode(lumat_instruction_at(c, at));
    next[0] = at + 1;
    next[1] = at + 2;
    if (i.op >= OP_EQ && i.op <= OP_TESTSET)
        return 2;
    if (i.op == OP_FORPREP) {
        next[1] = at + 2 + i.bx;
        return 2;
    }
    if (i.op == OP_LFALSESKIP)
        next[0] = at + 2;
    if (i.op == OP_JMP)
        next[0] = at + 1 + jump_of(lumat_instruction_at(c, at));
    return i.op != OP_TAILCALL && (i.op < OP_RETURN || i.op > OP_RETURN1) &&
           next[0] > at;
}

/* Where all ways from the test at `at` come by; -1: nowhere. The first of those
 * that are still to be followed is replaced by those behind it, until there is
 * one: no way goes back. */
static int find_meeting(const lumat_bytecode *c, int at)
{
    enum { MOST = 32 };
    int open[MOST] = {at + 1, at + 2}, count = 2, next[2];
    while (count > 1) {
        int first = 0;
        for (int i = 1; i < count; i++)
            first = open[i] < open[first] ? i : first;
        int place = open[first];
        open[first] = open[--count];
        if (place >= c->count)
            return -1;
        int more = next_instructions(c, place, next);
        if (more == 0 || count + more > MOST)
            return -1;
        for (int k = 0; k < more; k++) {
            int is_there = 0;
            for (int i = 0; i < count; i++)
                is_there |= open[i] == next[k];
            if (!is_there)
                open[count++] = next[k];
        }
    }
    return open[0];
}

/* Where both ways from the test that waits meet: in its function or where that
 * is left. */
static meeting meeting_of(const reading *r)
{
    const frame *f = &r->frames[r->depth];
    int at = r->joins ? find_meeting(&f->code, f->next) : -1;
    if (at >= 0)
        return (meeting){r->depth, at};
    if (r->joins && r->depth > 0)
        return (meeting){r->depth - 1, r->frames[r->depth - 1].next};
    return nowhere;
}

/* Copies all frames, which end at top, to the end of the stack, where one way
 * goes on. */
static void copy_frames(reading *r, int top)
{
    lua_State *L = r->L;
    int by = lua_gettop(L) + 1 - r->bottom;
    luaL_checkstack(L, top - r->bottom + 20, "map");
    for (int i = r->bottom; i <= top; i++)
        lua_pushvalue(L, i);
    for (int i = 0; i <= r->depth; i++)
        r->frames[i].base += by;
    r->bottom += by;
}

/* Pushes the value that is the one at yes where the condition holds, else that
 * at no. */
static void push_choice(reading *r, int condition, int yes, int no)
{
    lua_State *L = r->L;
    int a = value_of(r, yes, 1), b = value_of(r, no, 1), v = -1;
    int are_both_raw =
        (a < 0 && b < 0) || (lua_isinteger(L, yes) && lua_isinteger(L, no));
    if (are_both_raw ? lua_rawequal(L, yes, no) : a == b) {
        lua_pushvalue(L, yes);
        return;
    }
    if (a >= 0 && b >= 0 && is_truth(r, a) == is_truth(r, b) &&
        is_comparable(r, a) && is_comparable(r, b))
        v = add_choice(r, condition, a, b);
    if (v >= 0)
        push_sign(r, v);
    else
        lua_pushlightuserdata(L, (void *)&unsettled);
}

/* What there is at a test, to be gone on with. */
typedef struct crossing {
    frame frames[DEEPEST];
    int depth, bottom, top;
} crossing;

static void go_back(reading *r, const crossing *c)
{
    memcpy(r->frames, c->frames, sizeof c->frames);
    r->depth = c->depth;
    r->bottom = c->bottom;
}

/* Both ways have come to m, that with yes to the frame there, the other to
 * r's: goes on from c with registers that are one or the other. */
static int join(reading *r, const crossing *c, meeting m, int condition,
                const frame *yes)
{
    frame no = r->frames[m.depth];
    go_back(r, c);
    r->depth = m.depth;
    frame *f = &r->frames[m.depth];
    luaL_checkstack(r->L, 4, "map");
    for (int i = 0; i < f->code.registers; i++) {
        push_choice(r, condition, yes->base + i, no.base + i);
        lua_replace(r->L, f->base + i);
    }
    f->next = m.at;
    f->top = no.top;
    lua_settop(r->L, f->base + f->code.registers - 1);
    return yes->top == no.top ? GOES_ON_AS_ONE : FAILED;
}

/* Both ways from the instruction that waits for the condition, to where they
 * meet, or to `until`. */
static int follow_both(reading *r, int condition, meeting until)
{
    crossing c = {.depth = r->depth, .bottom = r->bottom};
    meeting own = meeting_of(r), m = own.depth >= 0 ? own : until;
    frame yes = {.base = 0};
    int result[2];
    if (r->knowns == MOST_KNOWN) {
        stop(r, "asks for elements more than %d times in a row", MOST_KNOWN);
        return FAILED;
    }
    c.top = lua_gettop(r->L);
    memcpy(c.frames, r->frames, sizeof c.frames);
    r->known[r->knowns++].condition = condition;
    for (int truth = 1; truth >= 0; truth--) {
        r->known[r->knowns - 1].truth = truth;
        go_back(r, &c);
        copy_frames(r, c.top);
        result[truth] = follow(r, m);
        if (result[truth] == FAILED)
            return FAILED;
        if (truth && result[truth] == HAS_MET)
            yes = r->frames[m.depth];
    }
    r->knowns--;
    if ((result[0] == HAS_MET) != (result[1] == HAS_MET))
        return stop(r, "goes ways that do not meet"), FAILED;
    if (result[0] == HAS_MET) {
        int joined = join(r, &c, m, condition, &yes);
        return joined == GOES_ON_AS_ONE && own.depth < 0 ? HAS_MET : joined;
    }
    go_back(r, &c);
    lua_settop(r->L, c.top);
    return add_choice(r, condition, result[1], result[0]);
}

/* Follows f to its end and returns its result; or returns HAS_MET before the
 * instruction until, or FAILED. */
static int follow(reading *r, meeting until)
{
    for (;;) {
        frame *f = &r->frames[r->depth];
        int at = f->next, depth = r->depth;
        if (depth == until.depth && at == until.at)
            return HAS_MET;
        if (at < 0 || at >= f->code.count)
            return stop_at_error(r), FAILED;
        if (++r->steps > MOST_STEPS) {
            stop(r, "takes more than %d steps, with both ways of every if",
                 MOST_STEPS);
            return FAILED;
        }
        f->next++;
        r->undecided = -1;
        int top = lua_gettop(r->L);
        step s = run_instruction(r, lumat_instruction_at(&f->code, at));
        if (s == IS_OVER)
            return take_result(r);
        if (s == GOES_ON)
            continue;
        if (r->undecided < 0)
            return FAILED;
        lua_settop(r->L, top);
        r->depth = depth;
        r->frames[depth].next = at;
        int result = follow_both(r, r->undecided, until);
        if (result != GOES_ON_AS_ONE)
            return result;
    }
}

/* --- f and its arguments -------------------------------------------------- */

/* Pushes the place of an element along an axis of so many. */
static int push_place(reading *r, gpu_op op, int64_t count)
{
    if (count <= 1) {
        lua_pushinteger(r->L, 1);
        return 1;
    }
    int v = add_op(r, LUMAT_FLOAT, op, 0, 0, 0);
    int one = add_constant(r, 1, LUMAT_FLOAT);
    v = v < 0 ? v : add_whole(r, GPU_OP_add, v, one, 1, (double)count, 0);
    if (v >= 0)
        push_sign(r, v);
    return v >= 0;
}

/* Pushes what stands for the argument at index. */
static void push_argument(reading *r, int index)
{
    const gpu_matrix *m = lumat_test_matrix(r->L, index);
    if (!m) {
        lua_pushvalue(r->L, index);
        return;
    }
    lumat_value_kind kind = m->dtype == GPU_BOOL ? LUMAT_TRUTH : LUMAT_FLOAT;
    lumat_formula_value v = {LUMAT_VALUE_OPERAND, .kind = kind, .x = index};
    push_sign(r, add_value(r, v));
}

/* Of a function in C with a condition, as math.max has it, both ways are
 * not followed: there is no instruction to come back to. */
static int read_c(reading *r, int function, int count)
{
    r->undecided = -1;
    if (call_c(r, function, count) == STOPPED) {
        if (r->undecided >= 0)
            stop(r, "compares integers with floats");
        return -1;
    }
    return take_result(r);
}

/* Reads the function, with what it is called with on top. */
static int read_function(reading *r, int function, int count)
{
    int top = lua_gettop(r->L), result = FAILED;
    r->depth = r->undecided = -1;
    r->steps = r->knowns = 0;
    if (lua_iscfunction(r->L, function))
        result = read_c(r, function, count);
    else if (enter(r, function, count, 0, 1) == GOES_ON) {
        r->bottom = r->frames[0].base - 1;
        result = follow(r, nowhere);
    }
    lua_settop(r->L, top);
    return result;
}

int lumat_read_formula(lua_State *L, int f, int first, int count,
                       const gpu_matrix *shape, lumat_formula *out)
{
    reading r = {.L = L, .f = out, .depth = -1, .undecided = -1};
    int top = lua_gettop(L);
    out->count = 0;
    out->hindrance[0] = '\0';
    if (count + 2 > LUMAT_MOST_VALUES / 4)
        return stop(&r, "takes many arguments");
    luaL_checkstack(L, count + 40, "map");
    lua_newtable(L);
    r.dumps = lua_gettop(L);
    lua_pushvalue(L, f);
    int function = lua_gettop(L), result = FAILED, own;
    for (int i = 0; i < count; i++)
        push_argument(&r, first + i);
    push_place(&r, GPU_OP_ROW, shape->rows);
    push_place(&r, GPU_OP_COL, shape->cols);
    own = out->count;
    if (lua_type(L, function) != LUA_TFUNCTION)
        stop(&r, "is an object that can be called");
    else
        for (r.joins = 1; r.joins >= 0 && result == FAILED; r.joins--) {
            out->count = own;
            out->is_mixed = 0;
            result = read_function(&r, function, count + 2);
        }
    lua_settop(L, top);
    out->result = result;
    return result >= 0;
}
