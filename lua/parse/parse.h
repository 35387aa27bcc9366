/* Text to meaning: Lua source and what it was compiled to, numbers, tables of
 * numbers, .npy files. All of it is fuzzed, and nothing here knows a matrix. */
#ifndef LUMAT_PARSE_H
#define LUMAT_PARSE_H

#include <stddef.h>
#include <stdint.h>
#include "gpu.h"
#include "lua.h"

/* --- numbers -------------------------------------------------------------- */
/* Fast, and whatever the locale. C calls C++ here. */

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the number at the start of text (decimal, an optional sign before it)
 * and returns how many characters it took, 0 if there is none. The nearest
 * number of the type; beyond its range, infinity or zero. */
size_t lumat_parse_f64(const char *text, size_t length, double *out);
size_t lumat_parse_f32(const char *text, size_t length, float *out);

enum { LUMAT_NUMBER_ROOM = 32, LUMAT_MOST_DIGITS = 17 };

/* Writes x and returns the length, without a zero byte. digits 0: the fewest
 * that read back as x; else so many significant digits. */
size_t lumat_print_f64(double x, int digits, char out[LUMAT_NUMBER_ROOM]);
size_t lumat_print_f32(float x, int digits, char out[LUMAT_NUMBER_ROOM]);

/* "NaN", whatever its sign, "Inf" or "-Inf", as they are wherever numbers are
 * shown; NULL for any other number. Files have the words of their formats. */
const char *lumat_special(double x);

#ifdef __cplusplus
}
#endif

/* --- Lua text as tokens --------------------------------------------------- */
/* What every reader of it begins with: one scanner and one kind of token. */

/* Messages about an entry begin with this, a line number and a colon. */
#define LUMAT_CHUNK "lumat"

enum { LUMAT_INCOMPLETE = 100 }; /* beside Lua's own status codes */

/* A sign of one character that is of none of these is a kind of its own: its
 * code. */
typedef enum lumat_token_kind {
    LUMAT_END, /* of the text */
    LUMAT_NAME = 256,
    LUMAT_KEYWORD,
    LUMAT_NUMBER,
    LUMAT_STRING,
    LUMAT_CONCAT,  /* .. */
    LUMAT_DIVIDE,  /* // */
    LUMAT_COMPARE, /* == ~= <= >= < > */
    LUMAT_OTHER,   /* ... :: << >> and what is no Lua */
    LUMAT_BLANK,
    LUMAT_COMMENT
} lumat_token_kind;

typedef struct lumat_token {
    int kind;
    int match; /* of a list: a bracket's other one; of an open one that is never
                  closed, the open one around it; else -1 */
    int line;  /* in which it begins, from 1 */
    int open;  /* a string or comment that the text ends in */
    size_t start, end;
    size_t content; /* of a string or comment: behind its opening mark */
} lumat_token;

enum { LUMAT_OPEN_IN_LINE = 2 }; /* open, and a newline would end it badly */

/* Reads the token behind the last one; all zero in front of the first. Every
 * character belongs to a token. Returns 0 at the end. */
int lumat_next_token(const char *text, size_t length, lumat_token *token);

extern const char lumat_keywords[]; /* with a blank between them */
/* Is the word one of those between blanks? It may hold no zero. */
int lumat_is_listed(const char *word, size_t length, const char *words);
int lumat_is_keyword(const char *word, size_t length);

/* The newlines between the two, as Lua counts lines. */
int lumat_count_lines(const char *from, const char *to);

/* --- compiled functions --------------------------------------------------- */
/* What lua_dump gives of a function, without those inside it. It is read where
 * it is: the dump has to stay as long as it. */

typedef struct lumat_bytecode {
    int parameters, registers; /* the first ones are the arguments */
    int first_line;
    int count; /* instructions */
    int constants;
    /* the reader's own */
    const uint8_t *code, *constant, *absolute, *end;
    const int8_t *lines;
    int line_steps, absolute_count;
} lumat_bytecode;

