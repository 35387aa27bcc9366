/* The prompt: reading entries until the user leaves. */
#include "repl.h"

#include "commands.h"
#include "entry.h"
#include "history.h"
#include "line.h"
#include "paint.h"
#include "tab_completion.h"
#include "terminal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DROPPED = -1 };

/* --- read --------------------------------------------------------------- */

static void set_prompt(repl_session *session)
{
    const char *device = lumat_unusual_device(session->L);
    if (device != NULL)
        snprintf(session->prompt, sizeof session->prompt, "lumat[%s]> ",
                 device);
    else
        strcpy(session->prompt, "lumat> ");
}

/* A pasted block ends with a newline more than a typed one. */
static void cut_newlines(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr("\r\n", text[length - 1]) != NULL)
        text[--length] = '\0';
}

/* Puts a line behind the entry, and frees it. */
static void add_line(repl_session *session, char *line)
{
    size_t before = strlen(session->text), length = strlen(line);
    char *longer = realloc(session->text, before + length + 2);
    if (longer != NULL) {
        longer[before] = '\n';
        memcpy(longer + before + 1, line, length + 1);
        session->text = longer;
    }
    free(line);
}

/* A transcript gets what Ctrl-C cut off, too. */
static void log_cut(repl_session *session)
{
    const char *text = lua_pushfstring(session->L, "%s^C", session->text);
    lumat_transcribe(session->prompt, text);
    lua_pop(session->L, 1);
}

/* Reads one more line of the entry. A dropped entry can be recalled in this
 * session. */
static repl_line_end read_more(repl_session *session, const char *open)
{
    char prompt[128], *line;
    repl_line_end end;
    repl_continuation_prompt(session->prompt, open, session->style.ascii,
                             prompt, sizeof prompt);
    line = repl_read_line(prompt, &end);
    if (line != NULL)
        add_line(session, line);
    if (end != REPL_LINE_READ)
        repl_remember(session->text);
    if (end == REPL_LINE_INTERRUPTED)
        log_cut(session);
    session->quit = end == REPL_LINE_END;
    return end;
}

/* On a terminal who ends the input sees it. */
static void complain_unfinished(lua_State *L, const char *open)
{
    lua_pushfstring(L,
                    "the input ends in an unfinished entry, which did not "
                    "run: open is %s",
                    open);
    repl_report(L);
    lua_pop(L, 1);
}

/* Loads the entry, reading on until it is complete; where a line has rows, it
 * comes back to the prompt for that. Leaves the function or a
 * message on the stack, or nothing for a dropped entry. */
static int load_entry(repl_session *session, int *shown)
{
    lua_State *L = session->L;
    int status;
    while ((status = repl_load_entry(L, session->text, shown)) ==
           LUMAT_INCOMPLETE) {
        repl_line_end end = REPL_LINE_INTERRUPTED;
        if (repl_line_has_rows())
            repl_queue_entry(session->text, 0);
        else
            end = read_more(session, lua_tostring(L, -1));
        if (end == REPL_LINE_END && !isatty(STDIN_FILENO))
            complain_unfinished(L, lua_tostring(L, -1));
        lua_pop(L, 1);
        if (end != REPL_LINE_READ)
            return DROPPED;
    }
    return status;
}

/* Around what an entry does. Entries that wait behind one that failed do not
 * run. */
static void begin_entry(repl_session *session)
{
    session->complaints = repl_complaint_count();
    repl_take_style(session);
    repl_history_add(session->text);
    lumat_begin_entry(session->L, session->prompt, session->text);
}

static void end_entry(repl_session *session)
{
    if (repl_complaint_count() != session->complaints)
        repl_queue_failed();
    lumat_end_entry(session->L, 1, 0);
}

static void run_lua(repl_session *session)
{
    int shown, status = load_entry(session, &shown);
    if (status == DROPPED)
        return;
    cut_newlines(session->text);
    begin_entry(session);
    if (status == LUA_OK)
        repl_call_loaded(session, session->text, shown);
    else
        repl_report_unloaded(session->L, session->text);
    end_entry(session);
}

/* What is no Lua: a command, of the prompt or of the shell, or a question to
 * the help. */
