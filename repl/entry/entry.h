/* Entries: what was typed at the prompt. Of what kind it is, where it ends, how
 * its rows are coloured and moved in, and running it; also running a script's
 * text. Sees the terminal; the rooms that draw, edit, complete and command see
 * this one.
 *
 * How an entry travels, from a key to its echo:
 *
 *   key        get_key (line/line.c) gives Readline a byte, or READERR after
 *              Ctrl-C. Readline looks up its command among those of
 *              line/keys.c, which changes the buffer, and has redisplay
 *              (paint/paint.c) draw it: repl_highlight_text, repl_draw.
 *   rows       RETURN is repl_accept (line/multiline.c). Of a pasted block it
 *              keeps what repl_first_entry says and queues the rest by
 *              repl_queue_entry; while repl_is_incomplete it begins a row by
 *              repl_insert_row. Else repl_paint_final draws the line as it
 *              stays, and rl_newline ends it.
 *   line       readline returns to edit_line, under repl_read_line; without a
 *              terminal plain_line reads a row. read_first (repl.c) has it.
 *   kind       run_entry (repl.c) asks repl_entry_kind_of: Lua goes on below;
 *              repl_run_command, repl_run_shell, repl_print_help and
 *              repl_print_search (commands/) take the others.
 *   chunk      load_entry compiles it by repl_load_entry, which calls
 *              lumat_load; where rows are lines of their own, read_more brings
 *              those that lack.
 *   history    begin_entry: repl_history_add writes it to the file before it
 *              runs, so that it is there whatever becomes of it, and
 *              lumat_begin_entry gives it its number and the transcript.
 *   call       repl_call_loaded calls repl_call, which lets Ctrl-C stop it,
 *              and that lumat_call.
 *   echo       of a statement that another one follows, echo_statement, as it
 *              runs; of the last one, echo: print_results by
 *              lumat_push_shown, or without results print_changes by
 *              lumat_each_change. keep_ans sets `ans`. An error goes to
 *              repl_report_entry, notes on names to repl_note.
 *   lineage    lumat_end_entry notes what the entry changed, for how().
 *   end        end_entry: after an error repl_queue_failed drops what waits.
 *              repl_end_output ends the row, and repl_loop begins anew. */
#ifndef ENTRY_H
#define ENTRY_H

#include "lumat.h"

#include <stddef.h>

/* --- the commands: command_table.c, from commands.def --------------------- */

/* What belongs behind a command, for completion and for how it is read: words,
 * of which there are as many as the form has, unless more is said. */
typedef enum repl_argument {
    REPL_NOTHING, /* words for which nothing is offered, if any */
    REPL_CHOICE,  /* one of `choices`, words between blanks */
    REPL_FILE,    /* choices: the kinds wanted first, ".lua"; or NULL: any */
    REPL_FOLDER,
    REPL_FILE_NAMES, /* the same, and names of variables behind it */
    REPL_SETTING,    /* its name, and a value of it */
    REPL_VARIABLE,   /* one of the user's own */
    REPL_DEVICE,
    REPL_TEXT, /* up to the end, as it is */
    REPL_TOPIC,
    /* Lua; in these, choices: the function that takes it as its arguments;
     * NULL: none, or that of the same name */
    REPL_EXPRESSION,
    REPL_MATRIX, /* that begins with a variable that holds one, or a frame */
    REPL_KERNEL  /* that, or a kernel's name */
} repl_argument;

/* A row of commands.def; what it does is known to commands/ alone. */
typedef struct repl_command {
    const char *name, *form, *help;
    repl_argument argument;
    const char *choices;
    int is_twin; /* it calls the library's function of the same name */
} repl_command;

/* Does it read words, not text or Lua? */
int repl_reads_words(const repl_command *command);

/* A part of a form: of "C [> file]" "C", ">" and "file". Begins as {form}. */
typedef struct repl_part {
    const char *text;
    size_t length;
    int depth; /* brackets around it: above 0 it may be left out */
    enum { REPL_WORD, REPL_OPTION, REPL_MARK, REPL_MORE } is;
} repl_part;

/* Goes on to the next part; 0: there is none. An option is "-s"; of the marks
 * "=" may stand between two words in place of a blank, and ">" has to; "…" is
 * any more words. */
int repl_next_part(repl_part *part);

/* The commands and their groups, for help. */
extern const lumat_row repl_command_rows[];

/* The command of a number from 0, in the order of commands.def, or NULL behind
 * the last. */
const repl_command *repl_command_at(int i);

/* The command of that name, or the only one whose name begins so, or NULL.
 * The name is of so many bytes and needs no end. */
const repl_command *repl_find_command(const char *name, size_t length);

/* How many commands begin so; found gets the last of them, or the exact one. */
int repl_count_commands(const char *name, size_t length,
                        const repl_command **found);

/* --- kinds, and where one ends: entry_kind.c ------------------------------ */

typedef enum repl_entry_kind {
    REPL_BLANK,
    REPL_LUA,
    REPL_COMMAND, /* :name arguments */
    REPL_HELP,    /* ?name, or name? */
    REPL_SEARCH,  /* ??word */
    REPL_SHELL    /* !command, or :!command */
} repl_entry_kind;

/* rest gets the text behind the mark, without blanks in front; of name? all. It
 * points into text. */
