/* The language, as the terminal sees it: a Lua state that knows matrices, and
 * what a prompt needs of it. The only header of lua/ that repl/ may include.
 *
 * Functions named push_… or said to push leave one string on the stack. None
 * of them raises an error unless it says so. */
#ifndef LUMAT_H
#define LUMAT_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include "lua.h"
#include "window.h"

#define LUMAT_VERSION "0.1.0"

/* What scripts are kept from. */
typedef enum lumat_safety {
    LUMAT_UNSAFE,
    LUMAT_SAFE_LANGUAGE, /* by taking functions away alone */
    LUMAT_SAFE           /* and by fences of the kernel's */
} lumat_safety;

typedef struct lumat_options {
    const char *device; /* NULL: chosen at the first matrix */
    lumat_safety safe;
    const char *folders;         /* of --safe, "DIR[:ro],…"; NULL: "." */
    const char *const *readable; /* files beside them, up to a NULL */
    size_t memory; /* most bytes of Lua's heap and host matrices; 0: all */
    int strict;    /* globals that were never set are errors */
    int bytecode;  /* `load` takes precompiled chunks (Lua's own tests) */
} lumat_options;

/* With --safe, before there is any thread: raises the first fence. Returns 0
 * with why it does not stand (of size bytes). The options stay the caller's,
 * as they are. */
int lumat_fence(const lumat_options *options, char *why, size_t size);

/* A state with the standard library and lumat's; with --safe the device is
 * open and the second fence stands. NULL with why. */
lua_State *lumat_open(const lumat_options *options, char *why, size_t size);
void lumat_close(lua_State *L);

/* Opens the chosen device now. Returns 1, or 0 and pushes why not. */
int lumat_require_device(lua_State *L);
/* Opens it on a thread, while the user types. */
void lumat_prepare_device(void);

/* --- entries typed at the prompt ----------------------------------------- */

/* Messages about an entry begin with this, a line number and a colon. */
#define LUMAT_CHUNK "lumat"

enum { LUMAT_INCOMPLETE = 100 }; /* beside Lua's own status codes */

/* Compiles an entry: Lua, in which lists of expressions may stand as
 * statements of the top level. Each but the last is given to the function of
 * lumat_set_echo when it is reached, the last one is what the entry returns.
 * Its locals will survive it. Pushes the function and returns LUA_OK; or
 * pushes a message and returns LUA_ERRSYNTAX; or pushes the open construct's
 * name ("for", "function", "(", "[[" …) and returns LUMAT_INCOMPLETE. shown
 * becomes 0 when a ';' ends the entry. */
int lumat_load(lua_State *L, const char *text, size_t length, int *shown);

/* The values are on the stack from 1 on; shown: they end a row, without a ';'.
 * What it raises ends the entry. */
typedef void lumat_echo_fn(lua_State *L, int shown);
void lumat_set_echo(lumat_echo_fn *echo);

/* With a syntax error's message on top, adds what to write where the line in
 * text shows a habit of another language: A(1,2) = 3, !=, +=, .*, A'. */
void lumat_explain_syntax(lua_State *L, const char *text, size_t length);

/* Calls the function under nargs arguments, waits for the devices, and
 * leaves its results, or the error value, in place of function and
 * arguments. Returns Lua's status. */
int lumat_call(lua_State *L, int nargs);
/* Pushes the traceback of the last one's error, of the user's functions, or
 * nil when none of them had called another; then returns NULL. */
const char *lumat_push_last_traceback(lua_State *L);

/* Around what is typed at the prompt, Lua or a :command: its number is counted,
 * what it changed is noted for how() and made_by(), and a transcript gets it
 * with its output. A pair within another, without a prompt, notes changes
 * under its own text, or with NULL under that of the other. */
void lumat_begin_entry(lua_State *L, const char *prompt, const char *text);
void lumat_end_entry(lua_State *L, int ok, double seconds);
/* The same for a transcript alone: an entry, with NULL for the prompt none, and
 * what is printed up to the end. */
