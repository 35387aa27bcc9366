/* Constructors: matrices from Lua tables, constants, functions, sequences and
 * random numbers. */
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "function.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

#include <math.h>
#include <string.h>

typedef gpu_status creator(gpu_matrix *out, gpu_device *device, gpu_dtype dtype,
                           int ndim, int64_t rows, int64_t cols);

static gpu_matrix *push_created(lua_State *L, const lumat_request *r,
                                creator *create)
{
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, create(m, r->device, r->dtype, r->ndim, r->rows, r->cols));
    lumat_account(L, m);
    return m;
}

/* Pushes the matrix asked for, its elements unspecified. */
static gpu_matrix *push_requested(lua_State *L, const lumat_request *r)
{
    return push_created(L, r, gpu_create);
}

/* --- from tables ---------------------------------------------------------- */

enum { FEW = 64 }; /* elements that need no memory of their own on the way */

static gpu_complex check_element(lua_State *L, const char *name, lua_Integer i,
                                 lua_Integer j)
{
    gpu_complex value = {0, 0};
    if (lua_type(L, -1) == LUA_TNUMBER)
        value.re = lua_tonumber(L, -1);
    else if (lumat_take_complex(L, -1, &value))
        ;
    else if (j > 0)
        lumat_raise(L, "%s: element {%I, %I} is a %s, not a number", name,
                    (LUAI_UACINT)i, (LUAI_UACINT)j, lumat_kind_of(L, -1));
    else
        lumat_raise(L, "%s: element %I is a %s, not a number", name,
                    (LUAI_UACINT)i, lumat_kind_of(L, -1));
    lua_pop(L, 1);
    return value;
}

/* A number that is not real makes no element of a real matrix. */
static void put(lua_State *L, void *data, gpu_dtype dtype, int64_t at,
                gpu_complex value)
{
    if (value.im != 0 && !gpu_dtype_is_complex(dtype))
        lumat_raise(L,
                    "a complex number does not go into a matrix of %s: "
                    "add {dtype=\"c64\"}, or take real(z)",
                    gpu_dtype_name(dtype));
    if (dtype == GPU_F64)
        ((double *)data)[at] = value.re;
    else if (dtype == GPU_F32)
        ((float *)data)[at] = (float)value.re;
    else if (dtype == GPU_C128)
        ((gpu_complex *)data)[at] = value;
    else if (dtype == GPU_C64) {
        ((float *)data)[2 * at] = (float)value.re;
        ((float *)data)[2 * at + 1] = (float)value.im;
    } else
        ((uint8_t *)data)[at] = value.re != 0;
}

/* Does the element on top want another matrix than that which nobody asked for:
 * a complex one in place of a real one, one of numbers in place of truths? */
static int wants_other_type(lua_State *L, const lumat_request *r)
{
    if (!r->may_be_complex)
        return 0;
    if (r->dtype == GPU_BOOL)
        return !lua_isboolean(L, -1);
    return lua_type(L, -1) == LUA_TUSERDATA && lumat_test_complex(L, -1);
}

/* Puts the element on top, which is popped, to its place; 0: it wants another
 * type. j is 0 in a vector. */
static int put_element(lua_State *L, const lumat_request *r, void *data,
                       int64_t at, int64_t i, int64_t j)
{
    if (wants_other_type(L, r))
        return 0;
    put(L, data, r->dtype, at, check_element(L, r->name, i, j));
    return 1;
}

/* The same of a real number, which most are; 0: it is none, or goes to another
 * type, and is still there. */
static inline int put_real(lua_State *L, void *data, gpu_dtype dtype,
                           int64_t at, int type)
{
    if (type != LUA_TNUMBER || (dtype != GPU_F32 && dtype != GPU_F64))
        return 0;
    if (dtype == GPU_F64)
        ((double *)data)[at] = lua_tonumber(L, -1);
    else
        ((float *)data)[at] = (float)lua_tonumber(L, -1);
    lua_pop(L, 1);
    return 1;
}

/* Refuses the table on top where it has more than its elements 1 … n: an option
 * among them would be lost. What follows the last element is looked at alone,
 * as long tables are to cost nothing. */
