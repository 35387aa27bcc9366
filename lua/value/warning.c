/* Lua's warn, on from the start, and the library's own warnings. */
#include "cancellation.h"
#include "parse.h"
#include "value.h"

#include "lauxlib.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Registry: what was warned of, "operation place" -> true; what was noted. */
static const char told_key, noted_key;
/* And of which operation NaN may be, matrix -> note, by weak keys. */
static const char nan_key;
static lumat_warning_fn *print_note; /* NULL: not at a prompt */

static void print_plainly(const char *message)
{
    lumat_print_visible(stderr, "warning: %s\n", message);
}

static struct {
    lumat_warning_fn *print;
    int off;
    char text[1024]; /* pieces of a warning that is still given */
    size_t length;
    int begun;
    int entry; /* whose warnings are noted under told_key */
} warnings = {.print = print_plainly};

void lumat_set_warnings(lumat_warning_fn *print)
{
    warnings.print = print ? print : print_plainly;
}

int lumat_warns(void)
{
    return !warnings.off;
}

/* Source: Lua's manual, warn: a message of one piece that begins with '@' is
 * for the one who prints. */
static int is_control(const char *message, int to_continue)
{
    if (warnings.begun || to_continue || message[0] != '@')
        return 0;
    if (strcmp(message, "@off") == 0)
        warnings.off = 1;
    else if (strcmp(message, "@on") == 0)
        warnings.off = 0;
    return 1;
}

static void take_piece(void *data, const char *message, int to_continue)
{
    size_t room = sizeof warnings.text - 1 - warnings.length;
    size_t length = strlen(message);
    (void)data;
    if (is_control(message, to_continue))
        return;
    if (length > room)
        length = room;
    memcpy(warnings.text + warnings.length, message, length);
    warnings.length += length;
    warnings.begun = to_continue;
    if (to_continue)
        return;
    warnings.text[warnings.length] = '\0';
    warnings.length = 0;
    if (!lumat_is_told_of(warnings.text) && !warnings.off)
        warnings.print(warnings.text);
}

/* Pushes the user's line that is running, "file.lua:3: ", or in an entry of
 * several lines "line 3: ", else "". */
static void push_place(lua_State *L)
{
    lua_Debug ar;
    int number;
    const char *entry = lumat_running_entry(&number);
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (!lumat_is_users(&ar))
            continue;
        if (strcmp(ar.source, "=" LUMAT_CHUNK) != 0)
            lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
        else if (entry && strchr(entry, '\n'))
            lua_pushfstring(L, "line %d: ", ar.currentline);
        else
            break;
        return;
    }
    lua_pushliteral(L, "");
}

/* Pushes the table of what this entry, or the script, was warned of. */
static void push_told(lua_State *L)
{
    int number;
    lumat_running_entry(&number);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &told_key) == LUA_TTABLE &&
        number == warnings.entry)
        return;
    lua_pop(L, 1);
    warnings.entry = number;
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &told_key);
}

/* With the place on top: whether the operation has warned there. */
static int was_told(lua_State *L, const char *operation)
{
    push_told(L);
    lua_pushfstring(L, "%s %s", operation, lua_tostring(L, -2));
    lua_pushvalue(L, -1);
    int told = lua_rawget(L, -3) != LUA_TNIL;
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return told;
}

void lumat_warn(lua_State *L, const char *operation, const char *format, ...)
{
    char text[640];
    va_list args;
    int top = lua_gettop(L);
    if (gpu_is_dry())
        return;
    if (warnings.off)
        return;
    push_place(L);
    if (!was_told(L, operation)) {
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        lua_pushfstring(L, "%s%s: %s", lua_tostring(L, -1), operation, text);
        lua_warning(L, lua_tostring(L, -1), 0);
    }
    lua_settop(L, top);
}

void lumat_set_notes(lumat_warning_fn *print)
{
    print_note = print;
}

int lumat_is_noted(void)
{
    return print_note != NULL;
}

void lumat_note(lua_State *L, const char *word, const char *note)
{
    if (!print_note)
        return;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &noted_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &noted_key);
    }
    if (lua_getfield(L, -1, word) == LUA_TNIL) {
        lua_pushboolean(L, 1);
        lua_setfield(L, -3, word);
        print_note(note);
    }
    lua_pop(L, 2);
}

/* Is it the user's code that made the call, and not the library's? */
static int is_users_call(lua_State *L)
{
    lua_Debug ar;
    return lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sl", &ar) &&
           lumat_is_users(&ar);
}

void lumat_note_to_caller(lua_State *L, const char *word, const char *note)
{
    if (print_note && is_users_call(L))
        lumat_note(L, word, note);
}

static struct {
    const char *note; /* of the last operation that may have given NaN */
    int entry;        /* in which it ran */
} nan_expected;

/* Pushes the table of notes; at a prompt alone there is one. */
static int push_nan_notes(lua_State *L)
{
    if (!print_note)
        return 0;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &nan_key) == LUA_TTABLE)
        return 1;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &nan_key);
    return 1;
}

void lumat_expect_nan(lua_State *L, int index, const char *note)
{
    index = lua_absindex(L, index);
    if (gpu_is_dry() || !print_note || !is_users_call(L) || !push_nan_notes(L))
        return;
    nan_expected.note = note;
    lumat_running_entry(&nan_expected.entry);
    lua_pushvalue(L, index);
    lua_pushlightuserdata(L, (void *)(uintptr_t)note);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void lumat_pass_nan_on(lua_State *L, int from, int to)
{
    from = lua_absindex(L, from);
    to = lua_absindex(L, to);
    if (!nan_expected.note || !push_nan_notes(L))
        return;
    lua_pushvalue(L, from);
    if (lua_rawget(L, -2) != LUA_TNIL) {
        lua_pushvalue(L, to);
        lua_insert(L, -2);
        lua_rawset(L, -3);
        lua_pop(L, 1);
    } else {
        lua_pop(L, 2);
    }
}

void lumat_explain_nan(lua_State *L, int index)
{
    int number, top = lua_gettop(L);
    index = lua_absindex(L, index);
    if (!push_nan_notes(L))
        return;
    lua_pushvalue(L, index);
    lua_rawget(L, -2);
    const char *note = lua_touserdata(L, -1);
    lumat_running_entry(&number);
    if (!note && number == nan_expected.entry)
        note = nan_expected.note;
    if (note) {
        lua_pushlstring(L, note, strcspn(note, " "));
        lumat_note(L, lua_tostring(L, -1), note);
    }
    lua_settop(L, top);
}

/* warn_once(operation, message): the same for the library's part in Lua. */
static int warn_once(lua_State *L)
{
    lumat_warn(L, luaL_checkstring(L, 1), "%s", luaL_checkstring(L, 2));
    return 0;
}

/* note(word, message): the same of lumat_note. */
static int note_once(lua_State *L)
{
    lumat_note(L, luaL_checkstring(L, 1), luaL_checkstring(L, 2));
    return 0;
}

void lumat_open_warnings(lua_State *L)
{
    warnings.off = 0;
    warnings.length = 0;
    warnings.begun = 0;
    lua_setwarnf(L, take_piece, NULL);
    lua_pushcfunction(L, warn_once);
    lumat_set_private(L, "warn_once");
    lua_pushcfunction(L, note_once);
    lumat_set_private(L, "note");
}
