/* A function called in a dry run: what its operations would take, while
 * everything of the user's stays as it is. Tables and upvalues that can be
 * reached from the globals and from the function are noted before, and put
 * back afterwards, which is done in C: Ctrl-C does not get into it. The
 * collector rests but for what the dry run wants to know of memory, so no
 * finaliser of the user's runs but for what the function made. */
#include "fence.h"
#include "measure_parts.h"
#include "value.h"

#include "lualib.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is told -----------------------------------------------------------
 */

/* An operand, which is not retained: if it is real it stays, and a dry one is
 * known by its number, which does not come back; 0: it is real. */
typedef struct operand {
    gpu_matrix m;
    uint32_t number;
} operand;

/* c = a b, and the event of the product. */
typedef struct made {
    operand a, b, c;
    int event;
} made;

static struct {
    gpu_event *events;
    made *products;
    int event_count, product_count, is_short;
    gpu_dry_watch watch;
} told;

/* Room for one more, in steps of powers of two. Returns 0 when there is none.
 */
static int grow(void **list, int count, size_t size)
{
    enum { FIRST = 64, MOST = 1 << 22 };
    if (count != 0 && (count < FIRST || (count & (count - 1)) != 0))
        return 1;
    size_t room = count < FIRST ? FIRST : 2 * (size_t)count;
    void *more = count < MOST ? realloc(*list, room * size) : NULL;
    if (!more) {
        told.is_short = 1;
        return 0;
    }
    *list = more;
    return 1;
}

static void note_event(const gpu_event *e, void *data)
{
    void *list = told.events;
    (void)data;
    if (e->status != GPU_OK ||
        !grow(&list, told.event_count, sizeof *told.events))
        return;
    told.events = list;
    told.events[told.event_count++] = *e;
}

static operand operand_of(const gpu_matrix *m)
{
    return (operand){*m, gpu_dry_number(m)};
}

static void note_product(const gpu_matrix *a, const gpu_matrix *b,
                         const gpu_matrix *c, void *data)
{
    void *list = told.products;
    (void)data;
    if (told.event_count == 0 ||
        !grow(&list, told.product_count, sizeof *told.products))
        return;
    told.products = list;
    int last = told.event_count - 1;
    if (strcmp(told.events[last].operation, "matmul") != 0)
        return; /* of nothing: none was needed */
    told.events[last].ndim = c->ndim;
    told.products[told.product_count++] =
        (made){operand_of(a), operand_of(b), operand_of(c), last};
}

static void forget_told(void)
{
    free(told.events);
    free(told.products);
    memset(&told, 0, sizeof told);
}

/* --- everything of the user's ------------------------------------------------
 */

/* Stack places of the call: the function; what has been seen; the list of it;
 * what each was like; metatables; replaced functions; name and matrix, one
 * after the other. */
enum { CALLED = 1, SEEN, LIST, BEFORE, METAS, REPLACED, NAMES, PLACES = NAMES };

static int is_walked(lua_State *L, int index)
{
    lua_Debug ar;
    if (lua_istable(L, index))
        return 1;
    if (!lua_isfunction(L, index) || lua_iscfunction(L, index))
        return 0;
    lua_pushvalue(L, index);
    lua_getinfo(L, ">S", &ar);
    ar.currentline = 1;
    return lumat_is_users(&ar);
}

static lua_Integer list_length;

/* Has the value on top looked into, once; pops it. */
static void visit(lua_State *L)
{
    if (!is_walked(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    lua_pushvalue(L, -1);
    if (lua_rawget(L, SEEN) == LUA_TNIL) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, 1);
        lua_rawset(L, SEEN);
        lua_pushvalue(L, -2);
        lua_rawseti(L, LIST, ++list_length);
    }
    lua_pop(L, 2);
}

/* A matrix on top has that name, for hints. */
static void note_name(lua_State *L, const char *name)
{
    enum { MOST = 20000 };
    lua_Integer n = (lua_Integer)lua_rawlen(L, NAMES);
    if (n >= MOST || !lumat_test_matrix(L, -1))
        return;
    lua_pushstring(L, name);
    lua_rawseti(L, NAMES, n + 1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, NAMES, n + 2);
}

/* Pushes what stands in for the function on top, and returns 1; or 0. */
static int push_replacement(lua_State *L)
{
    if (!lua_iscfunction(L, -1))
        return 0;
    lua_pushvalue(L, -1);
    if (lua_rawget(L, REPLACED) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    return 0;
}

/* Puts what stands in for functions into the table on top. */
static void replace_in_table(lua_State *L)
{
    int table = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (push_replacement(L)) {
            lua_pushvalue(L, -3);
            lua_insert(L, -2);
            lua_rawset(L, table);
        }
        lua_pop(L, 1);
    }
}

