/* Reductions as Lua functions and methods: ops.def's, one closure a row, and
 * norm. Of numbers, where that has a meaning, and of sparse matrices. */
#include "arguments.h"
#include "complex_value.h"
#include "math_functions.h"
#include "op_list.h"
#include "print.h"
#include "value.h"

#include <math.h>
#include <string.h>

static int reduction(lua_State *L);
static int norm(lua_State *L);
static void explain_mistake(lua_State *L, const lumat_function *f, int count);

#define OPERAND "matrix|sparse|number|boolean"
#define TAKES_DENSE \
    "A: matrix|number|boolean [, axis: axis] {axis, nan, keepdims, device}"
#define TAKES "A: " OPERAND " [, axis: axis] {axis, nan, keepdims, device}"
#define TAKES_WEIGHTS \
    "A: " OPERAND " [, axis: axis] {axis, nan, weights, keepdims, device}"
#define TAKES_DDOF                                                        \
    "A: " OPERAND " [, axis: axis] {axis, ddof, nan, weights, keepdims, " \
    "device}"
#define NUMBER "number or matrix with axis"

#define SKIPS                                                              \
    {                                                                      \
        "nan", "\"skip\"|\"keep\"", "\"keep\"",                            \
            "\"skip\": NaN is left out; of nothing but NaN a sum is 0, a " \
            "product 1, "                                                  \
            "and what has no answer NaN"                                   \
    }
#define WEIGHTS(more)                                                          \
    {                                                                          \
        "weights", "matrix", "all 1",                                          \
            "how reliable elements are, as in averages of measurements: from " \
            "0 on, "                                                           \
            "of A's shape or one for each place along the axis" more           \
    }
static const lumat_option plain_options[] = {
    SKIPS, LUMAT_OPTION_THROUGH, {NULL, NULL, NULL, NULL}};
static const lumat_option mean_options[] = {
    SKIPS, WEIGHTS(""), LUMAT_OPTION_THROUGH, {NULL, NULL, NULL, NULL}};
static const lumat_option spread_options[] = {
    {"ddof", "number", "1",
     "what the number of elements is less when squares are divided by it: 0 "
     "is of all there are, 1 of a sample"},
    SKIPS,
    WEIGHTS("; their sum stands for n, and ddof counts (sum of squares) / sum"),
    LUMAT_OPTION_THROUGH,
    {NULL, NULL, NULL, NULL}};

