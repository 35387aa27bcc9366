/* Locals that survive their entry, as variables that closures share. */
#include <string.h>
#include "lauxlib.h"
#include "parse.h"
#include "scope.h"

/* Keys in the registry: cells by name, which of them are constant, and what
 * the mirror showed last. */
static const char cells_key, constants_key, shadow_key;

static void push_table(lua_State *L, const char *key)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
}

static void push_mirror(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
}

/* --- cells ---------------------------------------------------------------- */

/* Makes a cell of the value on top. */
static void push_cell(lua_State *L)
{
    luaL_loadstring(L, "local value = ... return function() return value end");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
}

static void set_constant(lua_State *L, const char *name, int is_constant)
{
    push_table(L, &constants_key);
    if (is_constant)
        lua_pushboolean(L, 1);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

/* The C function lumat_keep(name, function() return <name> end [, constant]),
 * called behind declarations. */
static int keep_local(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 3);
    set_constant(L, name, lua_toboolean(L, 3));
    push_table(L, &cells_key);
    if (lua_getupvalue(L, 2, 1)) {
        lua_pushvalue(L, 2);
        lua_replace(L, -2);
    } else {
        lua_pushvalue(L, 2);
        lua_call(L, 0, 1);
        push_cell(L);
    }
    lua_setfield(L, 4, name);
    return 0;
}

int lumat_push_local(lua_State *L, const char *name, size_t length)
{
    push_table(L, &cells_key);
    lua_pushlstring(L, name, length);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return !lua_isnil(L, -1);
}

void lumat_push_variable(lua_State *L, const char *name, size_t length)
{
    if (lumat_push_local(L, name, length)) {
        lua_getupvalue(L, -1, 1);
    } else {
        lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
        lua_pushlstring(L, name, length);
        lua_rawget(L, -2);
        lua_remove(L, -2);
    }
    lua_remove(L, -2);
}

static int is_constant_local(lua_State *L, const char *name)
{
    push_table(L, &constants_key);
    int found = lua_getfield(L, -1, name) != LUA_TNIL;
    lua_pop(L, 2);
    return found;
}

/* --- the mirror ----------------------------------------------------------- */

/* Sets the local whose name is at `name` to the value on top; pops it. */
static void set_local(lua_State *L, int name)
{
    push_table(L, &cells_key);
    lua_pushvalue(L, name);
    if (lua_rawget(L, -2) == LUA_TFUNCTION) {
        lua_pushvalue(L, -3);
        lua_setupvalue(L, -2, 1);
    } else {
        lua_pushvalue(L, name);
        lua_pushvalue(L, -4);
        push_cell(L);
        lua_rawset(L, -4);
    }
    lua_pop(L, 3);
}

/* The values of the table at `from` that the one at `to` has otherwise: calls
 * each with the name and the value on top, which it pops. */
static void each_difference(lua_State *L, int from, int to,
                            void (*each)(lua_State *, int name))
{
    for (lua_pushnil(L); lua_next(L, from);) {
        int name = lua_gettop(L) - 1;
        lua_pushvalue(L, name);
        lua_rawget(L, to);
        int same = lua_rawequal(L, -1, -2);
        lua_pop(L, 1);
        if (same || lua_type(L, name) != LUA_TSTRING)
            lua_pop(L, 1);
        else
            each(L, name);
    }
}

/* Forgets the local with the name, unless it has only another value now. */
static void drop_if_gone(lua_State *L, int name)
{
    push_mirror(L);
    lua_pushvalue(L, name);
    int gone = lua_rawget(L, -2) == LUA_TNIL;
    lua_pop(L, 3);
    if (!gone)
        return;
    set_constant(L, lua_tostring(L, name), 0);
    push_table(L, &cells_key);
    lua_pushvalue(L, name);
    lua_pushnil(L);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void lumat_adopt_locals(lua_State *L)
{
    push_mirror(L);
    push_table(L, &shadow_key);
    int top = lua_gettop(L);
    each_difference(L, top, top - 1, drop_if_gone);
    each_difference(L, top - 1, top, set_local);
    lua_settop(L, top - 2);
}

/* Empties the table on top, and pops it. */
static void empty(lua_State *L)
{
    for (lua_pushnil(L); lua_next(L, -2);) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_pushnil(L);
        lua_rawset(L, -4);
    }
    lua_pop(L, 1);
}

void lumat_hide_locals(lua_State *L)
{
    lumat_adopt_locals(L);
    push_mirror(L);
    empty(L);
    push_table(L, &shadow_key);
    empty(L);
}

/* The mirror first: should memory run out between the two, the value is
 * taken for a new one, not for a local that was dropped. */
void lumat_refresh_locals(lua_State *L)
{
    lumat_adopt_locals(L);
    push_table(L, &cells_key);
    push_mirror(L);
    push_table(L, &shadow_key);
    int cells = lua_gettop(L) - 2, mirror = cells + 1, shadow = cells + 2;
    for (lua_pushnil(L); lua_next(L, cells); lua_pop(L, 2)) {
        lua_getupvalue(L, -1, 1);
        for (int table = mirror; table <= shadow; table++) {
            lua_pushvalue(L, -3);
            lua_pushvalue(L, -2);
            lua_rawset(L, table);
        }
    }
    lua_settop(L, cells - 1);
}