/* Notes the table on top, at place i of the list; what is noted is whole. */
static void note_table(lua_State *L, lua_Integer i)
{
    enum { MOST = 1 << 28 };
    int table = lua_gettop(L);
    lua_Unsigned length = lua_rawlen(L, table);
    lua_createtable(L, length < MOST ? (int)length : 0, 0);
    lua_pushnil(L);
    while (lua_next(L, table)) { /* table, copy, key, value */
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, table + 1);
        if (lua_type(L, -2) == LUA_TSTRING)
            note_name(L, lua_tostring(L, -2));
        visit(L);
        lua_pushvalue(L, -1);
        visit(L);
    }
    if (lua_getmetatable(L, table)) {
        lua_pushvalue(L, -1);
        lua_rawseti(L, METAS, i);
        visit(L);
    }
    lua_rawseti(L, BEFORE, i);
    replace_in_table(L);
}

static void note_function(lua_State *L, lua_Integer i)
{
    const char *name;
    int function = lua_gettop(L);
    lua_newtable(L);
    for (int n = 1; (name = lua_getupvalue(L, function, n)) != NULL; n++) {
        note_name(L, name);
        lua_pushvalue(L, -1);
        lua_rawseti(L, function + 1, n);
        visit(L);
    }
    lua_rawseti(L, BEFORE, i);
    for (int n = 1; lua_getupvalue(L, function, n) != NULL; n++) {
        if (push_replacement(L))
            lua_setupvalue(L, function, n);
        lua_pop(L, 1);
    }
}

static void note_all(lua_State *L)
{
    for (lua_Integer i = 1; lua_rawgeti(L, LIST, i) != LUA_TNIL; i++) {
        if (lua_istable(L, -1))
            note_table(L, i);
        else
            note_function(L, i);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Is the key on top of the table that of a file of the library, loaded for
 * good? Functions of it hold on to what they have loaded: there must not be
 * two. */
static int is_kept(lua_State *L, int table)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    int is_loaded = lua_rawequal(L, -1, table);
    lua_pop(L, 1);
    return is_loaded && lua_type(L, -1) == LUA_TSTRING &&
           strncmp(lua_tostring(L, -1), "lumat.", 6) == 0;
}

/* The table on top is as its copy, below it, says. */
static void restore_table(lua_State *L, lua_Integer i)
{
    int table = lua_gettop(L), copy = table - 1;
    lua_pushnil(L);
    while (lua_next(L, table)) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        int is_new = lua_rawget(L, copy) == LUA_TNIL;
        lua_pop(L, 1);
        if (is_new && !is_kept(L, table)) {
            lua_pushvalue(L, -1);
            lua_pushnil(L);
            lua_rawset(L, table);
        }
    }
    lua_pushnil(L);
    while (lua_next(L, copy)) {
        lua_pushvalue(L, -2);
        lua_rawget(L, table);
        if (!lua_rawequal(L, -1, -2)) {
            lua_pushvalue(L, -3);
            lua_pushvalue(L, -3);
            lua_rawset(L, table);
        }
        lua_pop(L, 2);
    }
    lua_rawgeti(L, METAS, i);
    lua_setmetatable(L, table);
}

static void restore_function(lua_State *L)
{
    int function = lua_gettop(L), copy = function - 1;
    for (int n = 1; lua_getupvalue(L, function, n) != NULL; n++) {
        lua_pop(L, 1);
        lua_rawgeti(L, copy, n);
        lua_setupvalue(L, function, n);
    }
}

static void restore_all(lua_State *L)
{
    int top = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, BEFORE, i) != LUA_TNIL; i++) {
        lua_rawgeti(L, LIST, i);
        if (lua_istable(L, -1))
            restore_table(L, i);
        else
            restore_function(L);
        lua_settop(L, top);
    }
    lua_settop(L, top);
}

/* --- what stands in for Lua's own
 * --------------------------------------------- */

static int do_nothing(lua_State *L)
{
    lua_pushinteger(L, 0);
    return 1;
}

/* io.write and f:write give the file. */
static int write_nothing(lua_State *L)
{
    if (!luaL_testudata(L, 1, LUA_FILEHANDLE))
        lua_getfield(L, LUA_REGISTRYINDEX, "_IO_output");
    else
        lua_settop(L, 1);
    return 1;
}

static int refuse(lua_State *L)
{
    lumat_refuse_dry(L, lua_tostring(L, lua_upvalueindex(1)));
    return 0;
}

