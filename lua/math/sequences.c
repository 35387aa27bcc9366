/* Constructors: sequences and random numbers. */
#include "constructors.h"
#include "function.h"
#include "value.h"

#include <math.h>

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
    gpu_matrix *m = lumat_push_requested(L, &r);
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
    double x = luaL_checknumber(L, arg);
    luaL_argcheck(L, x - x == 0, arg, "must be finite");
    return x;
}

static int make_range(lua_State *L)
{
    double first = check_finite(L, 1), last = check_finite(L, 2);
    int options = lua_istable(L, 3) ? 3 : 4;
    int has_step = options == 4 && !lua_isnoneornil(L, 3);
    double step = has_step ? check_finite(L, 3) : 1;
    luaL_argcheck(L, step != 0, 3, "a step cannot be 0");
    /* so that range(0, 1, 0.1) has its 11 elements */
    double count = floor((last - first) / step * (1 + 1e-15) + 1e-10) + 1;
    luaL_argcheck(L, count < 0x1p53, 3, "the step is too small");
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

static gpu_random next_random(lua_State *L, int options, gpu_random_kind kind)
{
    gpu_random r = {.kind = kind, .seed = generator.seed};
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

static int make_rand(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    gpu_random g = next_random(L, r.options, GPU_UNIFORM);
    g.low = lumat_option_number(L, r.options, "low", 0);
    g.high = lumat_option_number(L, r.options, "high", 1);
    lumat_try(L, gpu_fill_random(lumat_push_requested(L, &r), &g));
    return 1;
}

static int make_randn(lua_State *L)
{
    lumat_request r = lumat_check_request(L, 1);
    gpu_random g = next_random(L, r.options, GPU_NORMAL);
    g.low = lumat_option_number(L, r.options, "mean", 0);
    g.high = lumat_option_number(L, r.options, "std", 1);
    lumat_try(L, gpu_fill_random(lumat_push_requested(L, &r), &g));
    return 1;
}

static int make_randint(lua_State *L)
{
    lua_Integer low = luaL_checkinteger(L, 1), high = luaL_checkinteger(L, 2);
    lumat_request r = lumat_check_request(L, 3);
    if (r.dtype == GPU_BOOL && (low < 0 || high > 1))
        lumat_raise(L, "randint: a bool is 0 or 1, not %I..%I",
                    (LUAI_UACINT)low, (LUAI_UACINT)high);
    gpu_random g = next_random(L, r.options, GPU_INTEGER);
    g.low = (double)low;
    g.high = (double)high;
    lumat_try(L, gpu_fill_random(lumat_push_requested(L, &r), &g));
    return 1;
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
    gpu_matrix *keys = lumat_push_requested(L, &r);
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
    lua_Integer seed = luaL_checkinteger(L, 1), call = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, call >= 0, 2, "is how many were drawn, 0 or more");
    if (gpu_is_dry())
        return 0;
    generator.seed = (uint64_t)seed;
    generator.call = (uint64_t)call;
    return 0;
}

#define BEGINS \
    "Every session begins at the same seed: seed(os.time()) begins elsewhere."
/* Those of the random functions that are not as elsewhere. */
static const lumat_option random_options[] = {
    {"dtype", "\"f32\"|\"f64\"", "what default_dtype says",
     "element type: \"f32\" or \"f64\""},

    {"low", "number", "0", "the least number"},
    {"high", "number", "1", "the bound above, not reached"},

    {"mean", "number", "0", "the mean"},
    {"std", "number", "1", "the standard deviation"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
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
     "low: integer, high: integer, m: size [, n: size] {seed, dtype, device}",
     "matrix", "Random integers from low to high, both included. " BEGINS,
     "max(randint(1, 6, 1000, {seed=1}))", "6", .group = "random"},
    {"randperm", make_randperm, 0, "n: size {seed, dtype, device}", "matrix",
     "1 … n in random order. " BEGINS, "sum(randperm(10))", "55",
     .group = "random"},
    {"seed", set_seed, 0, "n: integer [, drawn: integer]", "nothing",
     "Starts the random numbers of rand, randn, randint and randperm anew; "
     "with a second number, as if so many matrices had been drawn since. "
     "seed(os.time()) makes each session another.",
     "(function() seed(5) local a = rand(2) seed(5) return a == rand(2) end)()",
     "true", .group = "random"},
    {0}};

void lumat_open_generate(lua_State *L)
{
    lumat_register(L, functions);
}
