/* Matrices as Lua values, and what every function written in C needs beside
 * them: errors, names and texts in messages, warnings, the library's tables.
 *
 * For all rooms of lua/ but parse, and through lumat.h for repl/. What is of a
 * subject of its own has a header of its own: cancellation.h (Ctrl-C), fence.h
 * (--safe, and files) and settings.h.
 *
 * A Lua error is a longjmp. So an output's userdata is pushed first, empty,
 * and then filled: whatever raises later, the collector frees it. "Pushes" is
 * one value on the stack unless more is said; a text that is returned with it
 * lives as long as it stays there. */
#ifndef LUMAT_VALUE_H
#define LUMAT_VALUE_H

#include "gpu.h"
#include "lauxlib.h"
#include "lua.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- how a state is begun ------------------------------------------------- */

#define LUMAT_VERSION "0.1.0"

/* What scripts are kept from. */
typedef enum lumat_safety {
    LUMAT_UNSAFE,
    LUMAT_SAFE_LANGUAGE, /* by taking functions away alone */
    LUMAT_SAFE           /* and by fences of the kernel's */
} lumat_safety;

/* What lumat_open is told. The texts stay the caller's, as they are, as long as
 * the state is open. */
typedef struct lumat_options {
    const char *device; /* NULL: chosen at the first matrix */
    lumat_safety safe;
    const char *folders;         /* of --safe, "DIR[:ro],…"; NULL: "." */
    const char *const *readable; /* files beside them, up to a NULL */
    size_t memory; /* most bytes of Lua's heap and host matrices; 0: all */
    int strict;    /* globals that were never set are errors */
    int bytecode;  /* `load` takes precompiled chunks (Lua's own tests) */
} lumat_options;

/* --- matrices ------------------------------------------------------------- */

/* Pushes an empty matrix (storage NULL) that the collector will release. It is
 * to be filled by a function of gpu.h, and then told of to lumat_account. */
gpu_matrix *lumat_new_matrix(lua_State *L);
/* The matrix at index, which stays the userdata's: NULL when it is none; one
 * that was freed has no storage. */
gpu_matrix *lumat_test_matrix(lua_State *L, int index);
/* The same of an argument; raises when it is none, is sparse or was freed. */
gpu_matrix *lumat_check_matrix(lua_State *L, int arg);
/* Called before an argument is refused for its kind: raises in the words of
 * the row of the function that runs, where there is one. */
extern void (*lumat_before_refusing)(lua_State *L, int arg);
/* Raises "A + B: B is nil, expected a matrix or a number" of the operand at
 * arg, 1 or 2, of the operator that runs. */
int lumat_refuse_operand(lua_State *L, int arg);
/* Where the right operand is a table that has the event ("__mul") itself, as a
 * distributed matrix, pushes what it gives and returns 1: Lua asks the left one
 * alone. */
int lumat_call_right(lua_State *L, const char *event);
/* After filling a new matrix: counts the bytes of its storage for the
 * collector, which does a step for every few results, or every 512 KiB of small
 * ones; nothing in a dry run. */
void lumat_account(lua_State *L, const gpu_matrix *m);
/* The same of bytes that no storage has, as a library's own of factors. */
void lumat_account_bytes(lua_State *L, size_t bytes);
/* Gives up the memory of a matrix, or of a sparse one, once what waits for its
 * elements has been worked out; in a dry run what exists stays. A finaliser may
 * run in the middle of an operation, which still reads its operands: what it
 * frees is freed when the next result is there. */
void lumat_free_value(lua_State *L, int index);

/* What an operand of gpu_map_over is to the function that runs: an argument
 * alone, or the key or the value of the assignment in Lua that calls it, too.
 */
typedef enum lumat_taking {
    LUMAT_TAKE_ARGUMENT,
    LUMAT_TAKE_KEY,
    LUMAT_TAKE_VALUE
} lumat_taking;
/* The matrix at arg, an absolute index; where it waits, and has not target's
 * storage, taken from the stack: then that has nil in its place, and taken,
 * which is returned, a reference, to be released. So what has it else is no
 * more than variables, tables and functions, and a collection finds whether
 * they do. May raise for want of memory, but not of an argument alone. */