void lumat_transcribe(const char *prompt, const char *text);
void lumat_end_transcribed(void);
/* What the terminal itself has shown: "^C". */
void lumat_transcribe_echo(const char *text);
/* How an entry reads standard input, and what is called around a program that
 * it starts or a terminal that it opens: the program may read it. */
typedef struct lumat_typing {
    ssize_t (*read)(char *text, size_t size);
    void (*lend)(void), (*take_back)(void);
} lumat_typing;
void lumat_set_typing(const lumat_typing *ways);
/* What the signal handler that is there for faults while an experiment runs is
 * to call before the program dies. */
void lumat_at_fault(void (*function)(void));
/* Whether what was printed by entries left text in the terminal's row; from
 * now on it has not. */
int lumat_take_open_row(void);

/* Is the value io.stdout or io.stderr? */
int lumat_is_own_output(lua_State *L, int index);

/* Sets `ans` to the value at index. */
void lumat_set_ans(lua_State *L, int index);

/* Reports every global and session local that the last lumat_call through
 * lumat_load set to another value, in order of name, but for those that a
 * statement with a ';' behind it set. headline is one line. */
typedef void lumat_name_fn(void *data, const char *name, const char *headline);
void lumat_each_change(lua_State *L, lumat_name_fn *each, void *data);

/* With the error value of the last entry at index, or 0: tells once of each
 * name without a value that it passed on, when something else may have been
 * meant, or nil was the error. headline is "mattt is nil; did you mean mat?"
 * Tells as well, with "" for the name, of an entry without an error that would
 * do something else in another language. */
void lumat_each_unset(lua_State *L, int error, lumat_name_fn *each, void *data);

/* Tells what the last entry says in Lua that may not be what was meant, such as
 * `A == 1`: one boolean, and no mask. The name is "". */
void lumat_each_remark(lua_State *L, lumat_name_fn *each, void *data);

/* --- the text of an entry --------------------------------------------------
 */

typedef enum lumat_token_kind {
    LUMAT_BLANK,
    LUMAT_NAME,
    LUMAT_KEYWORD,
    LUMAT_NUMBER,
    LUMAT_STRING,
    LUMAT_COMMENT,
    LUMAT_SIGN /* ".." and "==" too; also a character that is no Lua */
} lumat_token_kind;

typedef struct lumat_token {
    lumat_token_kind kind;
    size_t start, end;
    size_t content; /* of a string or comment: behind its opening mark */
    int open;       /* a string or comment that the text ends in */
} lumat_token;

enum { LUMAT_OPEN_IN_LINE = 2 }; /* open, and a newline would end it badly */

/* Reads the token behind the last one; all zero in front of the first. Every
 * character belongs to a token. Returns 0 at the end. */
int lumat_next_token(const char *text, size_t length, lumat_token *token);

enum { LUMAT_DEEPEST = 64 }; /* constructs in each other that have a name */
#define LUMAT_NOWHERE ((size_t)-1)

typedef struct lumat_construct {
    const char *name; /* "for", "function", "(" … */
    size_t place;
    int awaits_do;
} lumat_construct;

/* What is open behind the tokens it was given; all zero at first. */
typedef struct lumat_nesting {
    lumat_construct open[LUMAT_DEEPEST]; /* innermost last */
    int depth;
} lumat_nesting;

/* Takes the next token. Returns where the construct began that it closes, or
 * LUMAT_NOWHERE. */
size_t lumat_nest(lumat_nesting *nesting, const char *text,
                  const lumat_token *token);
/* The name of the innermost open construct, or "". */
const char *lumat_innermost(const lumat_nesting *nesting);
/* The mark with which a string or comment of several lines begins: "[[" or
 * "--[["; "" for other tokens. */
const char *lumat_open_token(const char *text, const lumat_token *token);

/* Runs a command of the shell, which has the terminal meanwhile; Ctrl-C ends
 * it. Pushes what there is to say of its end, "exit 3" or "interrupted", or "".
 * Returns 0 with a message pushed when it may not be started, or cannot. */
