/* The commands of the prompt: finding and running them, and their help. */
#include "commands.h"

#include "command_list.h"
#include "echo.h"
#include "guess.h"
#include "report.h"

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

/* --- the table ---------------------------------------------------------- */

static const repl_command commands[] = {
#define COMMAND(name, form, help, argument, choices, run) \
    {#name, form, help, REPL_##argument, choices, run},
#define TWIN(name, form, help, argument) \
    {#name, form, help, REPL_##argument, NULL, NULL},
#include "commands.def"
#undef COMMAND
#undef TWIN
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

const repl_command *repl_command_at(int i)
{
    return i < COMMANDS ? &commands[i] : NULL;
}

static const char *command_name(int i)
{
    return i < COMMANDS ? commands[i].name : NULL;
}

/* How many commands begin so; found gets the last of them, or the exact one. */
static int count_matches(const char *name, size_t length,
                         const repl_command **found)
{
    int count = 0;
    for (int i = 0; i < COMMANDS; i++) {
        if (strncmp(commands[i].name, name, length) != 0)
            continue;
        *found = &commands[i];
        if (commands[i].name[length] == '\0')
            return 1;
        count++;
    }
    return count;
}

const repl_command *repl_find_command(const char *name, size_t length)
{
    const repl_command *found = NULL;
    return count_matches(name, length, &found) == 1 ? found : NULL;
}

/* Pushes ":h may be :help or :history". */
static void push_candidates(lua_State *L, const char *word, size_t length)
{
    int count = 0;
    lua_pushfstring(L, ":%s may be ", word);
    for (int i = 0; i < COMMANDS; i++) {
        if (strncmp(commands[i].name, word, length) != 0)
            continue;
        lua_pushfstring(L, "%s:%s", count++ > 0 ? " or " : "",
                        commands[i].name);
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
    else if (count_matches(name, length, &found) > 1)
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
    if (command->run != NULL)
        command->run(session, rest);
    else
        repl_show_call(session, command->name, rest);
    lua_pop(session->L, 1);
}

/* --- help --------------------------------------------------------------- */

const lumat_row repl_command_rows[] = {
#define GROUP(title) {title, NULL, NULL},
#define COMMAND(name, form, help, argument, choices, run) {#name, form, help},
#define TWIN(name, form, help, argument) {#name, form, help},
#include "commands.def"
#undef COMMAND
#undef TWIN
    {NULL, NULL, NULL}};

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