repl_entry_kind repl_entry_kind_of(const char *text, const char **rest);

/* Skips spaces and tabs. */
const char *repl_skip_blanks(const char *text);

/* Whether the text lacks something that rows below it could bring. Judged in
 * protected mode; the stack is as it was. */
int repl_is_incomplete(lua_State *L, const char *text);

/* Entries below each other, as a pasted block may have them, Lua between
 * :commands and questions to the help: the length of the first one, which ends
 * at a row that is not complete Lua's last or a command's; of all the text when
 * there is one. */
size_t repl_first_entry(lua_State *L, const char *text);

/* The first row of Lua text that is a command or a question, or NULL. */
const char *repl_find_command_row(const char *text);

/* --- colours and indents: highlight.c ------------------------------------- */

typedef enum repl_ink {
    REPL_INK_PLAIN,
    REPL_INK_PROMPT,
    REPL_INK_KEYWORD,
    REPL_INK_NUMBER,
    REPL_INK_STRING,
    REPL_INK_COMMENT,
    REPL_INK_COMMAND,
    REPL_INK_BRACKET, /* the one at the cursor, and its partner */
    REPL_INK_NOTE,    /* what is no part of the text */
    REPL_INKS,
    REPL_INK_REGION = 64 /* beside the others: the marked part */
} repl_ink;

/* How a text is coloured, and what its rows go on with. Begins as {0}; the
 * arrays are its own, reused by the next text, and grow. */
typedef struct repl_highlight {
    unsigned char *inks; /* of each byte of the text */
    const char **opens;  /* of each newline: what the row behind it goes on */
    size_t room, row_room;
} repl_highlight;

/* Colours a text with the cursor at byte point; LUMAT_NOWHERE: there is none.
 * Returns 0 when memory is short. */
int repl_highlight_text(repl_highlight *highlight, const char *text,
                        size_t length, size_t point);

/* The sequence that chooses an ink on the terminal. */
const char *repl_ink_sequence(unsigned char ink);

/* The blanks in front of a row that begins at byte point. */
int repl_next_indent(const char *text, size_t point);

/* The blanks in front of the row at start if it begins with a word or bracket
 * that closes an earlier row's construct, or goes on with its next part; else
 * -1. */
int repl_closing_indent(const char *text, size_t start, size_t length);

/* --- running one: run_entry.c --------------------------------------------- */

/* The prompt, and what its parts share. repl_loop owns it. */
typedef struct repl_session {
    lua_State *L;
    lumat_style style;   /* of the screen, as the entry found it */
    lumat_screen screen; /* what pictures it shows, where they are wanted */
    double seconds;      /* that the last call took, without its echoes */
    int is_timed;        /* a stopwatch is to run during the next */
    int quit;            /* set to leave after this entry */
    char *restart; /* the file of variables with which the program is to start
                      anew when it has left; NULL: it ends */
    unsigned complaints; /* as many as when the entry began */
    int keeps_ans;       /* what a command shows is no result of the user's */
    char prompt[64];
    char *text; /* the entry being typed or run; the session's own */
} repl_session;

/* What is shown from now on fits the screen as it is now. */
void repl_take_style(repl_session *session);

/* Compiles an entry as lumat_load does, with the same results; '=' in front
 * makes it an expression, as in Lua 5.2. */
int repl_load_entry(lua_State *L, const char *text, int *shown);

/* Reports the message a load left, and pops it. */
void repl_report_unloaded(lua_State *L, const char *text);

/* Calls the loaded entry on top of the stack, echoes or reports what comes of
 * it, and takes both away. Returns 1 when it ran. */
int repl_call_loaded(repl_session *session, const char *text, int shown);

/* Calls the function of a command under nargs arguments, shows its results or
 * reports what comes of it, and takes all away. What it changes is noted under
 * the command's text; `ans` stays. Returns 1 when it ran. */
int repl_call_command(repl_session *session, int nargs);

/* All of it, for text that has to be complete. Returns 1 when it ran. */
int repl_evaluate(repl_session *session, const char *text);

/* --- files, and code that was not typed: script.c ------------------------- */

/* Compiles a file (NULL: standard input), source text only, of at most 256 MiB:
 * what goes on for ever has an end there. Pushes the function and returns
 * LUA_OK, or pushes what is wrong. */
int repl_load_file(lua_State *L, const char *path);
/* The same of a file that nobody named: a regular one. */
int repl_load_own_file(lua_State *L, const char *path);

/* Compiles code of the command line: an expression, or, unless one is asked
 * for, statements. Pushes and returns as repl_load_file. */
int repl_load_code(lua_State *L, const char *code, int expression);

/* Calls the function under nargs arguments, leaves its results and returns 0.
 * When it fails, reports the error, with a traceback when it came from deeper
 * than the main chunk and is no interrupt, leaves nothing, and returns the exit
 * code. */
int repl_run(lua_State *L, int nargs);

/* Reports what a load pushed instead of a function; returns the exit code. */
int repl_load_failed(lua_State *L, int status);

/* Sets `arg`: words[script] at 0, those behind it from 1, those before it
 * below 0. Without a script (script == count) the first word is at 0. */
void repl_set_arg(lua_State *L, char **words, int count, int script);

#endif
