/* Matrices as Lua values: the userdata, its bytes and the collector, and the
 * bridge from gpu/'s status to Lua's errors. */
#include "cancellation.h"
#include "heap.h"
#include "value.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

/* Lua sees a few dozen bytes of a matrix, whatever it holds on its device. So
 * allocations add their bytes to a debt, and with enough of it the collector
 * does a step; above a soft limit it does everything. Enough is so many results
 * of the size that was last made, and their memory comes back while a cache
 * still has it. With two of them the last result, which a variable holds until
 * it gets the next, would still be there at the next step but one, and what two
 * steps have seen is old: it stays until everything is looked at. For the same
 * reason what waits counts once it has bytes: an operand of a longer expression
 * would be old before that is worked out, and be taken for needed. */
#define RESULTS 4
#define LEAST_DEBT ((size_t)512 << 10)
#define MOST_DEBT ((size_t)256 << 20)
#define SOFT_LIMIT ((size_t)64 << 20)
#define STORAGE_OVERHEAD 64

/* The metatable's place in the registry's array, which is found fastest. There
 * is one state. */
static int metatable_place;

/* What the userdata of a matrix holds: by the tag, the address of
 * metatable_place, it is told from others of this size, which is faster than by
 * its metatable. */
typedef struct matrix_value {
    gpu_matrix matrix;
    const void *tag;
} matrix_value;

static struct {
    int postponed; /* is there anything to be freed later? */
    size_t debt, limit;
    size_t result, enough;    /* bytes of the last one; debt, by that */
    const gpu_device *device; /* of that account */
    double collecting;        /* seconds spent in full collections */
    double started;
} memory;

/* --- errors --------------------------------------------------------------- */

/* Pushes "file:line: " of the Lua code that is at work. What Lua has for "2" *
 * x, a function in C, stands between and has no line. */
static void push_where(lua_State *L)
{
    lua_Debug ar;
    int is_between = lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sn", &ar) &&
                     *ar.what == 'C' && strcmp(ar.namewhat, "metamethod") == 0;
    luaL_where(L, is_between ? 2 : 1);
}

int lumat_raise(lua_State *L, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    push_where(L);
    lua_pushvfstring(L, format, args);
    va_end(args);
    lua_concat(L, 2);
    return lua_error(L);
}

/* The last failure's kind and text, for the exit code. */
static void remember(lua_State *L, gpu_status status)
{
    gpu_pause_trace(0);
    lua_pushinteger(L, status);
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.status");
    lua_pushstring(L, gpu_message());
    lua_setfield(L, LUA_REGISTRYINDEX, "lumat.message");
}

void (*lumat_after_success)(lua_State *L);

void lumat_try(lua_State *L, gpu_status status)
{
    if (status == GPU_OK) {
        if (lumat_after_success != NULL && !gpu_is_dry())
            lumat_after_success(L);
        return;
    }
    remember(L, status);
    if (status == GPU_INTERRUPTED)
        lumat_raise_interrupted(L);
    if (status == GPU_INCOMPLETE)
        lumat_raise_incomplete(L);
    lumat_raise(L, "%s", gpu_message());
}

/* --- the userdata --------------------------------------------------------- */

static void end_matrix(void *data)
{
    matrix_value *v = data;
    gpu_release(&v->matrix);
}

/* No finaliser: one costs more than a small matrix's elements. */
gpu_matrix *lumat_new_matrix(lua_State *L)
{
    matrix_value *v = lumat_new_ending(L, sizeof *v, end_matrix);
    v->tag = &metatable_place;
    lua_rawgeti(L, LUA_REGISTRYINDEX, metatable_place);
    lua_setmetatable(L, -2);
    return &v->matrix;
}

gpu_matrix *lumat_test_matrix(lua_State *L, int index)
{
    matrix_value *v = lua_touserdata(L, index);
    if (!v || lua_rawlen(L, index) != sizeof *v || v->tag != &metatable_place)
        return NULL;
    return &v->matrix;
}

void (*lumat_before_refusing)(lua_State *L, int arg);

gpu_matrix *lumat_check_matrix(lua_State *L, int arg)
{
    gpu_matrix *m = lumat_test_matrix(L, arg);
    if (m && m->storage)
        return m;
    lumat_before_refusing(L, arg);
    if (!m && lumat_look_at_sparse(L, arg))
        luaL_argerror(L, arg,
                      "a sparse matrix cannot be used here: full(S) "
                      "is dense");
    if (!m)
        luaL_typeerror(L, arg, "matrix");
    luaL_argerror(L, arg, "the matrix has been freed");
    return m;
}

static void free_at(lua_State *L, int index)
{
    gpu_matrix *m = lumat_test_matrix(L, index);
    if (m) {
        gpu_settle_readers(m);
        gpu_release(m);
    }
    if (!m && lumat_look_at_sparse(L, index))
        lumat_release_sparse(L, index);
}

/* Keeps the value for free_postponed, in a table of the registry. */
static void postpone(lua_State *L, int index)
{
    lua_pushvalue(L, index);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &memory.postponed) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &memory.postponed);
    }
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
    memory.postponed = 1;
}