typedef enum lumat_constant_kind {
    LUMAT_CONSTANT_NIL,
    LUMAT_CONSTANT_BOOLEAN, /* its truth is the integer */
    LUMAT_CONSTANT_INTEGER,
    LUMAT_CONSTANT_NUMBER,
    LUMAT_CONSTANT_STRING
} lumat_constant_kind;

typedef struct lumat_constant {
    lumat_constant_kind is;
    int64_t integer;
    double number;
    const char *text; /* of the dump, without a zero at its end */
    size_t length;
} lumat_constant;

/* Returns 0 for what is no whole dump of the Lua that the program was built
 * with. Its instructions may still be anything. */
int lumat_read_bytecode(const void *dump, size_t length, lumat_bytecode *out);
/* The word of instruction i, from 0 to count - 1. */
uint32_t lumat_instruction_at(const lumat_bytecode *f, int i);
/* Returns 0 where there is no constant i. */
int lumat_read_constant(const lumat_bytecode *f, int i, lumat_constant *out);
/* The line of its source that instruction i comes from; 0: not known. */
int lumat_line_at(const lumat_bytecode *f, int i);

/* --- what Lua says of it -------------------------------------------------- */

/* Lua's own messages, which are nowhere else known by their words: a line of
 * lua_messages.def each. */
#define SAYS(name, ...) LUMAT_LUA_##name,
typedef enum lumat_lua_message {
#include "lua_messages.def"
} lumat_lua_message;
#undef SAYS

/* Where such words begin in the message, and where it goes on behind them;
 * NULL: it has none. */
const char *lumat_find_said(const char *message, lumat_lua_message kind);
const char *lumat_behind_said(const char *message, lumat_lua_message kind);
/* Does it tell of a fault of the text near that token? */
int lumat_is_near(const char *message, const char *token);
/* Where a message about an entry goes on behind its place, "lumat:3: ", and the
 * line; the message itself, and 0, of any other. */
const char *lumat_skip_place(const char *message, int *line);

/* --- a list of tokens ----------------------------------------------------- */
/* Made once for a text and handed on: its tokens without blanks and comments,
 * named by their number. Any number may be asked for: beyond the list there
 * are tokens of kind LUMAT_END. */

typedef struct lumat_tokens {
    const char *text; /* a copy of its own */
    size_t length;
    const lumat_token *list; /* behind the last one a token LUMAT_END */
    int count;               /* without that one */
    int innermost;           /* the last bracket that is not closed, or -1 */
    int in_comment;          /* the text ends in one */
    int open;                /* as of a token: the text's end is in it */
} lumat_tokens;

/* Cuts text. Pushes one userdata, which holds the list; it begins with it. */
const lumat_tokens *lumat_push_tokens(lua_State *L, const char *text,
                                      size_t length);

int lumat_kind_at(const lumat_tokens *t, int i);
/* Is the token one of those between the blanks? None is a string. */
int lumat_at(const lumat_tokens *t, int i, const char *words);
/* Of a token of the list, or the one at its end. */
const char *lumat_start_of(const lumat_tokens *t, int i);
size_t lumat_length_of(const lumat_tokens *t, int i);
/* Pushes and returns it as it is written. */
const char *lumat_push_token(lua_State *L, const lumat_tokens *t, int i);
/* Is it written like this? The word may be a part of a longer text. */
int lumat_is_written(const lumat_tokens *t, int i, const char *word,
                     size_t length);
/* Where the token before it ends; for the first, the text's start. */
const char *lumat_behind(const lumat_tokens *t, int i);

/* +1 where a block opens (function do if repeat), -1 where one ends. */
int lumat_block_step(const lumat_tokens *t, int i);

/* Behind a bracketed part, a function's body from its keyword on, or one token;
 * behind a list of expressions. What is never closed reaches to the end. */
int lumat_skip_operand(const lumat_tokens *t, int i);
int lumat_skip_expressions(const lumat_tokens *t, int i);

/* --- statements ----------------------------------------------------------- */
/* Of text that compiles. */