const gpu_matrix *lumat_take(lua_State *L, int arg, const gpu_matrix *target,
                             lumat_taking how, gpu_matrix *taken);

/* The same elements as m's, those of a vector of n as 1 x n. Holds no
 * reference: m must outlive it, and it is not to be released. */
gpu_matrix lumat_as_rows(const gpu_matrix *m);
/* Pushes "3x4" or "vector 5". */
void lumat_push_shape(lua_State *L, const gpu_matrix *m);
/* The type of new matrices, as set: GPU_F32 or GPU_F64. */
gpu_dtype lumat_default_dtype(lua_State *L);
void lumat_set_default_dtype(gpu_dtype type);

void lumat_open_matrix(lua_State *L); /* the metatable, the collector */

/* --- sparse matrices ------------------------------------------------------ */

#define LUMAT_SPARSE "lumat.sparse" /* the metatable in the registry */

/* Pushes an empty sparse matrix that the collector will release; to be filled,
 * and told of to lumat_account_sparse, like a dense one. */
gpu_sparse *lumat_new_sparse(lua_State *L);
/* The sparse matrix at index, or NULL; one that was freed has no storage. Makes
 * the arrays of a transpose that nobody has read: raises where there is no
 * room.
 */
gpu_sparse *lumat_test_sparse(lua_State *L, int index);
/* The same as it is, for those who look at sizes, type, device and whether it
 * was freed alone: of such a transpose nothing else is there. Never raises. */
const gpu_sparse *lumat_look_at_sparse(lua_State *L, int index);
/* The one at 1, which metamethods and methods begin with, freed or not; raises
 * for anything else. */
gpu_sparse *lumat_check_sparse(lua_State *L);
/* After filling a new one: counts its bytes for the collector. */
void lumat_account_sparse(lua_State *L, const gpu_sparse *s);

/* Gives up the arrays of the sparse matrix at index. */
void lumat_release_sparse(lua_State *L, int index);

/* S.T: pushes the transpose of the sparse matrix at index, which is made once,
 * when it is read, and kept; until the matrix is written to or freed, which
 * drops it. */
void lumat_push_transpose(lua_State *L, int index);
void lumat_drop_transpose(lua_State *L, int index);

/* full(S): pushes the dense matrix of the sparse one at index, and returns 1.
 */
int lumat_push_dense(lua_State *L, int index);
/* The operator * when 1 or 2 is a sparse matrix: S * x, S * D and S * v.
 * Raises with what to write instead where there is no such product. */
int lumat_multiply_sparse(lua_State *L);
/* The same as matmul, by a kernel that is asked for; NULL: none is. */
int lumat_matmul_sparse(lua_State *L, const char *kernel);

/* S:full() and the like, up to one without a name. */
extern const luaL_Reg lumat_sparse_methods[];

void lumat_open_sparse(lua_State *L); /* the metatable, operators */

/* --- errors --------------------------------------------------------------- */
/* gpu/ returns a status and keeps a message; here that becomes an error. */

/* Does nothing but lumat_after_success when status is GPU_OK. Else raises
 * gpu_message() with the script's place, or that the call was interrupted, or
 * that an operand is incomplete; the kind stays in the registry for the exit
 * code. */
void lumat_try(lua_State *L, gpu_status status);
/* What lumat_try calls after every success but in a dry run; NULL: nothing. It
 * may raise. */
extern void (*lumat_after_success)(lua_State *L);
/* Raises "place: message", as lua_pushfstring formats it; the message must not
 * end in a full stop. Returns nothing: `return lumat_raise(…)`. */
int lumat_raise(lua_State *L, const char *format, ...);

/* What two operands have to agree in. */
typedef enum lumat_fit {
    LUMAT_FIT_ELEMENTS, /* one shape, or broadcast */
    LUMAT_FIT_PRODUCT,  /* inner sizes */
    LUMAT_FIT_ROWS,
    LUMAT_FIT_COLUMNS,
    LUMAT_FIT_LENGTHS /* of two vectors */
} lumat_fit;

