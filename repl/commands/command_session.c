/* Commands about the session: its variables, device, entries and scripts. */
#include "command_list.h"
#include "entry.h"
#include "history.h"
#include "terminal.h"

#include "lauxlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 64, HISTORY_SHOWN = 20 };

/* --- what is there ------------------------------------------------------ */

void repl_run_device(repl_session *session, const char *rest)
{
    const char *name = rest[0] != '\0' ? rest : NULL;
    repl_print_or_complain(session->L, lumat_push_device(session->L, name));
}

/* --- history ------------------------------------------------------------ */

/* The lines of an entry below each other. */
static void print_entry(int number, const char *entry)
{
    printf("%5d  ", number);
    for (size_t length; *entry != '\0'; entry += length) {
        length = strcspn(entry, "\n");
        lumat_write_visible(stdout, entry, length, 0);
        if (entry[length] == '\n')
            length++, printf("\n       ");
    }
    putchar('\n');
}

/* Where the last `most` entries begin. */
static int first_of_last(long most)
{
    int count = repl_remembered_count();
    return count > most ? count - (int)most : 0;
}

/* A number: that many of the last entries; other text: those that have it. */
void repl_run_history(repl_session *session, const char *rest)
{
    char *end;
    long most = strtol(rest, &end, 10);
    int is_number = end != rest && *end == '\0';
    int first = 0;
    const char *entry;
    (void)session;
    if (is_number || rest[0] == '\0')
        first = first_of_last(is_number ? most : HISTORY_SHOWN);
    for (int i = first; (entry = repl_remembered(i)) != NULL; i++)
        if (is_number || strstr(entry, rest) != NULL)
            print_entry(i + 1, entry);
}

/* --- running ------------------------------------------------------------ */

/* Cuts the text into words, in place; quotes keep blanks inside one. */
static int cut_words(char *text, char **words)
{
    int count = 0;
    while (count < MOST_WORDS) {
        const char *stop = " \t";
        text += strspn(text, " \t");
        if (*text == '\0')
            break;
        if (*text == '"' || *text == '\'')
            stop = *text++ == '"' ? "\"" : "'";
        words[count++] = text;
        text += strcspn(text, stop);
        if (*text != '\0')
            *text++ = '\0';
    }
    return count;
}

/* Words are what they stand for, as in a shell. */
static void run_words(lua_State *L, char **words, int count)
{
    int base = lua_gettop(L), status;
    for (int i = 0; i < count; i++)
        words[i] = (char *)lumat_push_path(L, words[i]);
    if (!lumat_may_open(words[0], 0)) {
        repl_complain(lua_pushfstring(
            L, ":run: --safe keeps '%s' from being read", words[0]));
        lua_settop(L, base);
        return;
    }
    status = repl_load_file(L, words[0]);
    if (status != LUA_OK) {
        repl_load_failed(L, status);
        lua_settop(L, base);
        return;
    }
    repl_set_arg(L, words, count, 0);
    for (int i = 1; i < count; i++)
        lua_pushstring(L, words[i]);
    repl_run(L, count - 1);
    lua_settop(L, base);
}

void repl_run_file(repl_session *session, const char *rest)
{
    char *words[MOST_WORDS], *text;
    int count;
    text = lua_newuserdata(session->L, strlen(rest) + 1);
    count = cut_words(strcpy(text, rest), words);
    if (!lua_checkstack(session->L, 2 * MOST_WORDS + LUA_MINSTACK))
        repl_complain(":run: not enough memory");
    else if (count == 0)
        repl_complain(":run needs a file");
    else
        run_words(session->L, words, count);
    lua_pop(session->L, 1);
}

/* --- files and programs --------------------------------------------------- */

/* Prints what the library's function gives for at most one word. */
static void print_call(repl_session *session, const char *function,
                       const char *rest)
{
    lua_State *L = session->L;
    int base = lua_gettop(L);
    char *words[MOST_WORDS], *text = lua_newuserdata(L, strlen(rest) + 1);
    int count = cut_words(strcpy(text, rest), words);
    if (count > 1) {
        repl_complain(lua_pushfstring(
            L, ":%s takes one name: quotes go around one with blanks in it",
            function));
        lua_settop(L, base);
        return;
    }
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, function);
    if (count > 0)
        lua_pushstring(L, words[0]);
    if (lua_pcall(L, count, 1, 0) == LUA_OK) {
        lumat_tolstring(L, -1, NULL);
        repl_print_top(L);
    } else {
        repl_report(L);
    }
    lua_settop(L, base);
}

void repl_run_cd(repl_session *session, const char *rest)
{
    print_call(session, "cd", rest);
}

void repl_run_pwd(repl_session *session, const char *rest)
{
    (void)rest;
    print_call(session, "pwd", "");
}

void repl_run_ls(repl_session *session, const char *rest)
{
    print_call(session, "ls", rest);
}

/* Does the command go to another folder, and do nothing there? */
static int only_changes_folder(const char *command)
{
    return strncmp(command, "cd", 2) == 0 &&
           (command[2] == '\0' || command[2] == ' ') &&
           strpbrk(command, ";&|\n") == NULL;
}

void repl_run_shell(repl_session *session, const char *text)
{
    lua_State *L = session->L;
    if (text[strspn(text, " \t\r\n")] == '\0') {
        repl_complain("! needs a command of the shell: !ls");
        return;
    }
    if (!lumat_run_shell(L, text)) {
        repl_report(L);
        return;
    }
    if (*lua_tostring(L, -1) != '\0')
        repl_note(lua_tostring(L, -1));
    lua_pop(L, 1);
    if (only_changes_folder(text))
        repl_note("that folder was the shell's; :cd goes to one here");
}

/* --- saving ------------------------------------------------------------- */

/* Adds the word to b as Lua writes a string. */
static void add_quoted(luaL_Buffer *b, const char *word)
{
    luaL_addchar(b, '"');
    for (; *word != '\0'; word++) {
        if (strchr("\"\\\r\n", *word) != NULL)
            luaL_addchar(b, '\\');
        luaL_addchar(b, *word);
    }
    luaL_addchar(b, '"');
}

/* Shows what the library's function gives for the words: the first alone, the
 * others, if there may be any, in a table. */
static void show_words(repl_session *session, const char *function,
                       const char *rest, int most)
{
    char *words[MOST_WORDS], *text;
    lua_State *L = session->L;
    luaL_Buffer b;
    text = lua_newuserdata(L, strlen(rest) + 1);
    int count = cut_words(strcpy(text, rest), words);
    if (count > most) {
        repl_complain(
            ":load takes one file: quotes go around a name with blanks in it");
        lua_pop(L, 1);
        return;
    }
    luaL_buffinit(L, &b);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            luaL_addstring(&b, i == 1 ? ", {" : ", ");
        add_quoted(&b, words[i]);
    }
    luaL_addstring(&b, count > 1 ? "}" : "");
    luaL_pushresult(&b);
    session->is_command = 1;
    repl_show_call(session, function, lua_tostring(L, -1));
    session->is_command = 0;
    lua_pop(L, 2);
}

void repl_run_save(repl_session *session, const char *rest)
{
    if (rest[0] == '\0')
        repl_complain(":save needs a file: :save work.lum");
    else
        show_words(session, "save_session", rest, MOST_WORDS);
}

void repl_run_load(repl_session *session, const char *rest)
{
    if (rest[0] == '\0')
        repl_complain(":load needs a file: :load work.lum");
    else
        show_words(session, "load_session", rest, 1);
}

void repl_run_quit(repl_session *session, const char *rest)
{
    (void)rest;
    session->quit = 1;
}