enum { LUMAT_MOST_NAMES = 200 }; /* Lua's limit of locals in a function */

/* The names of a declaration. */
typedef struct lumat_declaration {
    struct {
        int name; /* its token */
        int constant, closes;
    } list[LUMAT_MOST_NAMES];
    int count;
} lumat_declaration;

/* At `local`: gives its names and returns the token behind the declaration. */
int lumat_read_local(const lumat_tokens *t, int i, lumat_declaration *out);

typedef void lumat_declared_fn(void *data, const char *name, size_t length);
/* Calls each for the names that local, for and function declare anywhere, also
 * in text that does not compile. */
void lumat_each_declared(const lumat_tokens *t, lumat_declared_fn *each,
                         void *data);

/* Behind a statement, or behind one token of what is none. */
int lumat_skip_statement(const lumat_tokens *t, int i);

/* Does it go on with an operand before it: a call, an index, a field? */
int lumat_is_suffix(const lumat_tokens *t, int i);
/* Does an expression that may go on end with it? */
int lumat_ends_operand(const lumat_tokens *t, int i);
/* A name or keyword that starts a statement behind the token before it. */
int lumat_starts_statement(const lumat_tokens *t, int i);

/* Pushes a table of the names that the tokens from a statement's first up to
 * `end` declare or set anywhere: variables, locals, loops' and functions'
 * names. Returns whether they make functions. */
int lumat_push_given(lua_State *L, const lumat_tokens *t, int first, int end);

/* --- what a text leaves open ---------------------------------------------- */
/* Blocks, brackets, strings, comments. */

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

/* Pushes the name of the innermost construct that the text leaves open: "for",
 * "function", "(", "[[" …, or "" when none is. */
void lumat_push_open_construct(lua_State *L, const lumat_tokens *t);

/* --- entries of several statements ---------------------------------------- */
/* Which of them show something, and how Lua reads rows that go on with those
 * above. */

/* An entry as it is compiled, and what it shows. */
typedef struct lumat_echoes {
    int shown; /* no ';' ends it */
    /* The first token of an expression that ends the text and that Lua reads
     * as no statement, for nothing separates it from the one before; or -1. */
    int refused;
} lumat_echoes;

/* Pushes the entry, whose tokens are at the index, as the text to compile:
 * every line is where it was, each expression of the top level is the argument
 * of an echo, and the last statement, if it is one and nothing is closed behind
 * it, is returned. Text that is no Lua is left as it is from there on, for Lua
 * to say so. */
lumat_echoes lumat_push_echoing(lua_State *L, int tokens);

/* Pushes the C function that the text calls by this name, or returns 0. */
int lumat_push_echo(lua_State *L, const char *name);
int lumat_is_echo(const lumat_tokens *t, int i);

/* Of an entry that compiles: did a statement with a ';' behind it give the name
 * its last value? Then that is not shown. */
void lumat_note_silenced(lua_State *L, const lumat_tokens *t);
int lumat_is_silenced(lua_State *L, const char *name);

/* With the message of an error on top that names a line of the entry last given
 * to lumat_push_echoing: adds where in the statement a row goes on with the one
 * above it, though each could be a statement of its own. */
void lumat_explain_rows(lua_State *L);

/* The values are on the stack from 1 on; shown: they end a row, without a ';'.
 * What it raises ends the entry. */
typedef void lumat_echo_fn(lua_State *L, int shown);
void lumat_set_echo(lumat_echo_fn *echo);

/* --- slices --------------------------------------------------------------- */
/* Texts such as "1:3, end" as ranges of rows and columns: pure, without Lua. */

/* One part of a slice: its places, and whether it was one index (which drops
 * the dimension), a range or a list. */
typedef struct lumat_part {
    gpu_slice slice; /* of a list: all */
    int is_index;
    int64_t swapped; /* of three numbers that take one place or none: how many
                        first:step:last would take, if two more; else 0 */
    const int64_t *places;  /* of a list, 0-based; NULL of all that is text */
    const gpu_matrix *list; /* or the list itself, where it can stay */
    int64_t listed;         /* how many places */
} lumat_part;