/* Whether the shapes agree; a vector is a row on the left of a product and in
 * COLUMNS, else a column. */
int lumat_fits(const gpu_matrix *left, const gpu_matrix *right, lumat_fit fit);
/* Raises gpu_message() followed by names and shapes of the two matrices, at
 * the indices left and right, and what would fit; the message alone when they
 * agree and so are not to blame. */
int lumat_raise_shapes(lua_State *L, int left, int right, lumat_fit fit);
/* Raises gpu_message() followed by name and shape of the matrix at index. */
int lumat_raise_shape(lua_State *L, int index);

/* --- numbers of a dry run -------------------------------------------------
 *
 * Those that depend on elements, which it does not have: what a sum or A(i, j)
 * gives there. What is computed from one is one; compared, it raises. */

/* In a dry run pushes a number that `from` ("sum") would have read, and
 * returns 1; else 0, with the stack as it was. */
int lumat_push_unread(lua_State *L, const char *from);
/* The same of a text that does not stay. */
void lumat_push_unknown(lua_State *L, const char *from);
int lumat_is_unknown(lua_State *L, int index);
/* Is it a number, known or not? lua_tonumber of an unknown one is 0. */
int lumat_is_number(lua_State *L, int index);
/* Pushes f over numbers, the function at index, as one that gives an unknown
 * number for arguments among which there is one. */
void lumat_push_over_unknown(lua_State *L, int index);
/* The function in C at index, or over which that pushed one; NULL: it is none.
 */
lua_CFunction lumat_c_function(lua_State *L, int index);
/* In a dry run raises that nothing is known of what `name` costs: for what
 * changes more than matrices. */
void lumat_refuse_dry(lua_State *L, const char *name);

void lumat_open_unknown(lua_State *L);

/* --- what messages call a value ------------------------------------------- */

/* Pushes and returns the name of a local of the caller, a local of the
 * session, or a global that holds the very value at index; else otherwise. */
const char *lumat_name_of(lua_State *L, int index, const char *otherwise);
/* Pushes the name of the variable, but for `ans`, that holds the very value at
 * an absolute index and returns 1; or returns 0. */
int lumat_push_holder(lua_State *L, int index);
/* Pushes and returns how a message names the value at index: a number or a
 * short string as written, anything else by its kind. */
const char *lumat_push_brief(lua_State *L, int index);
/* The same of a number: as Lua writes it, or "NaN", "Inf", "-Inf". */
const char *lumat_push_brief_number(lua_State *L, double x);
/* What a message calls the value at index, behind "a": "matrix", "sparse
 * matrix", "file", "table" … Pushes nothing; the text stays as long as the
 * value does. */
const char *lumat_kind_of(lua_State *L, int index);
enum { LUMAT_FAR_APART = 99 };
/* Insertions, deletions, replacements and swaps of neighbours between two words
 * of those lengths: Damerau's distance in its restricted form. Words of more
 * than 31 bytes are far apart. */
int lumat_distance(const char *a, size_t n, const char *b, size_t m);
/* Pushes and returns the name of list (names between blanks) that is nearest
 * to word; or NULL, nothing pushed, when none is like it. */
const char *lumat_nearest(lua_State *L, const char *word, const char *list);

/* What is told of names, one after the other; name and headline are the
 * teller's. */
typedef void lumat_name_fn(void *data, const char *name, const char *headline);

/* Has Lua's own arithmetic on strings call values by their kinds, too. */
void lumat_open_kinds(lua_State *L);

/* --- texts for people ----------------------------------------------------- */

/* luaL_tolstring, but no text tells an address with --safe: objects have
 * numbers of their own. All text for people is made by it. */
const char *lumat_tolstring(lua_State *L, int index, size_t *length);
/* Has Lua's own tostring and print do likewise. For --safe. */
void lumat_hide_addresses(lua_State *L);

/* The bytes of the one character that text begins with, where it can be shown
 * as it is; 0 where a terminal would obey it, or it is no UTF-8. length: of
 * text, in bytes, at least 1. */