/* Unknown numbers are userdata to Lua. */
static int get_type(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushstring(L, lumat_is_unknown(L, 1) ? "number" : luaL_typename(L, 1));
    return 1;
}

/* Pushes one of the globals that were there at first, or of their members. */
static void push_base(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.environment");
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

static void replace_base(lua_State *L, const char *name, lua_CFunction f)
{
    push_base(L, name);
    lua_pushcfunction(L, f);
    lua_rawset(L, REPLACED);
}

static int is_listed(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* Files of the table on top and what else the system does are out of reach,
 * but for what only looks; what writes writes nothing. */
static void refuse_members(lua_State *L)
{
    static const char *const looks[] = {"time",   "clock", "date", "difftime",
                                        "getenv", "type",  NULL};
    static const char *const writes[] = {"write", "flush", "setvbuf", NULL};
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        const char *name =
            lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        if (!lua_iscfunction(L, -1) || is_listed(looks, name) ||
            strncmp(name, "__", 2) == 0) {
            lua_pop(L, 1);
            continue;
        }
        lua_pushstring(L, name);
        lua_pushcclosure(L, is_listed(writes, name) ? write_nothing : refuse,
                         1);
        lua_rawset(L, REPLACED);
    }
    lua_pop(L, 1);
}

/* Pushes the methods of files. */
static void push_file_methods(lua_State *L)
{
    luaL_getmetatable(L, LUA_FILEHANDLE);
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
}

/* Functions of numbers take unknown ones. */
static void replace_math(lua_State *L)
{
    push_base(L, "tonumber");
    lumat_push_over_unknown(L, -1);
    lua_rawset(L, REPLACED);
    push_base(L, "math");
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (!lua_iscfunction(L, -1)) {
            lua_pop(L, 1);
            continue;
        }
        lumat_push_over_unknown(L, -1);
        lua_rawset(L, REPLACED);
    }
    lua_pop(L, 1);
}

static void see(lua_State *L)
{
    if (lua_istable(L, -1)) {
        lua_pushboolean(L, 1);
        lua_rawset(L, SEEN);
    } else {
        lua_pop(L, 1);
    }
}

/* The library's own tables are nobody's to change. */
static void see_library(lua_State *L)
{
    static const char *const own[] = {"lumat.functions", "lumat.methods",
                                      "lumat.sparse_methods", "lumat.help"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        lua_getfield(L, LUA_REGISTRYINDEX, own[i]);
        see(L);
    }
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (lua_type(L, -2) == LUA_TSTRING &&
            strncmp(lua_tostring(L, -2), "lumat.", 6) == 0)
            see(L);
        else
            lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Called protected with the stack of the call: memory may run out. */
static int prepare(lua_State *L)
{
    replace_base(L, "type", get_type);
    replace_base(L, "collectgarbage", do_nothing);
    replace_math(L);
    push_base(L, "io");
    refuse_members(L);
    push_base(L, "os");
    refuse_members(L);
    push_file_methods(L);
    refuse_members(L);
    see_library(L);
    lua_pushvalue(L, CALLED);
    visit(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    visit(L);
    push_file_methods(L);
    visit(L);
    note_all(L);
    return 0;
}

/* --- what is no value of Lua's
 * -------------------------------------------------- */

static struct {
    FILE *out, *error;
    char device[24];
} outside;

static ssize_t swallow(void *cookie, const char *bytes, size_t n)
{
    (void)cookie;
    (void)bytes;
    return (ssize_t)n;
}

/* What C prints goes nowhere: no file is needed for that, which --safe would
 * refuse. */
static FILE *nowhere(void)
{
    static FILE *f;
    if (!f)
        f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = swallow});
    return f;
}

static void leave_outside(void)
{
    FILE *f = nowhere();
    lumat_forbid_writing(1);
    outside.out = stdout;
    outside.error = stderr;
    if (f)
        stdout = stderr = f;
    snprintf(outside.device, sizeof outside.device, "%s", gpu_default_name());
}

static void come_back(gpu_dtype dtype)
{
    lumat_forbid_writing(0);
    fflush(stdout);
    stdout = outside.out;
    stderr = outside.error;
    lumat_set_default_dtype(dtype);
    if (strcmp(outside.device, gpu_default_name()) != 0)
        gpu_set_default(outside.device);
}

/* --- the result
 * ------------------------------------------------------------------ */