static void refuse_strays(lua_State *L, const char *name, int64_t n)
{
    if (n > 0)
        lua_pushinteger(L, n);
    else
        lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (lua_type(L, -2) == LUA_TSTRING) {
            const char *key = lua_tostring(L, -2);
            int is_text = lua_type(L, -1) == LUA_TSTRING;
            int has_text = is_text || lua_type(L, -1) == LUA_TNUMBER ||
                           lua_isboolean(L, -1);
            const char *quote = is_text ? "\"" : "";
            lumat_raise(L,
                        "%s: %s stands among the elements: options follow in a "
                        "table of their own, as in ({…}, {%s = %s%s%s})",
                        name, key, key, quote,
                        has_text ? luaL_tolstring(L, -1, NULL) : "…", quote);
        }
        if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1 ||
            lua_tointeger(L, -2) > n)
            lumat_raise(L, "%s: the table has [%s] besides its elements 1 … %I",
                        name, luaL_tolstring(L, -2, NULL), (LUAI_UACINT)n);
        lua_pop(L, 1);
    }
}

/* private.refuse_strays(name, list): the same of a list that Lua reads. */
static int refuse_strays_of_list(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    refuse_strays(L, name, (int64_t)lua_rawlen(L, 2));
    return 0;
}

/* Row-major elements of the table, in `few` where there is room, or else in
 * memory the collector owns; NULL: one of them wants another type. */
static void *push_elements(lua_State *L, int table, lumat_request *r,
                           gpu_complex few[FEW])
{
    int64_t n = r->rows * r->cols;
    void *data = few;
    if (n > FEW)
        data = lua_newuserdatauv(L, (size_t)n * gpu_dtype_size(r->dtype), 0);
    for (int64_t i = 0; i < r->rows; i++) {
        lumat_look(L);
        int type = lua_rawgeti(L, table, i + 1);
        if (r->ndim == 1) {
            if (!put_real(L, data, r->dtype, i, type) &&
                !put_element(L, r, data, i, i + 1, 0))
                return NULL;
            continue;
        }
        if (type != LUA_TTABLE)
            lumat_raise(L, "%s: row %I is a %s, not a table", r->name,
                        (LUAI_UACINT)i + 1, lumat_kind_of(L, -1));
        if ((int64_t)lua_rawlen(L, -1) != r->cols)
            lumat_raise(L,
                        "%s: ragged rows: row 1 has %I elements, row %I has %I",
                        r->name, (LUAI_UACINT)r->cols, (LUAI_UACINT)i + 1,
                        (LUAI_UACINT)lua_rawlen(L, -1));
        for (int64_t j = 0; j < r->cols; j++) {
            int64_t at = i * r->cols + j;
            lumat_look(L);
            type = lua_rawgeti(L, -1, j + 1);
            if (!put_real(L, data, r->dtype, at, type) &&
                !put_element(L, r, data, at, i + 1, j + 1))
                return NULL;
        }
        refuse_strays(L, r->name, r->cols);
        lua_pop(L, 1);
    }
    lua_pushvalue(L, table);
    refuse_strays(L, r->name, r->rows);
    lua_pop(L, 1);
    return data;
}

/* Fills in the shape; returns the Lua type of the (nested) table's first
 * element, LUA_TNIL where there is none. */