/* --- opening -------------------------------------------------------------- */

static void set_table(lua_State *L, const char *key)
{
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void lumat_open_locals(lua_State *L)
{
    set_table(L, &cells_key);
    set_table(L, &constants_key);
    set_table(L, &shadow_key);
}

/* --- entries that see and keep them --------------------------------------- */
/* Compiled inside a function that declares what they use, with a call behind
 * each declaration that hands a closure over the new variable to the session.
 */

#define KEEP "lumat_keep"

/* Lua's limit is 200 locals a function; a few are needed here. */
enum { MOST_USED = 190 };

/* --- what is used --------------------------------------------------------- */

/* Is the token a local of the session, or an echo, that the table at `seen`
 * lacks? Adds it there and pushes its name. */
static int push_new_name(lua_State *L, const lumat_tokens *t, int i, int seen)
{
    const char *name = lumat_start_of(t, i);
    if (t->list[i].kind != LUMAT_NAME)
        return 0;
    int is_local = lumat_push_local(L, name, lumat_length_of(t, i));
    lua_pop(L, 1);
    if (!is_local && !lumat_is_echo(t, i))
        return 0;
    lua_pushlstring(L, name, lumat_length_of(t, i));
    lua_pushvalue(L, -1);
    if (lua_rawget(L, seen) != LUA_TNIL) {
        lua_pop(L, 2);
        return 0;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushboolean(L, 1);
    lua_rawset(L, seen);
    return 1;
}

/* Pushes "local lumat_keep local a local c<const>" with the session's locals
 * among the tokens, and the echoes. Returns how many they are. */
static int push_declarations(lua_State *L, const lumat_tokens *t)
{
    int count = 0;
    lua_newtable(L);
    int seen = lua_gettop(L);
    lua_pushliteral(L, "local " KEEP);
    for (int i = 0; i < t->count; i++) {
        if (!push_new_name(L, t, i, seen))
            continue;
        const char *name = lua_tostring(L, -1);
        lua_pushfstring(L, " local %s%s", name,
                        is_constant_local(L, name) ? "<const>" : "");
        lua_remove(L, -2);
        lua_concat(L, 2);
        count++;
    }
    lua_remove(L, seen);
    return count;
}

/* --- what is declared ----------------------------------------------------- */

/* Adds the call that keeps a name. */
static void add_keep(luaL_Buffer *b, const lumat_tokens *t, int name,
                     int constant)
{
    luaL_addstring(b, ";" KEEP "(\"");
    luaL_addlstring(b, lumat_start_of(t, name), lumat_length_of(t, name));
    luaL_addstring(b, "\",function()return ");
    luaL_addlstring(b, lumat_start_of(t, name), lumat_length_of(t, name));
    luaL_addstring(b, constant ? " end,1);" : " end);");
}

/* Adds those of a declaration. _ENV stays with its entry: who changed it would
 * never get back. What <close> closes has ended with its entry. */
static int add_kept(luaL_Buffer *b, const lumat_tokens *t,
                    const lumat_declaration *n)
{
    int count = 0;
    for (int i = 0; i < n->count; i++) {
        if (n->list[i].closes || lumat_at(t, n->list[i].name, "_ENV"))
            continue;
        add_keep(b, t, n->list[i].name, n->list[i].constant);
        count++;
    }
    return count;
}

/* Pushes the text with the calls that keep the locals of its top level behind
 * their declarations; returns how many there are. */
static int push_keeping(lua_State *L, const lumat_tokens *t)
{
    lumat_declaration names;
    luaL_Buffer b;
    const char *written = t->text;
    int depth = 0, count = 0;
    luaL_buffinit(L, &b);
    for (int i = 0; i < t->count;) {
        if (depth > 0 || !lumat_at(t, i, "local")) {
            depth += lumat_block_step(t, i++);
            continue;
        }
        i = lumat_read_local(t, i, &names);
        luaL_addlstring(&b, written, (size_t)(lumat_behind(t, i) - written));
        written = lumat_behind(t, i);
        count += add_kept(&b, t, &names);
    }
    luaL_addlstring(&b, written, (size_t)(t->text + t->length - written));
    luaL_pushresult(&b);
    return count;
}

/* --- compiling ------------------------------------------------------------ */

/* Joins what the function on top shares with the session. */
static void join(lua_State *L)
{
    int function = lua_gettop(L);
    const char *name;
    for (int i = 1; (name = lua_getupvalue(L, function, i)); i++) {
        if (strcmp(name, KEEP) == 0) {
            lua_pushcfunction(L, keep_local);
            lua_setupvalue(L, function, i);
        } else if (lumat_push_echo(L, name)) {
            lua_setupvalue(L, function, i);
        } else if (lumat_push_local(L, name, strlen(name))) {
            lua_upvaluejoin(L, function, i, -1, 1);
        }
        lua_settop(L, function);
    }
}

/* Replaces declarations and body on top by the function they make. */
static int compile(lua_State *L)
{
    size_t length;
    lua_pushliteral(L, " return function(...) ");
    lua_insert(L, -2);
    lua_pushliteral(L, "\nend");
    lua_concat(L, 4);
    const char *text = lua_tolstring(L, -1, &length);
    int status = luaL_loadbufferx(L, text, length, "=" LUMAT_CHUNK, "t");
    lua_remove(L, -2);
    return status == LUA_OK ? lua_pcall(L, 0, 1, 0) : status;
}

/* Puts the parts of the text, or a message, in the function's place. */
static int part(lua_State *L, int function, const lumat_tokens *t, int used)
{
    lua_settop(L, function);
    int status = lumat_load_parts(L, t);
    if (status == LUMAT_ONE_PART) {
        lua_pushfstring(L,
                        LUMAT_CHUNK ":1: %d locals of earlier entries in one "
                                    "statement: there can be %d",
                        used, MOST_USED);
        status = LUA_ERRSYNTAX;
    }
    lua_replace(L, function);
    return status;
}

int lumat_join_locals(lua_State *L, const lumat_tokens *t)
{
    int function = lua_gettop(L), status;
    int used = push_declarations(L, t);
    if (used > MOST_USED)
        return part(L, function, t, used);
    if (push_keeping(L, t) + used == 0) {
        lua_settop(L, function);
        return LUA_OK;
    }
    status = compile(L);
    if (status == LUA_OK)
        join(L);
    lua_replace(L, function);
    return status;
}

/* --- entries of many locals ----------------------------------------------- */
/* With more than a function of Lua's can have, its own or the session's, an
 * entry runs part after part, each of a few statements: the locals of one are
 * the session's for the next. */

enum { MOST_IN_PART = 180 }; /* names, of which every local is one */

/* Adds the tokens first .. end - 1, with the lines in front of them empty, to
 * the table on top. */
static void add_part(lua_State *L, const lumat_tokens *t, int first, int end)
{
    const char *start = lumat_start_of(t, first);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int line = 1; line < t->list[first].line; line++)
        luaL_addchar(&b, '\n');
    luaL_addlstring(&b, start, (size_t)(lumat_behind(t, end) - start));
    luaL_pushresult(&b);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* Behind the statements from token i on that one part takes. */
static int part_end(const lumat_tokens *t, int i)
{
    int end = i, names = 0;
    while (end < t->count) {
        int next = lumat_skip_statement(t, end);
        for (int k = end; k < next; k++)
            names += t->list[k].kind == LUMAT_NAME;
        if (names > MOST_IN_PART && end > i)
            break;
        end = next;
    }
    return end;
}

/* Pushes the table of the parts. Returns how many there are. */
static int push_parts(lua_State *L, const lumat_tokens *t)
{
    lua_newtable(L);
    for (int i = 0, end; i < t->count; i = end) {
        end = part_end(t, i);
        add_part(L, t, i, end);
    }
    return (int)lua_rawlen(L, -1);
}

static int compile_part(lua_State *L, const char *text, size_t length)
{
    return luaL_loadbufferx(L, text, length, "=" LUMAT_CHUNK, "t");
}

/* With the function of a part on top. */
static int join_part(lua_State *L, const char *text, size_t length)
{
    const lumat_tokens *t = lumat_push_tokens(L, text, length);
    lua_insert(L, -2);
    int status = lumat_join_locals(L, t);
    lua_remove(L, -2);
    return status;
}

/* Upvalue: the table of the parts. Gives what the last one does. */
static int run_parts(lua_State *L)
{
    int count = (int)lua_rawlen(L, lua_upvalueindex(1));
    lua_settop(L, 0);
    for (int i = 1; i <= count; i++) {
        size_t length;
        lua_rawgeti(L, lua_upvalueindex(1), i);
        const char *text = lua_tolstring(L, 1, &length);
        lumat_adopt_locals(L);
        int status = compile_part(L, text, length);
        if (status == LUA_OK)
            status = join_part(L, text, length);
        if (status != LUA_OK)
            return lua_error(L);
        lua_call(L, 0, i == count ? LUA_MULTRET : 0);
        lua_remove(L, 1);
    }
    return lua_gettop(L);
}

int lumat_load_parts(lua_State *L, const lumat_tokens *t)
{
    size_t length;
    int status = LUA_OK, count = push_parts(L, t);
    if (count < 2) {
        lua_pop(L, 1);
        return LUMAT_ONE_PART;
    }
    for (int i = 1; i <= count && status == LUA_OK; i++) {
        lua_rawgeti(L, -1, i);
        const char *text = lua_tolstring(L, -1, &length);
        status = compile_part(L, text, length);
        lua_remove(L, -2);
        if (status == LUA_OK)
            lua_pop(L, 1);
    }
    if (status == LUA_OK)
        lua_pushcclosure(L, run_parts, 1);
    else
        lua_remove(L, -2);
    return status;
}