static void push_shape_text(lua_State *L, const gpu_event *e)
{
    char text[80];
    if (strcmp(e->kernel, "reduce") == 0)
        lua_pushstring(L, lumat_event_size(e, text, sizeof text));
    else if (e->ndim == 1)
        lua_pushfstring(L, "vector %I", (LUAI_UACINT)e->m);
    else
        lua_pushfstring(L, "%Ix%I", (LUAI_UACINT)e->m, (LUAI_UACINT)e->n);
}

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static int is_bus(const gpu_event *e)
{
    return strcmp(e->kernel, "bus") == 0;
}

/* Pushes {operation, kernel, shape, flops, bytes, seconds, bus}. */
static void push_event(lua_State *L, const gpu_event *e)
{
    lua_createtable(L, 0, 7);
    set_text(L, "operation", e->operation);
    set_text(L, "kernel", e->kernel);
    push_shape_text(L, e);
    lua_setfield(L, -2, "shape");
    lumat_set_number(L, "flops", e->flops);
    lumat_set_number(L, "bytes", e->bytes);
    lumat_set_number(L, "seconds", e->seconds);
    lumat_set_truth(L, "bus", is_bus(e));
}

static int is_same(const operand *x, const operand *y)
{
    const gpu_matrix *a = &x->m, *b = &y->m;
    return x->number == y->number &&
           (x->number > 0 || a->storage == b->storage) &&
           a->offset == b->offset && a->ndim == b->ndim && a->rows == b->rows &&
           a->cols == b->cols && a->row_stride == b->row_stride &&
           a->col_stride == b->col_stride;
}

static operand transposed(const operand *o)
{
    operand t = *o;
    if (o->m.ndim == 1)
        return t;
    t.m.rows = o->m.cols;
    t.m.cols = o->m.rows;
    t.m.row_stride = o->m.col_stride;
    t.m.col_stride = o->m.row_stride;
    return t;
}

/* Sets the name of an operand that has one in the table on top. */
static void set_name(lua_State *L, const operand *o)
{
    operand turned = transposed(o);
    lua_Integer n = (lua_Integer)lua_rawlen(L, NAMES);
    for (lua_Integer i = 1; i < n; i += 2) {
        lua_rawgeti(L, NAMES, i + 1);
        operand named = operand_of(lumat_test_matrix(L, -1));
        lua_pop(L, 1);
        int same = is_same(&named, o);
        if (!same && !is_same(&named, &turned))
            continue;
        lua_rawgeti(L, NAMES, i);
        lua_pushfstring(L, "%s%s", lua_tostring(L, -1), same ? "" : ".T");
        lua_setfield(L, -3, "name");
        lua_pop(L, 1);
        return;
    }
}

static void push_facts(lua_State *L, const operand *o)
{
    lua_createtable(L, 0, 8);
    lumat_set_count(L, "ndim", (uint64_t)o->m.ndim);
    lumat_set_count(L, "rows", (uint64_t)o->m.rows);
    lumat_set_count(L, "cols", (uint64_t)o->m.cols);
    set_text(L, "dtype", gpu_dtype_name(o->m.dtype));
}

/* Pushes an operand of product i: the product that made it, of those in the
 * list on top, or a table of its own. */
static void push_operand(lua_State *L, int i, const operand *o)
{
    enum { FAR = 1000 };
    int list = lua_gettop(L);
    for (int k = i - 1; k >= 0 && k >= i - FAR && o->number > 0; k--) {
        if (!is_same(&told.products[k].c, o))
            continue;
        lua_rawgeti(L, list, k + 1);
        lua_getfield(L, -1, "used");
        lua_pushinteger(L, lua_tointeger(L, -1) + 1);
        lua_setfield(L, -3, "used");
        lua_pop(L, 1);
        return;
    }
    push_facts(L, o);
    if (o->number == 0)
        set_name(L, o);
}

/* Pushes a list of products, {ndim, rows, cols, dtype, device, left, right,
 * used, flops, seconds}: used by so many products. */
static void push_products(lua_State *L)
{
    lua_createtable(L, told.product_count, 0);
    for (int i = 0; i < told.product_count; i++) {
        const made *p = &told.products[i];
        const gpu_event *e = &told.events[p->event];
        push_operand(L, i, &p->a);
        lua_insert(L, -2);
        push_operand(L, i, &p->b);
        lua_insert(L, -2); /* left, right, list */
        push_facts(L, &p->c);
        lua_insert(L, -4);
        lua_insert(L, -4); /* list, product, left, right */
        lua_setfield(L, -3, "right");
        lua_setfield(L, -2, "left");
        lumat_set_count(L, "used", 0);
        lumat_set_number(L, "flops", e->flops);
        lumat_set_number(L, "seconds", e->seconds);
        set_text(L, "device", gpu_device_name(e->device));
        lua_rawseti(L, -2, i + 1);
    }
}