static int measure_table(lua_State *L, int table, lumat_request *r)
{
    r->rows = (int64_t)lua_rawlen(L, table);
    r->cols = r->ndim = 1;
    int type = lua_rawgeti(L, table, 1);
    if (type == LUA_TTABLE) {
        r->ndim = 2;
        r->cols = (int64_t)lua_rawlen(L, -1);
        type = lua_rawgeti(L, -1, 1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return type;
}

static gpu_matrix *from_request(lua_State *L, int table, lumat_request *r)
{
    int top = lua_gettop(L);
    gpu_complex few[FEW];
    gpu_matrix *m = push_requested(L, r);
    const void *data = push_elements(L, table, r, few);
    if (!data) {
        lua_settop(L, top);
        if (r->dtype == GPU_BOOL) {
            r->dtype = lumat_default_dtype(L);
            return from_request(L, table, r);
        }
        r->may_be_complex = 0;
        r->dtype = gpu_dtype_made_complex(r->dtype);
        return from_request(L, table, r);
    }
    lumat_try(L, gpu_upload(m, data));
    lua_settop(L, top + 1);
    return m;
}

gpu_matrix *lumat_push_from_table(lua_State *L, int index, const char *name,
                                  gpu_dtype dtype, gpu_device *device)
{
    lumat_request r = {.name = name, .dtype = dtype, .device = device};
    index = lua_absindex(L, index);
    measure_table(L, index, &r);
    return from_request(L, index, &r);
}

static int from_table(lua_State *L, int ndim)
{
    lumat_request r = {.name = ndim == 2 ? "mat" : "vec",
                       .device = lumat_option_device(L, 2, NULL)};
    int type = measure_table(L, 1, &r);
    if (ndim == 1 && r.ndim == 2)
        lumat_raise(L, "vec: element 1 is a table; matrices are made with "
                       "mat{{1, 2}, {3, 4}}");
    int is_of_matrices = ndim == 2 && r.ndim == 1 && r.rows > 0 &&
                         lua_rawgeti(L, 1, 1) == LUA_TUSERDATA &&
                         lumat_test_matrix(L, -1);
    if (is_of_matrices)
        lumat_raise(L, "mat: row 1 is a matrix: vcat(A, B) puts matrices one "
                       "above the other, vectors as rows, hcat(A, B) side by "
                       "side");
    if (ndim == 2 && r.ndim == 1 && r.rows > 0)
        lumat_raise(L,
                    "mat: row 1 is a %s; write mat{{1, 2}, {3, 4}}, or "
                    "vec{1, 2} for a vector",
                    (lua_rawgeti(L, 1, 1), lumat_kind_of(L, -1)));
    if (ndim == 2 && r.rows == 0)
        r.cols = 0;
    r.ndim = ndim;
    gpu_dtype natural = lumat_default_dtype(L);
    if (type == LUA_TBOOLEAN)
        natural = GPU_BOOL;
    r.dtype = lumat_option_dtype(L, 2, GPU_ALL_DTYPES);
    r.may_be_complex = r.dtype == GPU_ALL_DTYPES;
    r.dtype = r.may_be_complex ? natural : r.dtype;
    from_request(L, 1, &r);
    return 1;
}

static int make_mat(lua_State *L)
{
    return from_table(L, 2);
}

static int make_vec(lua_State *L)
{
    return from_table(L, 1);
}

/* --- constants ------------------------------------------------------------ */

static int filled(lua_State *L, double value, const lumat_request *r)
{
    lumat_try(L, gpu_fill(push_requested(L, r), value));
    return 1;
}

static int make_zeros(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    push_created(L, &r, gpu_create_zeros);
    return 1;
}

static int make_ones(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    return filled(L, 1, &r);
}

/* full(n, x) or full(m, n, x); full(S) is a sparse matrix made dense */
static int make_full(lua_State *L)
{
    if (lua_gettop(L) == 1) {
        const gpu_sparse *s = lumat_check_sparse(L);
        if (!s->values.storage)
            lumat_refuse_kind(L, 1);
        return lumat_push_dense(L, 1);
    }
    int at = lua_gettop(L) >= 3 && !lua_istable(L, 3) ? 3 : 2;
    gpu_complex value = {0, 0};
    lumat_take_complex(L, at, &value);
    int is_complex = lumat_test_complex(L, at) != NULL;
    lua_remove(L, at);
    lumat_request r = lumat_check_request(L, 1);
    if (!is_complex)
        return filled(L, value.re, &r);
    r.dtype = lumat_option_dtype(L, r.options, gpu_dtype_made_complex(r.dtype));
    lumat_try(L, gpu_complex_fill(push_requested(L, &r), value));
    return 1;
}

/* Ones where column - row = k. */
static int make_eye(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    if (r.ndim == 1)
        r.cols = r.rows;
    r.ndim = 2;
    gpu_matrix *m = push_requested(L, &r);
    gpu_program p;
    gpu_program_start(&p, 0);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_eq, row, col, 0);
    lumat_try(L, gpu_map("eye", &p, NULL, m));
    return 1;
}

/* --- from a function ------------------------------------------------------ */

static int make_fromfn(lua_State *L)
{
    int matrix = lua_type(L, 2) == LUA_TNUMBER;
    int function = matrix ? 3 : 2;
    for (int i = 1; i < function; i++)
        lumat_check_size(L, i);
    if (lua_isnil(L, function + 1))
        lua_settop(L, function); /* no options */
    lua_pushvalue(L, function);
    lua_remove(L, function);
    lua_insert(L, 1); /* f, sizes, options */
    lumat_request r = lumat_check_request(L, 2);
    gpu_matrix *m = push_requested(L, &r);
    if (gpu_is_dry()) { /* what Lua takes is not counted, so f is not called */
        lumat_try(L, gpu_upload(m, NULL));
        return 1;
    }
    size_t bytes = (size_t)(r.rows * r.cols) * gpu_dtype_size(r.dtype);
    void *data = lua_newuserdatauv(L, bytes, 0);
    for (int64_t i = 0; i < r.rows; i++) {
        for (int64_t j = 0; j < r.cols; j++) {
            lua_pushvalue(L, 1);
            lua_pushinteger(L, i + 1);
            if (matrix)
                lua_pushinteger(L, j + 1);
            lua_call(L, matrix ? 2 : 1, 1);
            lumat_check_whole(L, "fromfn", r.dtype);
            put(L, data, r.dtype, i * r.cols + j,
                check_element(L, "fromfn", i + 1, matrix ? j + 1 : 0));
        }
    }
    lumat_try(L, gpu_upload(m, data));
    lua_pop(L, 1);
    return 1;
}

static struct {
    uint64_t seed, call;
} generator;

/* --- sequences ------------------------------------------------------------ */

/* first + i * step, or 10 to that power, computed in f64; the last element
 * is exactly `last`. */
typedef struct sequence {
    double first, step, last;
    int64_t count;
    int powers, is_range;
} sequence;

static double element(const sequence *s, int64_t i)
{
    return i == s->count - 1 ? s->last : s->first + (double)i * s->step;
}

/* Fractions are rounded, as all are; whole numbers are to be what they say.
 * Where one of a range is too large for f32, so is another of the two
 * outermost at that end. Of evenly spaced ones none is to be there twice. */
static int fits_f32(const sequence *s)
{
    int64_t n = s->count, outer[] = {0, 1, n - 2, n - 1};
    float largest = (float)fmax(fabs(s->first), fabs(s->last));
    if (n == 0 || s->powers || s->first != floor(s->first) ||
        s->step != floor(s->step))
        return 1;
    if (!s->is_range)
        return n == 1 || fabs(s->step) >= largest - nextafterf(largest, 0);
    for (int i = 0; i < 4; i++)
        if (outer[i] >= 0 && outer[i] < n &&
            !lumat_holds(GPU_F32, element(s, outer[i])))
            return 0;
    return 1;
}

/* A whole number without a fraction, where an integer can be it. */
static const char *push_whole(lua_State *L, double x)
{
    if (fabs(x) < 0x1p63)
        lua_pushinteger(L, (lua_Integer)x);
    else
        lua_pushnumber(L, x);
    return lua_tostring(L, -1);
}

static int raise_large(lua_State *L, const sequence *s)
{
    const char *first = push_whole(L, s->first);
    const char *last = push_whole(L, s->last);
    return lumat_raise_inexact(L, s->is_range ? "range" : "linspace",
                               lua_pushfstring(L, "%s..%s", first, last),
                               GPU_F32);
}

static int push_sequence(lua_State *L, const sequence *s, int options)
{
    lumat_request r = {.ndim = 1, .rows = s->count, .cols = 1};
    r.dtype = lumat_option_dtype(L, options, lumat_default_dtype(L));
    if (r.dtype == GPU_F32 && !fits_f32(s))
        return raise_large(L, s);
    r.device = lumat_option_device(L, options, NULL);
    gpu_matrix *m = push_requested(L, &r);
    gpu_program p;
    gpu_program_start(&p, 0);
    int first = gpu_program_constant(&p, s->first);
    int step = gpu_program_constant(&p, s->step);
    int ten = gpu_program_constant(&p, 10);
    int value = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    value = gpu_program_add(&p, GPU_OP_mul, value, step, 0);
    value = gpu_program_add(&p, GPU_OP_add, first, value, 0);
    if (s->powers)
        gpu_program_add(&p, GPU_OP_pow, ten, value, 0);
    lumat_try(L, gpu_map("linspace", &p, NULL, m));
    if (s->count > 1)
        lumat_try(L, gpu_set(m, s->count - 1, 0,
                             s->powers ? pow(10, s->last) : s->last));
    return 1;
}

static double check_finite(lua_State *L, int arg)
{
    double x = lumat_check_number(L, arg);
    if (x - x != 0)
        lumat_raise_argument(L, arg, "is %s, expected a finite number",
                             lumat_push_brief(L, arg));
    return x;
}

static int make_range(lua_State *L)
{
    double first = check_finite(L, 1), last = check_finite(L, 2);
    int options = lua_istable(L, 3) ? 3 : 4;
    int has_step = options == 4 && !lua_isnoneornil(L, 3);
    double step = has_step ? check_finite(L, 3) : 1;
    if (step == 0)
        lumat_raise_argument(L, 3, "is 0, which leads nowhere");
    /* so that range(0, 1, 0.1) has its 11 elements */
    double count = floor((last - first) / step * (1 + 1e-15) + 1e-10) + 1;
    if (count >= 0x1p53)
        lumat_raise_argument(L, 3, "is too small: there were %f elements",
                             count);
    sequence s = {first, step, 0, count > 0 ? (int64_t)count : 0, 0, 1};
    s.last = first + (double)(s.count - 1) * step;
    return push_sequence(L, &s, options);
}

static int spaced(lua_State *L, int powers)
{
    double first = check_finite(L, 1), last = check_finite(L, 2);
    int64_t n = lumat_check_size(L, 3);
    double step = n > 1 ? (last - first) / (double)(n - 1) : 0;
    sequence s = {first, step, last, n, powers, 0};
    return push_sequence(L, &s, 4);
}

static int make_linspace(lua_State *L)
{
    return spaced(L, 0);
}

static int make_logspace(lua_State *L)
{
    return spaced(L, 1);
}

/* --- random numbers ------------------------------------------------------- */

gpu_random lumat_next_random(lua_State *L, int options)
{
    gpu_random r = {.seed = generator.seed};
    if (lua_istable(L, options) &&
        lua_getfield(L, options, "seed") != LUA_TNIL) {
        int exact;
        r.seed = (uint64_t)lua_tointegerx(L, -1, &exact);
        if (!exact)
            lumat_raise(L, "seed: needs a whole number, not %s",
                        lumat_push_brief(L, -1));
        lua_pop(L, 1);
    } else {
        r.call = generator.call;
        generator.call += !gpu_is_dry();
    }
    return r;
}

static gpu_random next_random(lua_State *L, int options, gpu_random_kind kind)
{
    gpu_random r = lumat_next_random(L, options);
    r.kind = kind;
    return r;
}

static int push_random(lua_State *L, const lumat_request *r,
                       const gpu_random *g)
{
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, gpu_create_random(m, r->device, r->dtype, r->ndim, r->rows,
                                   r->cols, g));
    lumat_account(L, m);
    return 1;
}