static void free_postponed(lua_State *L)
{
    if (!memory.postponed || gpu_is_collecting() || !lua_checkstack(L, 4))
        return;
    memory.postponed = 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &memory.postponed);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &memory.postponed);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0; i--) {
        lua_rawgeti(L, -1, i);
        free_at(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void lumat_free_value(lua_State *L, int index)
{
    if (gpu_is_dry())
        return;
    if (gpu_is_collecting())
        postpone(L, index);
    else
        free_at(L, index);
}

/* At the end of its scope. */
static int close_matrix(lua_State *L)
{
    lumat_free_value(L, 1);
    return 0;
}

/* --- the collector -------------------------------------------------------- */

static int collect_all(void *data)
{
    lua_State *L = data;
    double start = gpu_now();
    lua_gc(L, LUA_GCCOLLECT);
    if (gpu_is_dry())
        return 1;
    lua_gc(L, LUA_GCCOLLECT); /* what finalizers let go */
    memory.collecting += gpu_now() - start;
    memory.debt = 0;
    return 1;
}

/* Full collections may take a twentieth of the time there has been. */
static int may_collect(void)
{
    double elapsed = gpu_now() - memory.started;
    return memory.collecting <= 0.01 + 0.05 * elapsed;
}

/* Of the Lua function that runs, as messages begin with it. */
static int line_of(void *data, const char **source)
{
    lua_State *L = data;
    lua_Debug ar;
    *source = NULL;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0)
            continue;
        *source = gpu_keep_name(ar.short_src);
        return ar.currentline;
    }
    return 0;
}

static void keep_below_limit(lua_State *L, const gpu_device *d)
{
    if (gpu_device_live(d) <= memory.limit || !may_collect())
        return;
    collect_all(L);
    if (gpu_device_live(d) > memory.limit / 4 * 3)
        memory.limit += memory.limit / 2;
}

/* The debt that makes the collector do a step, after an allocation of so many
 * bytes. */
static size_t enough_debt(size_t bytes)
{
    if (bytes >= MOST_DEBT / RESULTS)
        return MOST_DEBT;
    return bytes > LEAST_DEBT / RESULTS ? bytes * RESULTS : LEAST_DEBT;
}

/* One young collection, whatever Lua owes. */
static void pay_debt(lua_State *L)
{
    memory.debt = 0;
    lua_gc(L, LUA_GCSTEP, 0);
    keep_below_limit(L, memory.device);
}

/* Bytes of results, some of which nobody was told of when they were made. */
static void owe(size_t bytes)
{
    size_t settled = gpu_take_settled_bytes();
    size_t most = bytes > settled ? bytes : settled;
    memory.debt += bytes + settled;
    if (most == 0)
        return;
    memory.result = most;
    memory.enough = enough_debt(most);
}

/* An expression's operands that wait would be made old by a full collection in
 * its midst, and be worked out for nothing: it is put off until that is done,
 * or there is one result more. */
void lumat_account(lua_State *L, const gpu_matrix *m)
{
    if (gpu_is_dry())
        return;
    free_postponed(L);
    const char *overflow = gpu_take_overflow();
    if (overflow)
        lumat_warn(L, "memory", "%s", overflow);
    int waits = gpu_is_pending(m);
    owe(waits ? 0 : gpu_storage_bytes(m));
    memory.debt += STORAGE_OVERHEAD;
    memory.device = gpu_matrix_device(m);
    if (memory.debt >= memory.enough + (waits ? memory.result : 0))
        pay_debt(L);
}

void lumat_account_bytes(lua_State *L, size_t bytes)
{
    if (gpu_is_dry())
        return;
    free_postponed(L);
    owe(bytes);
    if (memory.debt >= memory.enough)
        pay_debt(L);
}

/* Before what waits is worked out; not where the user has stopped it, which in
 * a dry run we have. */
static void collect_first(void *data, gpu_garbage which)
{
    lua_State *L = data;
    if (gpu_is_dry()) {
        if (which == GPU_GARBAGE_ALL)
            lua_gc(L, LUA_GCCOLLECT);
        else if (which == GPU_GARBAGE_YOUNGEST)
            lua_gc(L, LUA_GCSTEP, 0);
        return;
    }
    owe(0);
    if (!lua_gc(L, LUA_GCISRUNNING))
        return;
    if (which == GPU_GARBAGE_ALL && may_collect())
        collect_all(L);
    else if (memory.debt >= memory.enough)
        pay_debt(L);
    else if (which == GPU_GARBAGE_YOUNGEST)
        lua_gc(L, LUA_GCSTEP, 0);
}

/* --- shapes and suggestions ----------------------------------------------- */

gpu_matrix lumat_as_rows(const gpu_matrix *m)
{
    gpu_matrix row = *m;
    if (m->ndim == 2)
        return row;
    row.ndim = 2;
    row.rows = 1;
    row.cols = m->rows;
    row.col_stride = m->row_stride;
    return row;
}

void lumat_push_shape(lua_State *L, const gpu_matrix *m)
{
    lua_pushstring(L, gpu_shape_text(m));
}

/* Of the one state there is: every constructor asks for it. */
static gpu_dtype default_dtype;

gpu_dtype lumat_default_dtype(lua_State *L)
{
    (void)L;
    return default_dtype;
}

void lumat_set_default_dtype(gpu_dtype type)
{
    default_dtype = type;
}

/* --- opening -------------------------------------------------------------- */

void lumat_open_matrix(lua_State *L)
{
    luaL_newmetatable(L, "lumat.matrix");
    lua_pushvalue(L, -1);
    metatable_place = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, close_matrix);
    lua_setfield(L, -2, "__close");
    lua_pushliteral(L, "matrix");
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "matrix");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    memory.limit = SOFT_LIMIT;
    memory.enough = LEAST_DEBT;
    memory.started = gpu_now();
    lua_gc(L, LUA_GCGEN, 0, 0);
    gpu_on_memory_short(collect_all, L);
    gpu_on_settling(collect_first, L);
    gpu_on_recording(line_of, L);
}