/* Pushes {allocated, peak, events, products}. */
static int push_result(lua_State *L)
{
    const gpu_dry_report *r = lua_touserdata(L, PLACES + 1);
    if (told.is_short)
        return luaL_error(L, "%d operations are more than can be noted",
                          told.event_count);
    lua_createtable(L, 0, 4);
    lumat_set_number(L, "allocated", (double)r->allocated);
    lumat_set_number(L, "peak", (double)r->peak);
    lua_createtable(L, told.event_count, 0);
    for (int i = 0; i < told.event_count; i++) {
        push_event(L, &told.events[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "events");
    push_products(L);
    lua_setfield(L, -2, "products");
    return 1;
}

/* --- what each operation takes the language ------------------------------- */

static double overhead; /* seconds; 0: not measured yet */

static int call_often(lua_State *L)
{
    enum { CALLS = 64, ROUNDS = 8 };
    double best = 0;
    gpu_device *d;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, "neg");
    gpu_matrix *one = lumat_new_matrix(L);
    lumat_try(L, gpu_default(&d));
    lumat_try(L, gpu_create(one, d, GPU_F32, 1, 1, 1));
    lumat_try(L, gpu_fill(one, 1));
    for (int i = 0; i < ROUNDS; i++) {
        double start = gpu_now();
        for (int k = 0; k < CALLS; k++) {
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_call(L, 1, 0);
        }
        double seconds = (gpu_now() - start) / CALLS;
        if (i == 0 || seconds < best)
            best = seconds;
    }
    overhead = best;
    return 0;
}

/* Once, by operations of which no trace tells. */
static void measure_overhead(lua_State *L)
{
    if (overhead > 0)
        return;
    int paused = gpu_pause_trace(1);
    lua_pushcfunction(L, call_often);
    int status = lua_pcall(L, 0, 0, 0);
    gpu_pause_trace(paused);
    if (status != LUA_OK)
        lua_error(L);
}

/* --- the call ---------------------------------------------------------------
 */

/* Called protected. */
static int call_all(lua_State *L)
{
    lua_call(L, 0, 0);
    lumat_try(L, gpu_settle_all());
    return 0;
}

/* Calls the function with nothing of what it does lasting; leaves its result
 * or error on top. */
static int call_dry(lua_State *L, gpu_dry_report *report)
{
    gpu_dtype dtype = lumat_default_dtype(L);
    told.watch = (gpu_dry_watch){note_event, note_product, NULL, 1, overhead};
    if (gpu_settle_all() != GPU_OK || gpu_begin_dry(&told.watch) != GPU_OK) {
        lua_pushstring(L, gpu_message());
        return LUA_ERRRUN;
    }
    leave_outside();
    lua_pushcfunction(L, call_all);
    lua_pushvalue(L, CALLED);
    int before = gpu_execute_all(1);
    int status = lua_pcall(L, 1, 0, 0);
    gpu_execute_all(before);
    gpu_end_dry(report);
    come_back(dtype);
    return status;
}

/* Calls f protected with what is on the stack up to PLACES, and a pointer. */
static int call_with_places(lua_State *L, lua_CFunction f, void *data)
{
    lua_pushcfunction(L, f);
    for (int i = 1; i <= PLACES; i++)
        lua_pushvalue(L, i);
    lua_pushlightuserdata(L, data);
    return lua_pcall(L, PLACES + 1, 1, 0);
}

/* dry_run(f): calls f, and gives what its operations would take: {allocated,
 * peak, events, products}. Raises what f raises. */
static int dry_run(lua_State *L)
{
    gpu_dry_report report = {0, 0};
    lumat_refuse_dry(L, "cost");
    measure_overhead(L);
    lua_settop(L, CALLED);
    while (lua_gettop(L) < PLACES)
        lua_newtable(L);
    lua_gc(L, LUA_GCCOLLECT); /* finalisers that are due */
    int is_collecting = lua_gc(L, LUA_GCISRUNNING);
    lua_gc(L, LUA_GCSTOP);
    list_length = 0;
    int status = call_with_places(L, prepare, NULL);
    if (status == LUA_OK) {
        lua_pop(L, 1);
        status = call_dry(L, &report);
    }
    restore_all(L);
    if (status == LUA_OK)
        status = call_with_places(L, push_result, &report);
    forget_told();
    if (is_collecting)
        lua_gc(L, LUA_GCRESTART);
    return status == LUA_OK ? 1 : lua_error(L);
}

void lumat_open_dry_run(lua_State *L)
{
    lua_pushcfunction(L, dry_run);
    lumat_set_private(L, "dry_run");
}