static int make_rand(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    gpu_random g = next_random(L, r.options, GPU_UNIFORM);
    g.low = lumat_option_number(L, r.options, "low", 0);
    g.high = lumat_option_number(L, r.options, "high", 1);
    return push_random(L, &r, &g);
}

static int make_randn(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    gpu_random g = next_random(L, r.options, GPU_NORMAL);
    g.low = lumat_option_number(L, r.options, "mean", 0);
    g.high = lumat_option_number(L, r.options, "std", 1);
    return push_random(L, &r, &g);
}

static int make_randint(lua_State *L)
{
    lua_Integer low = lumat_check_integer(L, 1);
    lua_Integer high = lumat_check_integer(L, 2);
    lumat_request r = lumat_check_request(L, 3);
    if (r.dtype == GPU_BOOL && (low < 0 || high > 1))
        lumat_raise(L, "randint: a bool is 0 or 1, not %I..%I",
                    (LUAI_UACINT)low, (LUAI_UACINT)high);
    gpu_random g = next_random(L, r.options, GPU_INTEGER);
    g.low = (double)low;
    g.high = (double)high;
    return push_random(L, &r, &g);
}

/* The order that sorts random numbers: the same on every device. */
static int make_randperm(lua_State *L)
{
    lumat_request r = {.ndim = 1, .rows = lumat_check_size(L, 1), .cols = 1};
    r.device = lumat_option_device(L, 2, NULL);
    gpu_dtype natural = r.rows > 1 << 24 ? GPU_F64 : lumat_default_dtype(L);
    gpu_dtype dtype = lumat_option_dtype(L, 2, natural);
    if (r.rows > 0 && !(lumat_holds(dtype, (double)r.rows) &&
                        lumat_holds(dtype, (double)r.rows - 1)))
        return lumat_raise_inexact(
            L, "randperm", lua_pushfstring(L, "1..%I", (LUAI_UACINT)r.rows),
            dtype);
    r.dtype = GPU_F64;
    gpu_random g = next_random(L, 2, GPU_UNIFORM);
    g.high = 1;
    gpu_matrix *keys = push_requested(L, &r);
    lumat_try(L, gpu_fill_random(keys, &g));
    gpu_matrix *order = lumat_new_matrix(L);
    lumat_try(L, gpu_sort(keys, 1, 0, NULL, order));
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L,
              gpu_create(out, gpu_matrix_device(order), dtype, 1, r.rows, 1));
    lumat_count_from_one(L, "randperm", order, out);
    lumat_account(L, out);
    return 1;
}

