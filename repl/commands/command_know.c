/* Commands that tell what happened: profile, checks, memory, costs, the entries
 * behind a value, the transcript. */
#include "command_list.h"
#include "entry.h"
#include "terminal.h"

#include "lauxlib.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* --- what these and those that measure share -------------------------------
 */

int repl_is_choice(const char *command, const char *word, const char *list)
{
    char message[120];
    size_t length = strlen(word);
    for (const char *p = list; *p != '\0'; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == length && strncmp(p, word, n) == 0)
            return 1;
        p += n;
    }
    snprintf(message, sizeof message, ":%s takes one of: %s", command, list);
    repl_complain(message);
    return 0;
}

const char *repl_push_function(lua_State *L, const char *text, size_t length)
{
    const char *body = lua_pushlstring(L, text, length);
    const char *code = lua_pushfstring(L, "return %s\n", body);
    int status = luaL_loadstring(L, code);
    lua_pop(L, 2);
    code =
        status == LUA_OK ? "function() return %s\nend" : "function() %s\nend";
    code = lua_pushfstring(L, code, body);
    lua_remove(L, -2);
    return code;
}

/* Pushes the text as a string of Lua. */
static const char *push_quoted(lua_State *L, const char *text, size_t length)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '"');
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\' || text[i] == '\n')
            luaL_addchar(&b, '\\');
        luaL_addchar(&b, text[i]);
    }
    luaL_addchar(&b, '"');
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* Calls the library's function with a word, and a second text unless it is
 * empty; without either when the word is. */
static void show_words(repl_session *session, const char *function,
                       const char *word, size_t length, const char *more)
{
    lua_State *L = session->L;
    int top = lua_gettop(L);
    const char *words = length > 0 ? push_quoted(L, word, length) : "";
    if (*more != '\0')
        words = lua_pushfstring(L, "%s, %s", words,
                                push_quoted(L, more, strlen(more)));
    repl_show_call(session, function, words);
    lua_settop(L, top);
}

/* --- the commands --------------------------------------------------------- */

void repl_run_prof(repl_session *session, const char *rest)
{
    char word[16];
    size_t length = strcspn(rest, " \t");
    const char *file = rest + length + strspn(rest + length, " \t");
    snprintf(word, sizeof word, "%.*s", (int)length, rest);
    if (length > 0 && !repl_is_choice("prof", word, "on off top reset json"))
        return;
    if (strcmp(word, "json") == 0 && *file == '\0')
        repl_complain(":prof json needs a file's name: :prof json trace.json");
    else if (strcmp(word, "json") != 0 && *file != '\0')
        repl_complain(":prof takes a file's name behind json only");
    else
        show_words(session, "profile", rest, length, file);
}

void repl_run_check(repl_session *session, const char *rest)
{
    if (rest[0] == '\0')
        repl_show_call(session, "checking", "");
    else if (repl_is_choice("check", rest, "on off"))
        repl_evaluate(session, rest[1] == 'n'
                                   ? "require 'lumat'.checking(true);"
                                   : "require 'lumat'.checking(false);");
}

void repl_run_mem(repl_session *session, const char *rest)
{
    if (rest[0] == '\0' || repl_is_choice("mem", rest, "reset"))
        show_words(session, "mem", rest, strlen(rest), "");
}

void repl_run_cost(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    if (rest[0] == '\0') {
        repl_complain(":cost needs an expression: :cost A * B * v");
        return;
    }
    repl_push_function(L, rest, strlen(rest));
    repl_show_call(session, "cost", lua_tostring(L, -1));
    lua_pop(L, 1);
}

/* Pushes a file's name without the quotes it may be in. */
static const char *push_unquoted(lua_State *L, const char *name)
{
    size_t n = strlen(name);
    int is_quoted =
        n >= 2 && (*name == '"' || *name == '\'') && name[n - 1] == *name;
    return lua_pushlstring(L, name + is_quoted, n - 2 * (size_t)is_quoted);
}

/* The file of "C > file" or "C, file", in quotes or not; *length is the
 * name's. */
static const char *push_file(lua_State *L, const char *rest, size_t *length)
{
    const char *p = rest + strcspn(rest, ",> \t");
    *length = (size_t)(p - rest);
    p += strspn(p, " \t");
    if (*p == ',' || *p == '>')
        p++;
    return push_unquoted(L, p + strspn(p, " \t"));
}

void repl_run_how(repl_session *session, const char *rest)
{
    size_t length;
    const char *file = push_file(session->L, rest, &length);
    if (length == 0)
        repl_complain(":how needs a variable: :how C, or :how C > file.lua");
    else
        show_words(session, "how", rest, length, file);
    lua_pop(session->L, 1);
}

/* Pushes the name of the log's file, or false. */
static const char *push_log(lua_State *L)
{
    if (luaL_dostring(L, "return require 'lumat'.transcript()") != LUA_OK)
        lua_pushboolean(L, 0);
    return lua_tostring(L, -1);
}

/* Whether there is a log, in one line. */
static void print_log(lua_State *L)
{
    const char *name = push_log(L);
    if (name != NULL)
        lumat_print_visible(stdout, "logging to %s until :log off\n", name);
    else
        puts("there is no log; :log FILE begins one");
}

/* Says of the one that there was where it is; or what it lacks. */
static void end_log(repl_session *session)
{
    const char *name = push_log(session->L);
    if (!repl_evaluate(session, "require 'lumat'.transcript(false);"))
        return;
    if (name != NULL)
        lumat_print_visible(stdout, "the log in %s has ended\n", name);
    else
        puts("there was no log");
}

void repl_run_log(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    int top = lua_gettop(L), ok = 1;
    if (strcmp(rest, "off") == 0) {
        end_log(session);
        lua_settop(L, top);
        return;
    }
    if (rest[0] != '\0') {
        const char *name = push_unquoted(L, rest);
        name = push_quoted(L, name, strlen(name));
        name = lua_pushfstring(L, "require 'lumat'.transcript(%s);", name);
        ok = repl_evaluate(session, name);
    }
    if (ok)
        print_log(L);
    lua_settop(L, top);
}