/* Rows of functions in the order of ops.def, each group behind its name. */
#define GROUP(title) {.group = title},
#define OP(name, arity, expression, vector, help, example, result)
#define TEST(name, arity, expression, vector, help, example, result)
#define REDUCTION(word, way, of_one, text, shown, gives_this) \
    {#word,                                                   \
     reduction,                                               \
     1,                                                       \
     TAKES,                                                   \
     NUMBER,                                                  \
     text,                                                    \
     shown,                                                   \
     gives_this,                                              \
     .on_mistake = explain_mistake,                           \
     .options = plain_options,                                \
     .tag = GPU_REDUCE_##word},
static lumat_function reductions[] = {
#include "ops.def"
};

static const char *names[GPU_REDUCTIONS];

static int is_extreme(int kind)
{
    return kind == GPU_REDUCE_max || kind == GPU_REDUCE_min;
}

/* What compares element by element. */
static const char *pairwise(int kind)
{
    return kind == GPU_REDUCE_max ? "maximum" : "minimum";
}

static int push_reduced(lua_State *L, int kind, double value)
{
    if (kind == GPU_REDUCE_any || kind == GPU_REDUCE_all)
        lua_pushboolean(L, value != 0);
    else if (kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax)
        lua_pushinteger(L, (lua_Integer)value + 1);
    else
        lua_pushnumber(L, value);
    return 1;
}

/* --- of numbers ----------------------------------------------------------- */

static int is_plain(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TNUMBER || lua_isboolean(L, index);
}

/* "sum(vec{3, 4})": what was meant by numbers as arguments. */
static const char *push_as_vector(lua_State *L, const char *name)
{
    enum { SHOWN = 8 };
    int count = lua_gettop(L);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    lua_pushfstring(L, "%s(vec{", name);
    luaL_addvalue(&b);
    for (int i = 1; i <= count && i <= SHOWN; i++) {
        if (i > 1)
            luaL_addstring(&b, ", ");
        lumat_tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_addstring(&b, count > SHOWN ? ", …})" : "})");
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* A number stands for all there is; whatever comes behind it was meant for
 * something else. */
static int raise_more(lua_State *L, const char *name, int count)
{
    int plain = 1;
    lua_settop(L, count);
    for (int i = 1; i <= count; i++)
        plain &= is_plain(L, i);
    if (plain)
        return lumat_raise(L, "%s: of several numbers write %s", name,
                           push_as_vector(L, name));
    return lumat_raise(L,
                       "%s: %s is a number: there is no axis, and nothing "
                       "else to give; write %s(A) of a matrix",
                       name, lumat_push_brief(L, 1), name);
}

/* The reduction of one number, as its row has it. */
static double reduce_one(int kind, double x)
{
    switch (kind) {
#define OP(...)
#define TEST(...)
#define REDUCTION(name, way, of_one, ...) \
    case GPU_REDUCE_##name:               \
        return of_one;
#include "ops.def"
    }
    return NAN;
}

static int reduce_number(lua_State *L, int kind)
{
    int count = lumat_arguments(L);
    double x = lua_isboolean(L, 1) ? lua_toboolean(L, 1) : lua_tonumber(L, 1);
    if (count > 1)
        return raise_more(L, names[kind], count);
    return push_reduced(L, kind, reduce_one(kind, x));
}

static int check_number(lua_State *L, int i)
{
    if (lumat_is_unknown(L, i))
        return 0;
    double x = lumat_check_number(L, i);
    return x == x;
}

/* max(3, A) */
static void refuse_matrices(lua_State *L, int kind, int count)
{
    for (int i = 2; i <= count; i++)
        if (lumat_test_matrix(L, i))
            lumat_raise(L,
                        "%s: argument %d is a matrix: %s(%s, %s) compares a "
                        "number with each element",
                        names[kind], i, pairwise(kind), lumat_push_brief(L, 1),
                        lumat_name_of(L, i, "A"));
}

/* max(3, 5, 4): the argument itself, so that integers stay integers; NaN if
 * any is, as of a matrix. */
static int extreme_number(lua_State *L, int kind)
{
    int count = lua_gettop(L), best = 1;
    for (int i = 1; i <= count; i++)
        if (!check_number(L, i))
            best = i;
    if (lumat_is_unknown(L, best)) {
        lua_pushvalue(L, best);
        return 1;
    }
    for (int i = 1; i <= count && lua_rawequal(L, best, best); i++)
        if (kind == GPU_REDUCE_max ? lua_compare(L, best, i, LUA_OPLT)
                                   : lua_compare(L, i, best, LUA_OPLT))
            best = i;
    lua_pushvalue(L, best);
    return 1;
}

/* --- of matrices ---------------------------------------------------------- */

/* Place of an extreme element of a matrix: row, column. */
static int push_place(lua_State *L, const gpu_matrix *m, double value)
{
    int64_t at = (int64_t)value;
    if (m->ndim == 1)
        return push_reduced(L, GPU_REDUCE_argmax, value);
    lua_pushinteger(L, at / m->cols + 1);
    lua_pushinteger(L, at % m->cols + 1);
    return 2;
}

static int is_axis(lua_State *L, int index, const gpu_matrix *m)
{
    double x = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0;
    return x == 1 || (x == 2 && m->ndim == 2);
}

/* max(A, B), max(A, 3) and Octave's max(A, [], 2). */
static void refuse_pairs(lua_State *L, int kind, const gpu_matrix *m)
{
    const char *name = names[kind], *other = pairwise(kind);
    if (lua_type(L, 2) == LUA_TNUMBER && is_axis(L, 2, m))
        return; /* before a name is looked for, which takes long */
    const char *a = lumat_name_of(L, 1, "A");
    if (lumat_test_matrix(L, 2))
        lumat_raise(L,
                    "%s: gives the %s element of one matrix: %s(%s, %s) "
                    "compares two, element by element",
                    name, kind == GPU_REDUCE_max ? "largest" : "smallest",
                    other, a, lumat_name_of(L, 2, "B"));
    if (lua_type(L, 2) != LUA_TNUMBER && is_axis(L, 3, m))
        lumat_raise(L, "%s: the axis is the second argument: write %s(%s, %s)",
                    name, name, a, lumat_push_brief(L, 3));
    if (lua_type(L, 2) != LUA_TNUMBER)
        return;
    const char *given = lumat_push_brief(L, 2);
    lumat_raise(L,
                "%s: %s has no axis %s: %s(%s, %s) compares each element "
                "with a number; an axis is 1 (down each column) or 2 "
                "(along each row)",
                name, m->ndim == 1 ? "a vector" : "a matrix", given, other, a,
                given);
}

static void explain_mistake(lua_State *L, const lumat_function *f, int count)
{
    if (is_extreme(f->tag) && lua_type(L, 1) == LUA_TNUMBER)
        refuse_matrices(L, f->tag, count);
    else if (is_plain(L, 1) && count > 1)
        raise_more(L, f->name, count);
    if (is_extreme(f->tag) && lumat_test_matrix(L, 1))
        refuse_pairs(L, f->tag, lumat_test_matrix(L, 1));
    if (lumat_test_matrix(L, 2))
        lumat_raise(L,
                    "%s: takes one matrix; what may follow is an axis, 1 (down "
                    "each column) or 2 (along each row)",
                    f->name);
}

/* What a call asks for behind the matrix. */
typedef struct request {
    int axis;    /* 0: of all elements */
    int options; /* where the table stands; 0: there is none */
    int chooses; /* something in `choice` is not as without it */
    int drops;   /* keepdims=false */
    gpu_choice choice;
} request;

static int is_set(lua_State *L, int table, const char *key)
{
    int found = lua_getfield(L, table, key) != LUA_TNIL;
    if (!found)
        lua_pop(L, 1);
    return found;
}

static int option_skips(lua_State *L, int table)
{
    int skips = is_set(L, table, "nan");
    if (skips) {
        skips = strcmp(lua_tostring(L, -1), "skip") == 0;
        lua_pop(L, 1);
    }
    return skips;
}

/* keepdims=false, of a reduction along an axis. */
static int option_drops(lua_State *L, const char *name, int table, int axis,
                        const gpu_matrix *m)
{
    if (!is_set(L, table, "keepdims"))
        return 0;
    int drops = !lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (axis == 0)
        lumat_raise(L,
                    "%s: keepdims is of a reduction along an axis: %s(%s) is "
                    "%s",
                    name, name, lumat_name_of(L, 1, m->ndim == 1 ? "v" : "A"),
                    m->ndim == 1 ? "of the whole vector" : "of all elements");
    return drops;
}

static void read_options(lua_State *L, const char *name, const gpu_matrix *m,
                         request *r)
{
    r->choice.skips_nan = option_skips(L, r->options);
    if (is_set(L, r->options, "weights")) {
        r->choice.weights = lumat_check_matrix(L, lua_gettop(L));
        lua_pop(L, 1); /* the table holds it */
    }
    double ddof = lumat_option_number(L, r->options, "ddof", 1);
    if (!(ddof >= 0 && ddof < INFINITY))
        lumat_raise(L, "%s: ddof is %f, expected a number from 0 on", name,
                    ddof);
    r->choice.ddof = ddof;
    r->chooses = r->choice.skips_nan || r->choice.weights || ddof != 1;
    r->drops = option_drops(L, name, r->options, r->axis, m);
}

/* (A [, axis] [, {axis=, …}]) */
static request check_reduced(lua_State *L, int kind, const gpu_matrix *m)
{
    request r = {.choice = {.ddof = 1}};
    if (is_extreme(kind))
        refuse_pairs(L, kind, m);
    int table = lua_istable(L, 2) ? 2 : 3;
    lua_settop(L, table);
    if (table == 3 && !lua_isnil(L, 2))
        r.axis = lumat_check_axis(L, 2, m);
    if (!lua_istable(L, table))
        return r;
    r.options = table;
    int axis = lumat_option_axis(L, table, m);
    if (axis > 0 && r.axis > 0)
        lumat_raise(L, "%s: the axis is given twice: write %s(%s, {axis=%d})",
                    names[kind], names[kind], lumat_name_of(L, 1, "A"), axis);
    r.axis = axis > 0 ? axis : r.axis;
    read_options(L, names[kind], m, &r);
    return r;
}

/* A sum, product or mean of complex numbers. */
static int push_complex_reduced(lua_State *L, int kind, const gpu_matrix *m)
{
    gpu_complex value;
    lumat_try(L, gpu_complex_reduce_all(names[kind], kind, m, &value));
    if (lumat_push_unread(L, names[kind]))
        return 1;
    lumat_note_scalar(gpu_dtype_of_parts(m->dtype), value.re);
    lumat_note_scalar(gpu_dtype_of_parts(m->dtype), value.im);
    lumat_push_complex(L, value);
    return 1;
}

/* m along an axis, or with options, into out: of all elements it has one. */
static gpu_status reduce_matrix(int kind, const gpu_matrix *m, const request *r,
                                gpu_matrix *out, int64_t *none)
{
    *none = 0;
    if (r->chooses)
        return gpu_reduce_chosen(names[kind], kind, m, r->axis, &r->choice, out,
                                 none);
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = (uint8_t)kind;
    return gpu_reduce(names[kind], &p, &m, r->axis, out);
}

static void warn_of_none(lua_State *L, int kind, int axis, int64_t none)
{
    const char *what = kind == GPU_REDUCE_mean || kind == GPU_REDUCE_var ||
                               kind == GPU_REDUCE_std
                           ? "no element that counts"
                           : "nothing but NaN";
    if (none == 0)
        return;
    if (axis == 0)
        lumat_warn(L, names[kind], "there is %s: the result is NaN", what);
    else
        lumat_warn(L, names[kind], "of %lld %s there is %s: %s NaN",
                   (long long)none,
                   axis == 1 ? (none == 1 ? "column" : "columns")
                             : (none == 1 ? "row" : "rows"),
                   what, none == 1 ? "the result is" : "the results are");
}

/* A place that may be none. */
static int push_place_or_nan(lua_State *L, const gpu_matrix *m, double place)
{
    if (place == place)
        return push_place(L, m, place);
    lua_pushnumber(L, (double)NAN);
    lua_pushnumber(L, (double)NAN);
    return m->ndim;
}

/* The number of all elements; 0: it is unknown, and stands for itself. */
static int reduce_to_number(lua_State *L, int kind, const gpu_matrix *m,
                            const request *r, double *value)
{
    gpu_status status;
    int64_t none = 0;
    gpu_team through = lumat_option_through(L, r->options, m);
    gpu_team before = gpu_compute_together(through);
    if (r->chooses) {
        gpu_matrix *out = lumat_new_matrix(L);
        status = reduce_matrix(kind, m, r, out, &none);
        if (status == GPU_OK)
            status = gpu_get(out, 0, 0, value);
        gpu_release(out);
    } else {
        gpu_program p;
        gpu_program_start(&p, 1);
        p.reduction = (uint8_t)kind;
        status = gpu_reduce_all(names[kind], &p, &m, value);
    }
    gpu_compute_together(before);
    lumat_try(L, status);
    warn_of_none(L, kind, 0, none);
    return !lumat_push_unread(L, names[kind]);
}

/* keepdims=false: the vector of the results on top, or their number. */
static int push_dropped(lua_State *L, int kind, const gpu_matrix *m)
{
    gpu_matrix *out = lumat_check_matrix(L, lua_gettop(L));
    double value;
    if (m->ndim == 2) {
        gpu_matrix *vector = lumat_new_matrix(L);
        lumat_try(L, gpu_reshape(out, 1, gpu_size(out), 1, vector));
        return 1;
    }
    if (gpu_is_complex(out)) {
        gpu_complex both;
        lumat_try(L, gpu_complex_get(out, 0, 0, &both));
        if (!lumat_push_unread(L, names[kind]))
            lumat_push_complex(L, both);
        return 1;
    }
    lumat_try(L, gpu_get(out, 0, 0, &value));
    if (lumat_push_unread(L, names[kind]))
        return 1;
    lumat_note_scalar(out->dtype, value);
    if (value != value)
        lua_pushnumber(L, value);
    else
        push_reduced(L, kind, value);
    return 1;
}

/* --- of sparse matrices ----------------------------------------------------
 */

/* What a dense matrix of s's size and type would be asked about. */
static gpu_matrix shape_of(const gpu_sparse *s)
{
    return (gpu_matrix){
        .ndim = 2, .rows = s->rows, .cols = s->cols, .dtype = s->values.dtype};
}

/* The sparse matrix at 1, or NULL. */
static const gpu_sparse *test_sparse(lua_State *L)
{
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    if (s && !s->values.storage)
        lumat_raise_argument(L, 1, "is a sparse matrix that has been freed");
    return s;
}

static void refuse_dense_option(lua_State *L, const char *name, int options,
                                const char *option)
{
    if (options == 0 || !is_set(L, options, option))
        return;
    lumat_raise(L,
                "%s: %s goes with dense matrices: leave it out, or write "
                "full(%s)",
                name, option, lumat_name_of(L, 1, "S"));
}

/* One result for all elements. */
static int push_sparse_whole(lua_State *L, int kind, const gpu_sparse *s,
                             const request *r)
{
    double value[2];
    int64_t none;
    lumat_try(L, gpu_sparse_reduce_all(names[kind], (gpu_reduction)kind, s,
                                       &r->choice, value, &none));
    if (lumat_push_unread(L, names[kind]))
        return 1;
    warn_of_none(L, kind, 0, none);
    gpu_dtype part = gpu_dtype_of_parts(s->values.dtype);
    lumat_note_scalar(part, value[0]);
    if (!gpu_is_complex(&s->values) ||
        !gpu_reduces_to_complex((gpu_reduction)kind))
        return push_reduced(L, kind, value[0]);
    lumat_note_scalar(part, value[1]);
    lumat_push_complex(L, (gpu_complex){value[0], value[1]});
    return 1;
}

static int reduce_sparse(lua_State *L, int kind, const gpu_sparse *s)
{
    const gpu_matrix shape = shape_of(s);
    request r = {.choice = {.ddof = 1}};
    if (lua_gettop(L) > 1)
        r = check_reduced(L, kind, &shape);
    refuse_dense_option(L, names[kind], r.options, "weights");
    refuse_dense_option(L, names[kind], r.options, "device");
    if (r.axis == 0)
        return push_sparse_whole(L, kind, s, &r);
    int64_t none;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_reduce(names[kind], (gpu_reduction)kind, s, r.axis,
                                   &r.choice, out, &none));
    lumat_account(L, out);
    warn_of_none(L, kind, r.axis, none);
    return r.drops ? push_dropped(L, kind, &shape) : 1;
}

static int reduction(lua_State *L)
{
    int kind = lumat_running_row(L)->tag;
    int is_place = kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
    if (is_extreme(kind) && lua_type(L, 1) == LUA_TNUMBER)
        return extreme_number(L, kind);
    if (is_plain(L, 1))
        return reduce_number(L, kind);
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    if (!m && lumat_is_unknown(L, 1))
        return is_extreme(kind) ? extreme_number(L, kind) : 1;
    const gpu_sparse *s = m || is_place ? NULL : test_sparse(L);
    if (s)
        return reduce_sparse(L, kind, s);
    lumat_check_matrix(L, 1);
    request r = {.choice = {.ddof = 1}};
    if (lua_gettop(L) > 1)
        r = check_reduced(L, kind, m);
    if (r.axis == 0 && !r.chooses && gpu_is_complex(m) &&
        gpu_reduces_to_complex(kind))
        return push_complex_reduced(L, kind, m);
    if (r.axis == 0) {
        double value;
        if (!reduce_to_number(L, kind, m, &r, &value)) {
            lua_pushvalue(L, -1);
            return is_place && m->ndim == 2 ? 2 : 1;
        }
        lumat_note_scalar(m->dtype, value);
        return is_place ? push_place_or_nan(L, m, value)
                        : push_reduced(L, kind, value);
    }
    int64_t none;
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_team through = lumat_option_through(L, r.options, m);
    gpu_team before = gpu_compute_together(through);
    gpu_status status = reduce_matrix(kind, m, &r, out, &none);
    gpu_compute_together(before);
    lumat_try(L, status);
    lumat_account(L, out);
    warn_of_none(L, kind, r.axis, none);
    if (r.drops && m->ndim == 1)
        return push_dropped(L, kind, m);
    if (is_place)
        lumat_count_from_one(L, "argmax", out, out);
    return r.drops ? push_dropped(L, kind, m) : 1;
}

/* --- norms ---------------------------------------------------------------- */

enum { FROBENIUS = -1, NUCLEAR = -2 }; /* beside powers, which are above 0 */

/* p of norm(A, p): a power, INFINITY, or one of the two. */
static double check_power(lua_State *L, int arg)
{
    if (lua_isnoneornil(L, arg))
        return FROBENIUS;
    const char *word =
        lua_type(L, arg) == LUA_TSTRING ? lua_tostring(L, arg) : "";
    if (strcmp(word, "fro") == 0)
        return FROBENIUS;
    if (strcmp(word, "nuc") == 0)
        return NUCLEAR;
    if (strcmp(word, "inf") == 0)
        return INFINITY;
    double p = lua_type(L, arg) == LUA_TNUMBER ? lua_tonumber(L, arg) : 0;
    if (!(p > 0))
        lumat_raise(L,
                    "norm: p is a number above 0, \"inf\" or \"fro\", not %s",
                    lumat_push_brief(L, arg));
    return p;
}

static int raise_unknown(lua_State *L)
{
    const char *name = lumat_name_of(L, 1, "A");
    const char *given = lumat_push_brief(L, 2);
    return lumat_raise(L,
                       "norm: of a matrix p is 1, 2, \"inf\", \"fro\" or "
                       "\"nuc\", not %s: "
                       "norm(%s, %s, {axis=1}) is one norm a column",
                       given, name, given);
}

/* Of m's singular values the largest, or all together; as f64. */
static void norm_of_values(lua_State *L, const gpu_matrix *m, double p,
                           double *out)
{
    gpu_matrix *s = lumat_new_matrix(L), none[2];
    int64_t trouble = 0;
    *out = 0;
    int64_t row, col;
    if (lumat_find_odd(L, m, &row, &col)) { /* which LAPACK has no values of */
        lumat_try(L, gpu_norm_all(m, INFINITY, out));
        lua_pop(L, 1);
        return;
    }
    lumat_try(L, gpu_svd(m, GPU_SVD_VALUES, s, &none[0], &none[1], &trouble));
    lumat_account(L, s);
    if (trouble > 0)
        lumat_raise(L, "norm: the singular values did not converge");
    if (gpu_size(s) > 0)
        lumat_try(L, p == 2 ? gpu_get(s, 0, 0, out) : gpu_norm_all(s, 1, out));
    lua_pop(L, 1);
}

static int is_of_values(const gpu_matrix *m, double p, int axis)
{
    return m->ndim == 2 && axis == 0 && (p == 2 || p == NUCLEAR);
}

/* All but those of singular values: into out along an axis, else *value. */
static gpu_status norm_through(gpu_team through, const gpu_matrix *m, double p,
                               int axis, gpu_matrix *out, double *value)
{
    double power = p == FROBENIUS ? 2 : p;
    gpu_team before = gpu_compute_together(through);
    gpu_status status = axis > 0 ? gpu_norm(m, power, axis, out)
                        : m->ndim == 1 || p == FROBENIUS
                            ? gpu_norm_all(m, power, value)
                            : gpu_norm_of_sums(m, p == 1 ? 1 : 2, value);
    gpu_compute_together(before);
    return status;
}

/* Norms of the lines along an axis, of a vector, or of a matrix as one. */
static int push_norm(lua_State *L, const gpu_matrix *m, double p, int axis,
                     gpu_team through)
{
    double value;
    if (p == NUCLEAR && (m->ndim == 1 || axis > 0))
        return lumat_raise(L, "norm: \"nuc\" is of a whole matrix");
    if (axis > 0) {
        gpu_matrix *out = lumat_new_matrix(L);
        lumat_try(L, norm_through(through, m, p, axis, out, NULL));
        lumat_account(L, out);
        return 1;
    }
    if (is_of_values(m, p, axis) && through.count > 0)
        return lumat_raise(L,
                           "norm: singular values are computed where the "
                           "matrix lies: move it, as in A:to(\"%s\")",
                           gpu_device_name(through.devices[0]));
    if (is_of_values(m, p, axis))
        norm_of_values(L, m, p, &value);
    else if (m->ndim == 1 || p == FROBENIUS || p == 1 || isinf(p))
        lumat_try(L, norm_through(through, m, p, axis, NULL, &value));
    else
        return raise_unknown(L);
    if (lumat_push_unread(L, "norm"))
        return 1;
    lumat_note_scalar(m->dtype, value);
    lua_pushnumber(L, value);
    return 1;
}

/* Pushes m with zeros for NaN. */
static const gpu_matrix *push_without_nan(lua_State *L, const gpu_matrix *m)
{
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_program p;
    gpu_program_start(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    int left_out = gpu_program_add(&p, GPU_OP_isnan, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_where, left_out, zero, 0);
    lumat_try(L, gpu_map("norm", &p, &m, out));
    lumat_account(L, out);
    return out;
}

/* Singular values are not had of the entries alone. */
static int refuse_values(lua_State *L, double p)
{
    const char *own = lumat_name_of(L, 1, "S");
    if (p == 2)
        return lumat_raise(L,
                           "norm: norm 2 of a sparse matrix is its largest "
                           "singular value: write svds(%s, 1), or "
                           "norm(full(%s), 2)",
                           own, own);
    return lumat_raise(L,
                       "norm: \"nuc\" is the sum of all singular values: "
                       "write norm(full(%s), \"nuc\")",
                       own);
}

/* Pushes s with zeros for NaN. */
static const gpu_sparse *push_sparse_without_nan(lua_State *L,
                                                 const gpu_sparse *s)
{
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L,
              gpu_sparse_with_values(s, push_without_nan(L, &s->values), out));
    lua_pop(L, 1);
    return out;
}

static int norm_of_sparse(lua_State *L, const gpu_sparse *s)
{
    const gpu_matrix shape = shape_of(s);
    int options = lua_istable(L, 2) ? 2 : 3;
    double value = 0, p = options == 2 ? FROBENIUS : check_power(L, 2);
    int axis = lumat_option_axis(L, options, &shape);
    lua_settop(L, options);
    int drops = 0;
    if (lua_istable(L, options)) {
        refuse_dense_option(L, "norm", options, "device");
        drops = option_drops(L, "norm", options, axis, &shape);
        if (option_skips(L, options))
            s = push_sparse_without_nan(L, s);
    }
    if (axis > 0 && p == NUCLEAR)
        return lumat_raise(L, "norm: \"nuc\" is of a whole matrix");
    if (axis > 0) {
        gpu_matrix *out = lumat_new_matrix(L);
        lumat_try(L, gpu_sparse_norm(s, p == FROBENIUS ? 2 : p, axis, out));
        lumat_account(L, out);
        return drops ? push_dropped(L, GPU_REDUCE_norm, &shape) : 1;
    }
    if (p == 2 || p == NUCLEAR)
        return refuse_values(L, p);
    if (p != FROBENIUS && p != 1 && !isinf(p))
        return raise_unknown(L);
    lumat_try(L, p == FROBENIUS
                     ? gpu_norm_all(&s->values, 2, &value)
                     : gpu_sparse_norm_of_sums(s, p == 1 ? 1 : 2, &value));
    if (lumat_push_unread(L, "norm"))
        return 1;
    lumat_note_scalar(s->values.dtype, value);
    lua_pushnumber(L, value);
    return 1;
}

/* norm(A [, p] [, {axis=, nan=, keepdims=}]) */
static int norm(lua_State *L)
{
    if (is_plain(L, 1))
        return reduce_number(L, GPU_REDUCE_norm);
    if (lumat_is_unknown(L, 1)) {
        lua_settop(L, 1);
        return 1;
    }
    const gpu_sparse *s = test_sparse(L);
    if (s)
        return norm_of_sparse(L, s);
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int options = lua_istable(L, 2) ? 2 : 3;
    double p = options == 2 ? FROBENIUS : check_power(L, 2);
    int axis = lumat_option_axis(L, options, m);
    int drops = 0;
    if (lua_istable(L, options)) {
        drops = option_drops(L, "norm", options, axis, m);
        if (option_skips(L, options))
            m = push_without_nan(L, m);
    }
    if (m->ndim == 2 && axis == 0 && p == 1)
        lumat_note_to_caller(
            L, "norm",
            "norm(A, 1) is the matrix norm 1; one norm a column is "
            "norm(A, {axis=1})");
    if (m->ndim == 2 && axis == 0 && p == 2)
        lumat_note_to_caller(
            L, "norm 2",
            "norm(A, 2) is the largest singular value; one norm a row "
            "is norm(A, {axis=2})");
    push_norm(L, m, p, axis, lumat_option_through(L, options, m));
    return drops ? push_dropped(L, GPU_REDUCE_norm, m) : 1;
}

/* --- opening -------------------------------------------------------------- */

/* What not all reductions have alike. */
static void complete_row(lumat_function *f)
{
    if (is_extreme(f->tag))
        f->takes = "A: matrix|sparse [, axis: axis] {axis, nan, keepdims, "
                   "device} or "
                   "x: number|boolean [, y: number, …]";
    if (f->tag == GPU_REDUCE_any || f->tag == GPU_REDUCE_all)
        f->gives = "boolean or matrix with axis";
    if (f->tag == GPU_REDUCE_argmin || f->tag == GPU_REDUCE_argmax) {
        f->takes = TAKES_DENSE;
        f->gives = "integer, integer or matrix with axis";
    }
    if (f->tag == GPU_REDUCE_mean) {
        f->takes = TAKES_WEIGHTS;
        f->options = mean_options;
    }
    if (f->tag == GPU_REDUCE_var || f->tag == GPU_REDUCE_std) {
        f->takes = TAKES_DDOF;
        f->options = spread_options;
    }
    if (f->tag != GPU_REDUCE_norm)
        return;
    f->call = norm;
    f->options = plain_options;
    f->takes = "A: " OPERAND
               " [, p: number|\"inf\"|\"fro\"|\"nuc\"] {axis, nan, keepdims, "
               "device}";
}

void lumat_open_reductions(lua_State *L)
{
    const char *group = NULL;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        lumat_function *f = &reductions[i];
        if (!f->name) {
            group = f->group;
            continue;
        }
        f->group = group;
        names[f->tag] = f->name;
        complete_row(f);
        lumat_register_one(L, f);
    }
}