void lumat_random_state(uint64_t *seed, uint64_t *call)
{
    *seed = generator.seed;
    *call = generator.call;
}

static int set_seed(lua_State *L)
{
    lua_Integer seed = lumat_check_integer(L, 1);
    lua_Integer call = lua_isnoneornil(L, 2) ? 0 : lumat_check_size(L, 2);
    if (gpu_is_dry())
        return 0;
    generator.seed = (uint64_t)seed;
    generator.call = (uint64_t)call;
    return 0;
}

/* --- the functions -------------------------------------------------------- */

#define BEGINS \
    "Every session begins at the same seed: seed(os.time()) begins elsewhere."
/* Those of the random functions that are not as elsewhere. */
static const lumat_option random_options[] = {
    {"dtype", "\"f32\"|\"f64\"|\"c64\"|\"c128\"", "what default_dtype says",
     "element type; complex numbers are uniform in a square, or normal with "
     "that variance"},

    {"low", "number", "0", "the least number"},
    {"high", "number", "1", "the bound above, not reached"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"mat", make_mat, 0, "elements: table {dtype, device}", "matrix",
     "A matrix from nested tables, row by row.", "mat{{1, 2}, {3, 4}}",
     "{{1, 2}, {3, 4}}", .group = "making",
     .usage = "mat{{1, 2}, {3, 4}} or mat(table [, {dtype=, device=}])"},
    {"vec", make_vec, 0, "elements: table {dtype, device}", "matrix",
     "A vector from a table.", "vec{1, 2, 3}", "{1, 2, 3}", .group = "making",
     .usage = "vec{1, 2, 3} or vec(table [, {dtype=, device=}])"},
    {"zeros", make_zeros, 0,
     "m: size, n: size {dtype, device} or n: size {dtype, device}", "matrix",
     "A matrix (or vector) of zeros.", "zeros(2, 3)", "{{0, 0, 0}, {0, 0, 0}}",
     .group = "constants"},
    {"ones", make_ones, 0,
     "m: size, n: size {dtype, device} or n: size {dtype, device}", "matrix",
     "A matrix (or vector) of ones.", "ones(2)", "{1, 1}",
     .group = "constants"},
    {"full", make_full, 0,
     "m: size, n: size, x: scalar|boolean {dtype, device} or n: size, x: "
     "scalar|boolean {dtype, device} or S: sparse",
     "matrix",
     "A matrix (or vector) with every element x; or the sparse matrix S made "
     "dense.",
     "full(2, 2, 7)", "{{7, 7}, {7, 7}}", .group = "constants sparse"},
    {"eye", make_eye, 0,
     "n: size {dtype, device} or m: size, n: size {dtype, device}", "matrix",
     "Ones on the diagonal, zeros elsewhere.", "eye(2)", "{{1, 0}, {0, 1}}",
     .group = "constants"},
    {"fromfn", make_fromfn, 0,
     "m: size, n: size, f: function {dtype, device} or n: size, f: function "
     "{dtype, device}",
     "matrix", "Calls f(i, j) (or f(i)) for each place.",
     "fromfn(2, 2, function(i, j) return 10 * i + j end)",
     "{{11, 12}, {21, 22}}", .group = "making mapping"},
    {"range", make_range, 0,
     "first: number, last: number [, step: number {dtype, device}]", "matrix",
     "first, first + step … up to and including last.", "range(1, 7, 2)",
     "{1, 3, 5, 7}", .group = "sequences",
     .usage = "range(first, last [, step [, {dtype=, device=}]])"},
    {"linspace", make_linspace, 0,
     "first: number, last: number, count: size {dtype, device}", "matrix",
     "count evenly spaced numbers, both ends included.", "linspace(0, 1, 5)",
     "{0, 0.25, 0.5, 0.75, 1}", .group = "sequences"},
    {"logspace", make_logspace, 0,
     "first: number, last: number, count: size {dtype, device}", "matrix",
     "10^first … 10^last in count equal ratios.", "logspace(0, 2, 3)",
     "{1, 10, 100}", .group = "sequences"},
    {"rand", make_rand, 0,
     "m: size, n: size {seed, low, high, dtype, device} or n: size {seed, low, "
     "high, dtype, device}",
     "matrix",
     "Uniform random numbers in [0, 1), or low..high. The same seed gives the "
     "same numbers on every device (Philox4x32-10). " BEGINS,
     "rand(3, {seed=1}) == rand(3, {seed=1})", "true", .group = "random",
     .options = random_options},
    {"randn", make_randn, 0,
     "m: size, n: size {mean, std, seed, dtype, device} or n: size {mean, std, "
     "seed, dtype, device}",
     "matrix", "Normal random numbers. " BEGINS,
     "math.abs(mean(randn(10000, {seed=1}))) < 0.05", "true", .group = "random",
     .options = random_options},
    {"randint", make_randint, 0,
     "low: integer, high: integer, m: size, n: size {seed, dtype, device} or "
     "low: integer, high: integer, m: size {seed, dtype, device}",
     "matrix", "Random integers from low to high, both included. " BEGINS,
     "max(randint(1, 6, 1000, {seed=1}))", "6", .group = "random"},
    {"randperm", make_randperm, 0, "n: size {seed, dtype, device}", "matrix",
     "1 … n in random order. " BEGINS, "sum(randperm(10))", "55",
     .group = "random"},
    {"seed", set_seed, 0, "n: integer [, drawn: size]", "nothing",
     "Starts the random numbers of rand and all that draws like it anew; with "
     "a "
     "second number, as if so many matrices had been drawn since. "
     "seed(os.time()) makes each session another.",
     "(function() seed(5) local a = rand(2) seed(5) return a == rand(2) end)()",
     "true", .group = "random"},
    {0}};

void lumat_open_make(lua_State *L)
{
    lumat_register(L, functions);
    lua_pushcfunction(L, refuse_strays_of_list);
    lumat_set_private(L, "refuse_strays");
}
