/* The commands that are of the terminal: what was typed, programs of the shell,
 * scripts, time, the end. */
#include "command_list.h"

#include "history.h"
#include "line.h"
#include "terminal.h"

#include "lauxlib.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HISTORY_SHOWN = 20 };

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

/* --- programs ------------------------------------------------------------- */

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

/* Words are what they stand for, as in a shell. The table of them is on top. */
void repl_run_file(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    int words = lua_gettop(L), count = (int)lua_rawlen(L, words);
    (void)rest;
    if (!lua_checkstack(L, 2 * count + LUA_MINSTACK)) {
        repl_complain(":run: not enough memory");
        return;
    }
    char **list = lua_newuserdatauv(L, (size_t)count * sizeof *list, 0);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, words, i + 1);
        list[i] = (char *)lumat_push_path(L, lua_tostring(L, -1));
    }
    if (!lumat_may_open(list[0], 0)) {
        repl_complain(lua_pushfstring(
            L, ":run: --safe keeps '%s' from being read", list[0]));
        return;
    }
    int status = repl_load_file(L, list[0]);
    if (status != LUA_OK) {
        repl_load_failed(L, status);
        return;
    }
    repl_set_arg(L, list, count, 0);
    for (int i = 1; i < count; i++)
        lua_pushstring(L, list[i]);
    repl_run(L, count - 1);
}

void repl_run_time(repl_session *session, const char *rest)
{
    session->is_timed = 1;
    int ran = repl_evaluate(session, rest);
    session->is_timed = 0;
    if (!ran)
        return;
    lumat_push_watch(session->L, session->seconds);
    printf("  %s\n", lua_tostring(session->L, -1));
    lua_pop(session->L, 1);
}

/* Where the variables wait for the program to start anew; the caller frees it,
 * NULL: there is no memory. */
static char *restart_path(void)
{
    char path[PATH_MAX], name[48];
    snprintf(name, sizeof name, "restart-%ld.lum", (long)getpid());
    if (!repl_user_path(path, sizeof path, "XDG_STATE_HOME", ".local/state",
                        name) ||
        repl_make_folders(path) != 0)
        snprintf(path, sizeof path, "%s", name);
    return strdup(path);
}

/* Nothing is left where the variables cannot be saved. */
void repl_run_restart(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    (void)rest;
    if (lumat_is_safe()) {
        repl_complain(":restart: --safe starts no programs");
        return;
    }
    char *path = restart_path();
    lumat_push_required(L, "prompt_commands");
    lua_getfield(L, -1, "restart");
    lua_pushstring(L, path);
    if (path != NULL && repl_call_command(session, 1)) {
        session->restart = path;
        session->quit = 1;
        return;
    }
    free(path);
}

void repl_run_quit(repl_session *session, const char *rest)
{
    (void)rest;
    session->quit = 1;
}