size_t lumat_shown_length(const char *text, size_t length);
/* Writes what others wrote (a file's name, an error's text) so that a terminal
 * obeys none of it: control characters, marks of direction and what is no UTF-8
 * become \x1B or \u{202E}. Newlines and tabs stay, colours if asked for. */
void lumat_write_visible(FILE *to, const char *text, size_t length,
                         int with_colours);
/* The same of up to a KiB of formatted text, without colours. */
void lumat_print_visible(FILE *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Pushes and returns the text as lumat_write_visible writes it, without
 * colours. */
const char *lumat_push_visible(lua_State *L, const char *text, size_t length);

/* Behind the colour that text begins with, or text when there is none. */
const char *lumat_skip_colour(const char *text);
/* Takes the colours out of the text; returns its new length. */
size_t lumat_strip_colours(char *text);

/* --- warnings ------------------------------------------------------------- */
/* What is no error, and yet what the user should know of his result. They go
 * through Lua's own `warn`, so that warn("@off") silences them all. */

/* Warns "place: operation: …" of the user's line that is running; once for an
 * operation and a line, at the prompt once in each entry; not in a dry run.
 * Raises nothing but for memory; the stack is as before. */
void lumat_warn(lua_State *L, const char *operation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Are they on? For what costs something to find out. */
int lumat_warns(void);
/* Notes at the prompt: once in a session for each word, what a user should
 * know who types; scripts are told nothing. */
void lumat_note(lua_State *L, const char *word, const char *note);
/* The same, where the running function was called by the user's own Lua, not by
 * the library's. */
void lumat_note_to_caller(lua_State *L, const char *word, const char *note);

/* Is there somebody who types? For what costs something to note. */
int lumat_is_noted(void);
/* A matrix at the prompt, at index, that may hold NaN of the operation which
 * the note is of, "sqrt of …", a static text: it is noted, once for its first
 * word, when the echo shows NaN in that matrix, or anything with NaN in the
 * same entry. */
void lumat_expect_nan(lua_State *L, int index, const char *note);
/* What is expected of the matrix at `from` is of the result at `to`, too. */
void lumat_pass_nan_on(lua_State *L, int from, int to);
/* The echo shows a NaN in the value at index. */
void lumat_explain_nan(lua_State *L, int index);

/* What is given each warning that is not silenced, one or more lines; NULL:
 * they go to standard error as they are. It must raise nothing. */
typedef void lumat_warning_fn(const char *message);
void lumat_set_warnings(lumat_warning_fn *print);
/* What is given each note for one who types, from a prompt on. */
void lumat_set_notes(lumat_warning_fn *print);

void lumat_open_warnings(lua_State *L); /* on, until warn("@off") */

/* --- the calls that are under way ----------------------------------------- */

/* Is it a line of a user's? The library's part in Lua is not where one would
 * look. Of what lua_getinfo gives for "Sl". */
int lumat_is_users(const lua_Debug *ar);
/* Pushes the traceback of the users' functions above a message handler, or nil
 * when none of them called another. What the library did between two of them
 * is one line. */
void lumat_push_traceback(lua_State *L);

/* --- the library's tables -------------------------------------------------
 *
 * In Lua's registry:
 *   lumat.functions     name -> function, what `require "lumat"` gives
 *   lumat.methods       name -> function, what A:name finds
 *   lumat.method_names  the same as one text, for suggestions
 *   lumat.sparse_methods, lumat.sparse_method_names  what S:name finds of a
 *                       sparse matrix: methods of which it may be the first
 *                       argument
 *   lumat.help          name -> {usage, help, example, result, …}
 *   lumat.private       what lua/std has that scripts must not
 *   lumat.session       the locals of the prompt, as they were when it was
 *                       last asked for an entry
 *   lumat.manual        what lua/manual is, once help was asked for
 *   lumat.instead       what lumat_push_instead asks
 *   lumat.base          the globals that are not the user's own, by name
 *   lumat.environment   the same for the library's own files, which --safe
 *                       takes nothing from
 *   lumat.status, lumat.message  of the last failure of gpu/ */

void lumat_open_library(lua_State *L); /* first of all: empty tables */
void lumat_open_std(lua_State *L);     /* lua/std, text in Lua */
/* When all are there: their names become globals. */
void lumat_close_library(lua_State *L);
/* Pushes what require "lumat.NAME" gives, whatever became of the globals. */
void lumat_push_required(lua_State *L, const char *name);
/* Keeps a copy of the table of globals in the registry, under that name. */
void lumat_copy_globals(lua_State *L, const char *name);
/* Puts copies of Lua's own tables, string, math …, in the place of those: what
 * the user does to their fields is not done to the copies. */
void lumat_copy_libraries(lua_State *L, const char *name);

/* Pops a value that files of the library, in Lua, get by require "lumat.NAME",
 * or in the table of what scripts must not have. */
void lumat_set_required(lua_State *L, const char *name);
void lumat_set_private(lua_State *L, const char *name);
/* Makes the metatable of that name, of what `close` ends: where it is closed,
 * or at last where it is collected. */
void lumat_open_closing(lua_State *L, const char *name, lua_CFunction close);

/* What is written in Lua and travels in the program: the files of lua/std, run
 * at every start, those of lua/manual, run when help is asked for, and those
 * of lua/std/lazy, lua/charts and lua/experiment, which `require "lumat.NAME"`
 * runs. The list is written by lua/std/embed when the program is built. */
typedef enum lumat_when {
    LUMAT_AT_START,
    LUMAT_FOR_HELP,
    LUMAT_WHEN_REQUIRED
} lumat_when;

typedef struct lumat_std {
    const char *name; /* file name without .lua; NULL ends the list */
    const char *text; /* Lua source; no zero byte ends it */
    size_t length;    /* of text, in bytes */
    lumat_when when;
} lumat_std;

extern const lumat_std lumat_std_files[];

/* Set a field of the table on top of the stack. */
void lumat_set_number(lua_State *L, const char *key, double value);
void lumat_set_truth(lua_State *L, const char *key, int is_so);
/* Counts and bits, as Lua's integers. */
void lumat_set_count(lua_State *L, const char *key, uint64_t value);

/* --- what the terminal has of its own -------------------------------------
 *
 * Its commands and the options of its command line: for help, messages and the
 * manual. */

/* A line of it: "race", "A, B", "every kernel …". One without a form is the
 * heading of those below it; one without a name ends the list. */
typedef struct lumat_row {
    const char *name, *form, *help;
} lumat_row;

/* Tells of them. The lists stay the caller's, and as they are. */
void lumat_describe(const lumat_row *commands, const lumat_row *options);
/* What was told; NULL: nothing, as there is no terminal. */
const lumat_row *lumat_command_rows(void);
const lumat_row *lumat_option_rows(void);
/* Is it the name of a command of the terminal? length: of name, in bytes. */
int lumat_is_command(const char *name, size_t length);

/* Pushes and returns how a message goes on about a word of other languages,
 * "did you mean A.T?" or a sentence; or pushes nil and returns NULL. */
const char *lumat_push_instead(lua_State *L, const char *word);

/* --- the user's variables ------------------------------------------------- */
/* What lists, messages, sessions and Tab look through. All of it raw: no
 * metamethod is called. */

enum {
    LUMAT_WITH_LIBRARY = 1, /* globals that are the library's own, too */
    LUMAT_WITH_HIDDEN = 2   /* globals behind a local of their name, too */
};

/* A walk over the prompt's locals, as they were when the prompt last looked or
 * lumat_refresh_locals was called, and then the globals. A global is the
 * library's own while it has the value it had at the start. */
typedef struct lumat_variables {
    const char *name;
    int is_local;
    /* the walk's own */
    lua_State *L;
    int options, tables, at, has_locals;
} lumat_variables;

/* Pushes what the walk needs. */
lumat_variables lumat_begin_variables(lua_State *L, int options);
/* Goes on to the next variable: its name is at -2 of the stack, its value on
 * top. What was pushed above them is popped first. Returns 0 behind the last
 * one, with all of the walk popped; who leaves it earlier pops it himself. */
int lumat_next_variable(lumat_variables *v);
/* Is the variable at hand the library's own? */
int lumat_is_library_variable(const lumat_variables *v);

#endif