int lumat_run_shell(lua_State *L, const char *command);

/* Pushes the path of a file that a user named: "~/name" is in his home. */
const char *lumat_push_path(lua_State *L, const char *path);

/* --- showing values ------------------------------------------------------- */

enum { LUMAT_ALL_COLOURS = 2 };

typedef struct lumat_style {
    int width, height; /* of the screen; 0: 80 columns, 24 rows */
    int colour;        /* 1: SGR colours; LUMAT_ALL_COLOURS: of 24 bits, too */
    int ascii;         /* 1: no … or ⋮ */
    int full;          /* 1: nothing is left out */
} lumat_style;

typedef enum lumat_colour {
    LUMAT_COLOUR_AUTO, /* as the terminal and NO_COLOR say */
    LUMAT_COLOUR_ALWAYS,
    LUMAT_COLOUR_NEVER
} lumat_colour;

/* When there are colours: a setting, for the terminal to follow. */
void lumat_set_colour(lumat_colour when);
lumat_colour lumat_get_colour(void);

/* Writes what others wrote (a file's name, an error's text) so that a terminal
 * obeys none of it: control characters, marks of direction and what is no UTF-8
 * become \x1B or \u{202E}. Newlines and tabs stay, colours if asked for. */
void lumat_write_visible(FILE *to, const char *text, size_t length,
                         int with_colours);