/* 0-based place of a 1-based or negative index, or -1 when it is outside. */
int64_t lumat_place(int64_t index, int64_t size);

/* first..last (inclusive, as 1-based or negative indices) by step. Returns 1,
 * or 0 with a message in error. An empty range is legal. */
int lumat_slice_range(int64_t first, int64_t last, int64_t step, int64_t size,
                      lumat_part *out, char *error, size_t error_size);

/* Parses "part" (a vector, ndim 1) or "part, part" (ndim 2; a missing second
 * part is everything). A part is empty or ":" (all), an index, first:last, or
 * first:last:step, where an index is an integer, negative from the end, or
 * end, end-1 … Returns 1, or 0 with a message in error. */
int lumat_slice_parse(const char *text, size_t length, int ndim, int64_t rows,
                      int64_t cols, lumat_part out[2], char *error,
                      size_t error_size);

/* --- .npy files ----------------------------------------------------------- */
/* NumPy's .npy files: pure, without Lua. The reader borrows the bytes; nothing
 * here allocates. Source: NumPy Enhancement Proposal 1 and the documentation
 * of numpy.lib.format. */

typedef struct lumat_npy {
    char kind;          /* 'b' truth values, 'i' 'u' integers, 'f' reals,
                           'c' pairs of them, 'S' bytes, 'U' letters of 4 bytes */
    int bytes;          /* of an element */
    int swapped;        /* the other byte order */
    int fortran;        /* the first index runs fastest */
    int ndim;           /* 0 to 3 */
    int64_t pages;      /* of 3 dimensions the first; at most 2^24 */
    int64_t rows, cols; /* 1 where there is no such dimension */
    int64_t passed;     /* rows in front of those, for messages */
    size_t data;        /* where the elements start */
    int is_refused;     /* nothing seems wrong, but it is none of these */
} lumat_npy;

/* The bytes of all elements; 0: they are too many. */
int lumat_npy_bytes(const lumat_npy *n, uint64_t *bytes);
/* Sets kind, bytes and swapped to what "<f8" says; 0: it is none of those. */
int lumat_npy_set_type(lumat_npy *n, const char *name);

/* Reads the header and compares the size it claims with what is there: length
 * is the whole file's; of its bytes, LUMAT_NPY_MOST_HEADER are enough. Returns
 * 1, or 0 with a message. */
enum { LUMAT_NPY_MOST_HEADER = 65536 + 12 };
int lumat_npy_open(lumat_npy *n, const void *file, size_t length, char *error,
                   size_t size);

/* Of what is no text. The type that takes every value: bool, f32 for what is
 * no wider than 16 bits or is float32, else f64. */
gpu_dtype lumat_npy_dtype(const lumat_npy *n);
/* Are the elements those of dtype, bit for bit? */
int lumat_npy_is_plain(const lumat_npy *n, gpu_dtype dtype);

/* Converts so many elements, in the file's order, into to; `elements` is the
 * one of number first, counted from 0. With exact set, fails at an integer
 * beyond 2^53 that f64 would round. */
int lumat_npy_read(const lumat_npy *n, const void *elements, int64_t first,
                   int64_t count, gpu_dtype dtype, void *to, int exact,
                   char *error, size_t size);

/* Writes the header of a file, version 1.0, and returns its length. */
enum { LUMAT_NPY_HEADER = 192 };
size_t lumat_npy_header(char out[LUMAT_NPY_HEADER], gpu_dtype dtype, int ndim,
                        int64_t rows, int64_t cols);
/* "f4", "f8", "b1", "c8", "c16" */
const char *lumat_npy_type_name(gpu_dtype dtype);
/* The same for a type such as these, "i4" or "S3", and at most 3 sizes. */
size_t lumat_npy_header_of(char out[LUMAT_NPY_HEADER], const char *type,
                           int ndim, const int64_t *sizes);

#endif