static void run_other(repl_session *session, repl_entry_kind kind,
                      const char *rest)
{
    begin_entry(session);
    if (kind == REPL_COMMAND)
        repl_run_command(session, rest);
    else if (kind == REPL_SHELL)
        repl_run_shell(session, rest);
    else if (kind == REPL_HELP)
        repl_print_help(session, rest);
    else
        repl_print_search(session, rest);
    end_entry(session);
}

static void run_entry(repl_session *session)
{
    const char *rest;
    repl_entry_kind kind = repl_entry_kind_of(session->text, &rest);
    if (kind == REPL_LUA)
        run_lua(session);
    else if (kind != REPL_BLANK)
        run_other(session, kind, rest);
}

/* Reads the first line; the session ends with the input. */
static int read_first(repl_session *session)
{
    static int was_interrupted; /* at the prompt before */
    repl_line_end end;
    session->text = repl_read_line(session->prompt, &end);
    if (session->text == NULL) {
        session->quit = 1;
        return 0;
    }
    if (end == REPL_LINE_READ) {
        was_interrupted = 0;
        cut_newlines(session->text);
        return 1;
    }
    log_cut(session);
    if (session->text[0] != '\0')
        repl_remember(session->text);
    else if (was_interrupted)
        puts("Ctrl-D or :quit leaves");
    was_interrupted = 1;
    return 0;
}

/* --- the loop ----------------------------------------------------------- */

/* Where pictures were asked for, asks the terminal: once each time. */
static void look_for_pictures(repl_session *session)
{
    static int was_on;
    int *is_on = &lumat_settings_now()->pictures;
    char keys[200];
    if (*is_on && !was_on) {
        repl_ask_pictures(&session->screen, keys, sizeof keys);
        repl_give_keys(keys);
        if (session->screen.shows == LUMAT_SHOWS_NONE) {
            repl_note("pictures are off: the terminal does not say that it "
                      "shows any, as kitty, iTerm2 and those with sixels do");
            *is_on = 0;
        }
    }
    if (!*is_on)
        session->screen.shows = LUMAT_SHOWS_NONE;
    was_on = *is_on;
}

/* One entry, in protected mode: running out of memory ends it alone. */
static int step(lua_State *L)
{
    repl_session *session = lua_touserdata(L, 1);
    repl_take_style(session);
    set_prompt(session);
    look_for_pictures(session);
    if (read_first(session))
        run_entry(session);
    return 0;
}

/* Whether nobody gets what is printed. What a signal kept from a terminal, or
 * from a pipe that somebody reads, does not say so. */
static int is_output_lost(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    struct stat status;
    if (!ferror(stdout))
        return 0;
    if (!isatty(STDOUT_FILENO) &&
        (fstat(STDOUT_FILENO, &status) != 0 || !S_ISFIFO(status.st_mode)))
        return 1;
    if (poll(&output, 1, 0) < 0 || (output.revents & (POLLERR | POLLHUP)) != 0)
        return 1;
    clearerr(stdout);
    return 0;
}

char *repl_loop(lua_State *L)
{
    repl_session session = {.L = L};
    int failures = 0; /* to read an entry, in succession */
    repl_report_at_prompt();
    repl_keep_interrupts();
    repl_watch_at_prompt();
    repl_line_open(L);
    repl_offers_open(L);
    if (isatty(STDIN_FILENO))
        repl_history_open();
    while (!session.quit && !is_output_lost()) {
        lua_pushcfunction(L, step);
        lua_pushlightuserdata(L, &session);
        int status = lua_pcall(L, 1, 0, 0);
        if (status != LUA_OK)
            repl_report(L);
        failures =
            status == LUA_ERRMEM && session.text == NULL ? failures + 1 : 0;
        if (failures > 2)
            repl_leave_short();
        lumat_end_transcribed();
        free(session.text);
        session.text = NULL;
        repl_end_output();
    }
    return session.restart;
}

/* A file that could not be read stays. */
void repl_restore(lua_State *L, const char *path)
{
    repl_session session = {.L = L};
    int top = lua_gettop(L);
    lumat_begin_entry(L, "", ":restart"); /* of which this is the rest */
    lumat_push_required(L, "prompt_commands");
    lua_getfield(L, -1, "restore");
    lua_pushstring(L, path);
    if (repl_call_command(&session, 1))
        unlink(path);
    lumat_end_entry(L, 1, 0);
    lua_settop(L, top);
}
