/* Names without a value that an entry prints, passes to a function, or puts
 * somewhere: Lua takes each for nil, so what is meant is told afterwards.
 * Whoever tests or compares a name knows that it may be nil. */
#include "diagnose_parts.h"
#include "parse.h"
#include "value.h"

#include "lauxlib.h"
#include <string.h>

enum { MOST_NOTES = 3 };

/* Registry: the last entry's names, in order, and at 0 what is to be told of
 * it as a whole; those that need no note. */
static const char found_key, known_key;

typedef struct finder {
    lua_State *L;
    const lumat_tokens *t;
    int i;            /* the token at hand */
    int found, known; /* tables on the stack */
    int count;
    int index; /* how deep in the braces of A[{…}] */
} finder;

/* --- finding -------------------------------------------------------------- */

static int is_known(const finder *f)
{
    lumat_push_token(f->L, f->t, f->i);
    int known = lua_rawget(f->L, f->known) != LUA_TNIL;
    lua_pop(f->L, 1);
    return known;
}

/* An argument, an element, what is assigned or returned: all of an
 * expression. */
static int is_passed_on(const finder *f)
{
    int next = f->i + 1;
    if (lumat_kind_at(f->t, f->i) != LUMAT_NAME ||
        !lumat_at(f->t, f->i - 1, "( , { [ = return in"))
        return 0;
    return next == f->t->count ||
           lumat_at(f->t, next, ", ) } ] ; do end else elseif until") ||
           lumat_starts_statement(f->t, next);
}

/* The whole entry; "return" was put in front of it. */
static int is_alone(const finder *f)
{
    return f->i == 1 && f->t->count == 2 && f->t->list[0].line == 1 &&
           lumat_at(f->t, 0, "return");
}

static void look_at_word(finder *f)
{
    const char *name = lumat_start_of(f->t, f->i);
    size_t length = lumat_length_of(f->t, f->i);
    if (!is_passed_on(f) || is_known(f))
        return;
    if (lumat_has_value(f->L, name, length) &&
        !(is_alone(f) && lumat_is_command(name, length)))
        return;
    lua_pushlstring(f->L, name, length);
    if (f->index > 0) {
        lua_pushvalue(f->L, -1);
        lua_pushboolean(f->L, 1);
        lua_rawset(f->L, f->found);
    }
    lua_rawseti(f->L, f->found, ++f->count);
}

/* A[{1, nil}] is A[{1}], a row: no error, and not what was meant. */
static void follow_index(finder *f)
{
    int begins = lumat_at(f->t, f->i, "{") && lumat_at(f->t, f->i - 1, "[");
    if (begins || (f->index > 0 && lumat_at(f->t, f->i, "{")))
        f->index++;
    else if (f->index > 0 && lumat_at(f->t, f->i, "}"))
        f->index--;
}

/* Functions run later, and these want to know whether it is nil. */
static int is_skipped(const finder *f)
{
    return lumat_at(f->t, f->i, "function") ||
           (lumat_at(f->t, f->i, "(") &&
            lumat_at(f->t, f->i - 1, "type assert"));
}

static void find(finder *f)
{
    while (f->i < f->t->count) {
        look_at_word(f);
        follow_index(f);
        f->i = is_skipped(f) ? lumat_skip_operand(f->t, f->i) : f->i + 1;
    }
}

/* Names that the text sets are known from now on. */
static void learn_given(finder *f)
{
    lua_State *L = f->L;
    lumat_push_given(L, f->t, 0, f->t->count);
    for (lua_pushnil(L); lua_next(L, -2);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, f->known);
    }
    lua_pop(L, 1);
}

static void push_known(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &known_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "ans");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &known_key);
}

/* Where globals are is the text's own business then. */
static int has_env(const lumat_tokens *t)
{
    int i = 0;
    while (i < t->count && !lumat_at(t, i, "_ENV"))
        i++;
    return i < t->count;
}

void lumat_find_unset(lua_State *L, const lumat_tokens *t)
{
    int top = lua_gettop(L);
    finder f = {.L = L, .t = t};
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &found_key);
    push_known(L);
    f.found = top + 1;
    f.known = top + 2;
    learn_given(&f);
    if (lumat_are_globals_plain(L) && !has_env(t))
        find(&f);
    lua_settop(L, top);
}

void lumat_find_misread(lua_State *L, const char *text, size_t length)
{
    int top = lua_gettop(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &found_key) == LUA_TTABLE &&
        lumat_push_misread(L, text, length))
        lua_rawseti(L, top + 1, 0);
    lua_settop(L, top);
}

/* --- telling -------------------------------------------------------------- */

/* Pushes what there is to say, or returns NULL. A misspelling keeps the first
 * letter as a rule; where nil was no error others are not worth a word. */
static const char *push_note(lua_State *L, const char *name, int got_nil)
{
    int is_likely;
    const char *meant = lumat_push_meant(L, name, 1, &is_likely);
    if (lumat_has_value(L, name, strlen(name)))
        return lumat_is_command(name, strlen(name))
                   ? lua_pushfstring(L, "%s is a function; :%s is the command",
                                     name, name)
                   : NULL;
    if (meant && (got_nil || is_likely))
        return lua_pushfstring(L, "%s is nil; %s", name, meant);
    return got_nil ? lua_pushfstring(L, "%s is nil: nothing has set it", name)
                   : NULL;
}

/* The error as a string, "" when it is none. */
static const char *message_of(lua_State *L, int error)
{
    return error && lua_type(L, error) == LUA_TSTRING ? lua_tostring(L, error)
                                                      : "";
}

static int names(lua_State *L, const char *message, const char *name)
{
    int found = strstr(message, lua_pushfstring(L, "'%s'", name)) != NULL;
    lua_pop(L, 1);
    return found;
}

/* Each name is told of once. */
static int was_told(lua_State *L, const char *name)
{
    push_known(L);
    int known = lua_getfield(L, -1, name) != LUA_TNIL;
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
    return known;
}

void lumat_each_unset(lua_State *L, int error, lumat_name_fn *each, void *data)
{
    int top = lua_gettop(L), told = 0;
    const char *message = message_of(L, error);
    int got_nil = strstr(message, "nil") != NULL;
    int found = lua_rawgetp(L, LUA_REGISTRYINDEX, &found_key) == LUA_TTABLE;
    if (found && !error && lua_rawgeti(L, -1, 0) == LUA_TSTRING)
        each(data, "", lua_tostring(L, -1));
    for (int i = 1; found && told < MOST_NOTES; i++) {
        lua_settop(L, top + 1);
        if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
            break;
        const char *name = lua_tostring(L, -1);
        int is_index = lua_getfield(L, top + 1, name) != LUA_TNIL;
        const char *note = push_note(L, name, got_nil || is_index);
        if (!note || names(L, message, name) || was_told(L, name))
            continue;
        each(data, name, note);
        told++;
    }
    lua_settop(L, top);
}