/* The same of up to a KiB of formatted text, without colours. */
void lumat_print_visible(FILE *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Behind the colour that text begins with, or text when there is none. */
const char *lumat_skip_colour(const char *text);
/* Takes the colours out of the text; returns its new length. */
size_t lumat_strip_colours(char *text);

/* The style that print and tostring use, 80x24 without colour at first. */
void lumat_set_style(lua_State *L, const lumat_style *style);

/* Pushes the value at index as an echo shows it: a matrix in full, strings
 * quoted, tables a level deep. May wait for a device; may fail: then pushes
 * the message and returns 0. */
int lumat_push_shown(lua_State *L, int index, const lumat_style *style);

/* What a message calls the value at index, behind "a": "matrix", "sparse
 * matrix", "file", "table" … The text stays as long as the value does. */
const char *lumat_kind_of(lua_State *L, int index);

/* Pushes "f32 4096x4096  cuda:0  64.0 MiB", or a short form of any value. */
void lumat_push_headline(lua_State *L, int index);

/* What view(A) calls with the matrix and its name, and last() with a text. */
void lumat_set_screens(lua_State *L, lua_CFunction view, lua_CFunction page);

/* --- what is there -------------------------------------------------------- */

/* A line of what the terminal has to tell: "race", "A, B", "every kernel …".
 * One without a form is the heading of those below it; one without a name
 * ends the list. */
typedef struct lumat_row {
    const char *name, *form, *help;
} lumat_row;

/* The commands and the options of the command line, for help, search and the
 * manual. The lists stay the caller's. */
void lumat_describe(const lumat_row *commands, const lumat_row *options);

/* Pushes the help on a function, a topic or a :command, and returns 1; for
 * an unknown one pushes what it may have meant and returns 0. NULL: the page
 * of first things; ":": the list of commands. */
int lumat_push_help(lua_State *L, const char *topic);
/* Pushes names whose help mentions the words, or words like them. */
void lumat_push_search(lua_State *L, const char *words);
/* Pushes the whole manual as "text", "markdown" or "roff" (a manual page);
 * returns 0 with a message pushed for any other form. */
int lumat_push_manual(lua_State *L, const char *form);
/* Pushes the table of the user's variables, or of those whose names match a
 * pattern such as "tmp*" (NULL: all); by name, or the largest first. */
void lumat_push_who(lua_State *L, const char *pattern, int by_size);
/* Pushes the device's state; with a name, makes it the default first. Returns
 * 0 with the message pushed when there is no such device. */
int lumat_push_device(lua_State *L, const char *name);
void lumat_set_trace(lua_State *L, int on);
/* Sets what :set sets and pushes its new value; with "" for the value pushes
 * the old one; with "" for the name all. Returns 0 with a message pushed when
 * there is no such setting or value. */
int lumat_push_setting(lua_State *L, const char *name, const char *value);
/* The words among a setting's values, between blanks. */
const char *lumat_setting_words(const char *name, size_t length);
/* Starts a stopwatch that the next lumat_call stops; then pushes "2.9 ms" of
 * the time given and what else there is to say of the call. */
void lumat_start_watch(lua_State *L);
void lumat_push_watch(lua_State *L, double seconds);
/* The default device when it is open and not the one auto takes; else NULL.
 * For the prompt. */
const char *lumat_unusual_device(lua_State *L);

/* --- completion ----------------------------------------------------------- */

/* What a word of its own may be. */
typedef enum lumat_wanted {
    LUMAT_ANYTHING,
    LUMAT_VARIABLES, /* the user's own */
    LUMAT_MATRICES,  /* of the variables, those that hold one */
    LUMAT_KERNELS,   /* those, or a kernel */
    LUMAT_DEVICES,
    LUMAT_TOPICS /* names that have help */
} lumat_wanted;

typedef struct lumat_completion {
    size_t start;      /* of the word that ends at the cursor */
    int fitting;       /* so many of the first offers fit an operand */
    const char *files; /* a file's name belongs here, and ".csv .npy" are
                          wanted before others; "": any; NULL: no file's */
    char quote;        /* the one that is open, or 0 */
    int is_note;       /* offers are only for reading: a usage and its help */
} lumat_completion;

/* Calls each(data, completion, note) for whatever may stand in place of the
 * word that ends at point in line, in the order in which to list it. Never
 * runs user code or waits for a device. note may be "f32 4x4 cpu" or "". */
lumat_completion lumat_complete(lua_State *L, const char *line, size_t point,
                                lumat_wanted wanted, lumat_name_fn *each,
                                void *data);

/* --- warnings ------------------------------------------------------------- */

/* What is given each warning that is not silenced, one or more lines; NULL:
 * they go to standard error as they are. It must raise nothing. */
typedef void lumat_warning_fn(const char *message);
void lumat_set_warnings(lumat_warning_fn *print);
/* What is given each note for one who types, from a prompt on. */
void lumat_set_notes(lumat_warning_fn *print);

/* --- watching ------------------------------------------------------------- */

/* Between the two, draw gets a picture of what watch(A) named, about 8 times a
 * second, lines between newlines. start raises nothing. */
typedef void lumat_draw_fn(void *data, const char *picture);
void lumat_watch_start(lua_State *L, const lumat_style *style,
                       lumat_draw_fn *draw, void *data);
void lumat_watch_end(void);

/* --- stopping ------------------------------------------------------------- */

/* Safe in a signal handler: what runs in L stops with "interrupted at
 * f.lua:31". */
void lumat_interrupt(lua_State *L);
/* Outside lumat_call, which does it: what was to stop has come to its end. */
void lumat_end_interrupt(lua_State *L);

/* How far the running operation is, if it may last. Called around it, on the
 * language's own thread, are the two functions; look may be called from any
 * other, and returns 0 when none runs. */
typedef struct lumat_progress {
    char what[96];  /* "matmul 8000x8000x8000" */
    double seconds; /* since it began */
    double share;   /* done of what is to do; negative: unknown */
    double left;    /* seconds; negative: unknown */
} lumat_progress;
void lumat_watch_progress(void (*began)(void), void (*ended)(void));
int lumat_look_at_progress(lumat_progress *out);
/* A longer task, of which operations are parts: what is done, and for how many
 * seconds already; NULL when it has ended. Called on the language's thread. */
void lumat_watch_tasks(void (*changed)(const char *what, double seconds));

/* The exit code for the error value at index: 1, or 3 (no usable GPU), 4
 * (out of memory), 130 (interrupted). */
int lumat_exit_code(lua_State *L, int index);

#endif
