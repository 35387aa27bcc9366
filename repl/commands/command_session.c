/* Commands about the session: what is there, what was typed, folders and
 * programs, settings, scripts, saving, the log. */
#include "command_list.h"

#include "history.h"
#include "line.h"
#include "terminal.h"

#include "lauxlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORDS = 64, HISTORY_SHOWN = 20 };

/* --- what is there -------------------------------------------------------- */

/* Takes the first word off the text, and returns how long it is. */
static size_t next_word(const char **text, const char **word)
{
    size_t length;
    *text += strspn(*text, " \t");
    *word = *text;
    length = strcspn(*text, " \t");
    *text += length;
    return length;
}

/* :who [pattern] [-s], in any order. */
void repl_run_who(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    const char *word, *pattern = NULL;
    size_t length;
    int base = lua_gettop(L), by_size = 0;
    while ((length = next_word(&rest, &word)) > 0) {
        if (length == 2 && strncmp(word, "-s", 2) == 0)
            by_size = 1;
        else if (pattern != NULL || word[0] == '-')
            break;
        else
            pattern = lua_pushlstring(L, word, length);
    }
    if (length > 0)
        repl_complain(":who takes a name or a pattern such as tmp*, and -s to "
                      "put the largest first");
    else {
        const char *name =
            pattern ? repl_push_quoted(L, pattern, strlen(pattern)) : "nil";
        repl_show_call(
            session, "who",
            lua_pushfstring(L, by_size ? "%s, {sort = 'size'}" : "%s", name));
    }
    lua_settop(L, base);
}

void repl_run_device(repl_session *session, const char *rest)
{
    const char *name = rest[0] != '\0' ? rest : NULL;
    repl_print_or_complain(session->L, lumat_push_device(session->L, name));
}

void repl_run_mem(repl_session *session, const char *rest)
{
    if (rest[0] == '\0' || repl_is_choice("mem", rest))
        repl_show_strings(session, "mem", rest, strlen(rest), "");
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
        repl_show_strings(session, "how", rest, length, file);
    lua_pop(session->L, 1);
}

/* --- typing --------------------------------------------------------------- */

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

/* A number: that entry of :history; a text: the last entry that has it; else
 * the last one. The command itself is the newest of all. */
static const char *find_entry(const char *rest)
{
    char *end;
    long number = strtol(rest, &end, 10);
    int last = repl_remembered_count() - 1;
    const char *newest = repl_last_remembered();
    if (newest != NULL && newest[strspn(newest, " \t")] == ':')
        last--;
    if (end != rest && *end == '\0')
        return number >= 1 && number <= last + 1
                   ? repl_remembered((int)number - 1)
                   : NULL;
    while (last >= 0 && strstr(repl_remembered(last), rest) == NULL)
        last--;
    return repl_remembered(last);
}

static void complain_missing(const char *rest)
{
    char message[128];
    if (rest[0] == '\0')
        snprintf(message, sizeof message, ":edit: there is no entry yet");
    else
        snprintf(message, sizeof message,
                 ":edit: no entry '%.60s'; :history lists them", rest);
    repl_complain(message);
}

/* What was saved comes to the next prompt, for RETURN to run it. */
void repl_run_edit(repl_session *session, const char *rest)
{
    const char *entry = find_entry(rest);
    char *text;
    (void)session;
    if (!isatty(STDIN_FILENO)) {
        repl_complain(":edit needs a terminal");
        return;
    }
    if (entry == NULL) {
        complain_missing(rest);
        return;
    }
    fflush(stdout);
    text = repl_edit_text(entry);
    if (text != NULL)
        repl_queue_entry(text, 0);
    free(text);
}

void repl_run_keys(repl_session *session, const char *rest)
{
    (void)session;
    (void)rest;
    repl_print_keys();
}

/* --- words ---------------------------------------------------------------- */

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

/* --- folders and programs ------------------------------------------------- */

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

/* --- the session ---------------------------------------------------------- */

/* "digits 6", "digits=6" and "digits = 6" are one. */
void repl_run_set(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    size_t length = strcspn(rest, " \t=");
    const char *name = lua_pushlstring(L, rest, length);
    const char *value = rest + length + strspn(rest + length, " \t=");
    int ok = lumat_push_setting(L, name, value);
    lua_remove(L, -2);
    repl_print_or_complain(L, ok);
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
        repl_push_quoted(L, words[i], strlen(words[i]));
        luaL_addvalue(&b);
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
        name = repl_push_quoted(L, name, strlen(name));
        name = lua_pushfstring(L, "require 'lumat'.transcript(%s);", name);
        ok = repl_evaluate(session, name);
    }
    if (ok)
        print_log(L);
    lua_settop(L, top);
}

void repl_run_quit(repl_session *session, const char *rest)
{
    (void)rest;
    session->quit = 1;
}
