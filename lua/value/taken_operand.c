/* Operands of what is written in place, taken from the stack, so that a
 * collection finds whether anything else still has them.
 *
 * A function's arguments are its own. But of x[x:gt(2)] = 0 the mask is in a
 * register of the Lua function that runs, too, where Lua calls it "(temporary)"
 * and looks at it no more; and the registers above it have what is left of
 * computing it. That is so if the assignment is one of a single place: of
 * x[a], y[b] = 0, 1 the second is done first, while a waits in its register. So
 * the instruction is looked for in the function, as lua_dump writes it. Source:
 * lopcodes.h and lparser.c (restassign) of Lua 5.4. */
#include "parse.h"
#include "value.h"

#include <string.h>

/* --- the instruction ------------------------------------------------------ */

enum {
    OP_MOVE = 0,
    OP_LOADNIL = 8,
    OP_SETUPVAL = 10,
    OP_SETTABUP = 15,
    OP_SETTABLE,
    OP_SETI,
    OP_SETFIELD
};

static int op_of(uint32_t word)
{
    return (int)(word & 0x7f);
}

static int is_store(uint32_t word)
{
    return op_of(word) >= OP_SETTABUP && op_of(word) <= OP_SETFIELD;
}

/* May it belong to an assignment of several places, beside a store? */
static int is_of_several(uint32_t word)
{
    return is_store(word) || op_of(word) == OP_MOVE ||
           op_of(word) == OP_LOADNIL || op_of(word) == OP_SETUPVAL;
}

/* Does a store read the register, as its key or as its value? */
static int stores_from(uint32_t word, int slot, int is_key)
{
    int key = (int)(word >> 16 & 0xff), value = (int)(word >> 24);
    int is_constant = (int)(word >> 15 & 1);
    if (is_key)
        return op_of(word) == OP_SETTABLE && key == slot;
    return is_store(word) && !is_constant && value == slot;
}

static int is_alone(const lumat_bytecode *f, int i, int line)
{
    for (int beside = i - 1; beside <= i + 1; beside += 2)
        if (beside >= 0 && beside < f->count &&
            is_of_several(lumat_instruction_at(f, beside)) &&
            lumat_line_at(f, beside) == line)
            return 0;
    return 1;
}

/* Is there one store of that line from the register, and none beside it? */
static int finds_one(const lumat_bytecode *f, int line, int slot, int is_key)
{
    int found = 0;
    for (int i = 0; i < f->count; i++) {
        if (!stores_from(lumat_instruction_at(f, i), slot, is_key) ||
            lumat_line_at(f, i) != line)
            continue;
        if (++found > 1 || !is_alone(f, i, line))
            return 0;
    }
    return found == 1;
}

typedef struct dump {
    int is_begun;
    size_t bytes;
    luaL_Buffer text;
} dump;

/* lua_dump wants its function on top, where a buffer begins with its first
 * bytes. Of what is long nothing is known. */
static int add_to_dump(lua_State *L, const void *data, size_t size, void *to)
{
    enum { MOST = 1 << 20 };
    dump *d = to;
    if (!d->is_begun)
        luaL_buffinit(L, &d->text);
    d->is_begun = 1;
    d->bytes += size;
    luaL_addlstring(&d->text, data, size);
    return d->bytes > MOST;
}

/* Of the function on top. */
static int reads_one(lua_State *L, int line, int slot, int is_key)
{
    dump d = {.is_begun = 0};
    lumat_bytecode code;
    size_t length;
    int top = lua_gettop(L), status = lua_dump(L, add_to_dump, &d, 0), one = 0;
    if (d.is_begun) {
        luaL_pushresult(&d.text);
        const char *text = lua_tolstring(L, -1, &length);
        one = status == 0 && lumat_read_bytecode(text, length, &code) &&
              finds_one(&code, line, slot, is_key);
    }
    lua_settop(L, top);
    return one;
}

/* A table of the registry whose keys or values ("k", "v") are weak. */
static void push_weak(lua_State *L, const char *key, const char *mode)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* Does the caller assign to one place, from that register? What was found is
 * kept with the function. */
static int assigns_one(lua_State *L, lua_Debug *caller, int slot, int is_key)
{
    static const char key;
    lua_Integer place = (lua_Integer)caller->currentline * 512 + slot * 2;
    int top = lua_gettop(L);
    push_weak(L, &key, "k");
    lua_getinfo(L, "f", caller);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    if (lua_rawgeti(L, -1, place + is_key) == LUA_TNIL) {
        lua_pushvalue(L, -3);
        int one = reads_one(L, caller->currentline, slot, is_key);
        lua_pushboolean(L, one);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -5, place + is_key);
    }
    int one = lua_toboolean(L, -1);
    lua_settop(L, top);
    return one;
}

/* --- the registers -------------------------------------------------------- */

/* Pushes register i of the caller, from 1, if it has no name; else returns 0.
 * end: there are no more. */
static int push_register(lua_State *L, lua_Debug *caller, int i, int *end)
{
    const char *name = lua_getlocal(L, caller, i);
    *end = !name;
    if (!name)
        return 0;
    if (strcmp(name, "(temporary)") == 0)
        return 1;
    lua_pop(L, 1);
    return 0;
}

/* The first register without a name that has the argument; 0: none. Others
 * above it are what is left of computing it. */
static int find_register(lua_State *L, lua_Debug *caller, int arg)
{
    for (int i = 1, end = 0; !end; i++) {
        if (!push_register(L, caller, i, &end))
            continue;
        int same = lua_rawequal(L, -1, arg);
        lua_pop(L, 1);
        if (same)
            return i;
    }
    return 0;
}

/* From a register on, those that have matrices that wait get nil. */
static void clear_registers(lua_State *L, lua_Debug *caller, int from)
{
    for (int i = from, end = 0; !end; i++) {
        if (!push_register(L, caller, i, &end))
            continue;
        const gpu_matrix *m = lumat_test_matrix(L, -1);
        int waits = m && gpu_is_pending(m);
        lua_pop(L, 1);
        if (!waits)
            continue;
        lua_pushnil(L);
        lua_setlocal(L, caller, i);
    }
}

static void take_from_caller(lua_State *L, int arg, int is_key)
{
    lua_Debug caller;
    if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "l", &caller) ||
        caller.currentline <= 0)
        return;
    int from = find_register(L, &caller, arg);
    if (from > 0 && assigns_one(L, &caller, from - 1, is_key))
        clear_registers(L, &caller, from);
}

const gpu_matrix *lumat_take(lua_State *L, int arg, const gpu_matrix *target,
                             lumat_taking how, gpu_matrix *taken)
{
    const gpu_matrix *m = lumat_test_matrix(L, arg);
    taken->storage = NULL;
    if (!gpu_is_pending(m) || gpu_shares_storage(m, target))
        return m;
    if (how != LUMAT_TAKE_ARGUMENT) {
        luaL_checkstack(L, 10, NULL);
        take_from_caller(L, arg, how == LUMAT_TAKE_KEY);
    }
    gpu_retain(m);
    *taken = *m;
    lua_pushnil(L);
    lua_replace(L, arg);
    return taken;
}
