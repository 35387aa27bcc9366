/* The commands of the prompt: finding and running them, the guess at a misspelt
 * one, and their help. */
#include "commands.h"

#include "command_list.h"
#include "lumat.h"
#include "terminal.h"

#include "lauxlib.h"

#include <stdio.h>
#include <string.h>

/* --- what commands share ------------------------------------------------ */

void repl_print_top(lua_State *L)
{
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    lumat_write_visible(stdout, text, length, 1);
    if (length == 0 || text[length - 1] != '\n')
        fputc('\n', stdout);
    lua_pop(L, 1);
}

void repl_print_or_complain(lua_State *L, int ok)
{
    if (ok)
        repl_print_top(L);
    else
        repl_report(L);
}

void repl_show_call(repl_session *session, const char *function,
                    const char *arguments)
{
    const char *text = lua_pushfstring(session->L, "require 'lumat'.%s(%s)",
                                       function, arguments);
    session->keeps_ans = 1;
    repl_evaluate(session, text);
    session->keeps_ans = 0;
    lua_pop(session->L, 1);
}

int repl_is_choice(const char *command, const char *word)
{
    char message[120];
    const char *list = repl_find_command(command, strlen(command))->choices;
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

/* As Lua writes a string; a newline stays one. */
const char *repl_push_quoted(lua_State *L, const char *text, size_t length)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '"');
    for (size_t i = 0; i < length; i++) {
        if (memchr("\"\\\r\n", text[i], 4) != NULL)
            luaL_addchar(&b, '\\');
        luaL_addchar(&b, text[i]);
    }
    luaL_addchar(&b, '"');
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

void repl_show_strings(repl_session *session, const char *function,
                       const char *word, size_t length, const char *more)
{
    lua_State *L = session->L;
    int top = lua_gettop(L);
    const char *words = length > 0 ? repl_push_quoted(L, word, length) : "";
    if (*more != '\0')
        words = lua_pushfstring(L, "%s, %s", words,
                                repl_push_quoted(L, more, strlen(more)));
    repl_show_call(session, function, words);
    lua_settop(L, top);
}

/* --- the nearest name ----------------------------------------------------- */

const char *repl_nearest(const char *word, repl_name_at *name_at)
{
    const char *best = NULL, *name;
    size_t length = strlen(word);
    int limit = (int)length / 3 + 1;
    for (int i = 0; (name = name_at(i)) != NULL; i++) {
        int d = lumat_distance(word, length, name, strlen(name));
        if (d <= limit && d < LUMAT_FAR_APART) {
            best = name;
            limit = d - 1;
        }
    }
    return best;
}

/* --- running them --------------------------------------------------------- */

/* By their numbers; NULL: the library has a function of the same name. */
static repl_command_fn *const functions[] = {
#define COMMAND(name, form, help, argument, choices, run) run,
#define TWIN(name, form, help, argument) NULL,
#include "commands.def"
#undef COMMAND
#undef TWIN
};

static const char *command_name(int i)
{
    const repl_command *command = repl_command_at(i);
    return command != NULL ? command->name : NULL;
}

/* Pushes ":h may be :help or :history". */
static void push_candidates(lua_State *L, const char *word, size_t length)
{
    int count = 0;
    lua_pushfstring(L, ":%s may be ", word);
    const char *name;
    for (int i = 0; (name = command_name(i)) != NULL; i++) {
        if (strncmp(name, word, length) != 0)
            continue;
        lua_pushfstring(L, "%s:%s", count++ > 0 ? " or " : "", name);
        lua_concat(L, 2);
    }
}

static void complain_unknown(lua_State *L, const char *name, size_t length)
{
    const repl_command *found;
    const char *word = lua_pushlstring(L, name, length);
    const char *near = repl_nearest(word, command_name);
    if (length == 0)
        lua_pushliteral(L, "a command's name belongs behind ':'; see :help");
    else if (repl_count_commands(name, length, &found) > 1)
        push_candidates(L, word, length);
    else if (near != NULL)
        lua_pushfstring(L, "no command :%s; did you mean :%s?", word, near);
    else
        lua_pushfstring(L, "no command :%s; see :help", word);
    repl_report(L);
    lua_pop(L, 1);
}

/* Trailing blanks are no part of an argument. */
static const char *push_rest(lua_State *L, const char *rest)
{
    size_t length = strlen(rest);
    rest += strspn(rest, " \t");
    length = strlen(rest);
    while (length > 0 && strchr(" \t\r\n", rest[length - 1]) != NULL)
        length--;
    return lua_pushlstring(L, rest, length);
}

void repl_run_command(repl_session *session, const char *text)
{
    size_t length = strcspn(text, " \t\r\n");
    const repl_command *command = repl_find_command(text, length);
    const char *rest;
    if (command == NULL || length == 0) {
        complain_unknown(session->L, text, length);
        return;
    }
    rest = push_rest(session->L, text + length);
    repl_command_fn *run = functions[command - repl_command_at(0)];
    if (run != NULL)
        run(session, rest);
    else
        repl_show_call(session, command->name, rest);
    lua_pop(session->L, 1);
}

/* --- help --------------------------------------------------------------- */

void repl_print_help(repl_session *session, const char *topic)
{
    size_t length = strcspn(topic, "?");
    topic =
        lua_pushlstring(session->L, topic, length > 0 ? length : strlen(topic));
    lumat_push_help(session->L, topic);
    repl_print_top(session->L);
    lua_pop(session->L, 1);
}

void repl_print_search(repl_session *session, const char *word)
{
    if (word[0] == '\0') {
        repl_complain("??word needs a word to look for");
        return;
    }
    lumat_push_search(session->L, word);
    repl_print_top(session->L);
}

void repl_run_help(repl_session *session, const char *rest)
{
    repl_print_help(session, rest[0] != '\0' ? rest : ":");
}
