/* Text to meaning: Lua source, numbers, tables of numbers, .npy files. All of
 * it is fuzzed, and nothing here knows a matrix. */
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
/* What every reader of it begins with. */

/* Messages about an entry begin with this, a line number and a colon. */
#define LUMAT_CHUNK "lumat"

enum { LUMAT_INCOMPLETE = 100 }; /* beside Lua's own status codes */

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

extern const char lumat_keywords[]; /* with a blank between them */
/* Is the word one of those between blanks? It may hold no zero. */
int lumat_is_listed(const char *word, size_t length, const char *words);
int lumat_is_keyword(const char *word, size_t length);

/* The newlines between the two, as Lua counts lines. */
int lumat_count_lines(const char *from, const char *to);

/* --- words ---------------------------------------------------------------- */
/* The words and signs of Lua text, one after another, without blanks and
 * comments, and the extent of expressions. */

typedef enum lumat_word_kind {
    LUMAT_WORD_END, /* of the text; its length is 0 */
    LUMAT_WORD_NAME,
    LUMAT_WORD_KEYWORD,
    LUMAT_WORD_NUMBER,
    LUMAT_WORD_STRING,
    LUMAT_WORD_SIGN
} lumat_word_kind;

typedef struct lumat_word {
    lumat_word_kind kind;
    const char *start;
    size_t length;
    int line; /* from 1 */
} lumat_word;

/* A place in a text: the token there, and where the one before it ended. */
typedef struct lumat_reader {
    const char *p, *end;
    int line;
    lumat_word word;
    const char *behind;
} lumat_reader;

/* At the first token. */
lumat_reader lumat_read_words(const char *text, size_t length);
void lumat_next_word(lumat_reader *r);

/* Is the token the keyword or sign? */
int lumat_at(const lumat_reader *r, const char *word);
int lumat_word_is(const lumat_word *t, const char *word);
/* Is its text one of the words, between blanks? */
int lumat_word_among(const lumat_word *t, const char *words);

/* +1 where a block opens (function do if repeat), -1 where one ends. */
int lumat_block_step(const lumat_word *t);

/* Past a bracketed part, a function's body from its keyword on, or one token.
 */
void lumat_skip_operand(lumat_reader *r);
/* Past a list of expressions. */
void lumat_skip_expressions(lumat_reader *r);

/* --- a list of tokens ----------------------------------------------------- */
/* Lua text up to a cursor, as tokens, for completion. Tokens are named by
 * their number in the list. */

/* A sign of one character is its own kind. */
enum {
    TOKEN_NAME = 256,
    TOKEN_WORD, /* a keyword of Lua */
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_OPEN_STRING, /* the last one: the cursor is in it */
    TOKEN_CONCAT,      /* .. */
    TOKEN_DIVIDE,      /* // */
    TOKEN_COMPARE,     /* == ~= <= >= < > */
    TOKEN_OTHER        /* ... :: << >> and what is no Lua */
};

typedef struct lumat_lexeme {
    int kind;
    int match; /* a bracket's other one; of an open one that is never closed,
                  the open one around it; else -1 */
    size_t start, end;
    size_t content; /* of a string: behind its opening quote */
} lumat_lexeme;

typedef struct lumat_lexemes {
    const char *text;
    const lumat_lexeme *list;
    int count;
    int innermost; /* the last bracket that is not closed, or -1 */
    int in_comment;
} lumat_lexemes;

/* Cuts text up to length. Pushes one userdata, which holds the list. */
void lumat_push_lexemes(lua_State *L, const char *text, size_t length,
                        lumat_lexemes *out);
int lumat_is_lexeme(const lumat_lexemes *t, int i, const char *text);
int lumat_lexeme_kind(const lumat_lexemes *t, int i); /* 0: there is none */

typedef void lumat_declared_fn(void *data, const char *name, size_t length);
/* Calls each for the names that local, for and function declare in t. */
void lumat_each_declared(const lumat_lexemes *t, lumat_declared_fn *each,
                         void *data);

/* --- statements ----------------------------------------------------------- */
/* Of text that compiles. */

enum { LUMAT_MOST_NAMES = 200 }; /* Lua's limit of locals in a function */

/* The names of a declaration, from the first one on. */
typedef struct lumat_declaration {
    struct {
        lumat_word name;
        int constant, closes;
    } list[LUMAT_MOST_NAMES];
    int count;
} lumat_declaration;

/* At `local`: past the declaration, whose names it gives. */
void lumat_read_declaration(lumat_reader *r, lumat_declaration *out);

/* Past a statement, or one token of what is none. */
void lumat_skip_statement(lumat_reader *r);

/* Is it one of the words or signs between blanks, and no string? */
int lumat_is_one_of(const lumat_word *t, const char *words);
/* Does it go on with an operand before it: a call, an index, a field? */
int lumat_is_suffix(const lumat_word *t);
/* Right behind another token: a name or keyword that starts a statement. */
int lumat_starts_statement(const lumat_word *before, const lumat_word *t);
lumat_word lumat_word_behind(const lumat_reader *r);

/* Pushes a table of the names that the text declares or sets anywhere: its
 * variables, locals, loops' and functions' names. Returns whether it makes
 * functions. */
int lumat_push_given(lua_State *L, lumat_reader r);

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

/* Pushes the name of the innermost construct that text leaves open: "for",
 * "function", "(", "[[" …, or "" when none is. */
void lumat_push_open_construct(lua_State *L, const char *text, size_t length);

/* --- entries of several statements ---------------------------------------- */
/* Which of them show something, and how Lua reads rows that go on with those
 * above. */

/* An entry as it is compiled, and what it shows. */
typedef struct lumat_echoes {
    int shown; /* no ';' ends it */
    /* An expression that ends the text and that Lua reads as no statement, for
     * nothing separates it from the one before; else its kind is END. */
    lumat_word refused;
} lumat_echoes;

/* Pushes the entry as the text to compile: every line is where it was, each
 * expression of the top level is the argument of an echo, and the last
 * statement, if it is one and nothing is closed behind it, is returned. Text
 * that is no Lua is left as it is from there on, for Lua to say so. */
lumat_echoes lumat_push_echoing(lua_State *L, const char *text, size_t length);

/* Pushes the C function that the text calls by this name, or returns 0. */
int lumat_push_echo(lua_State *L, const char *name);
int lumat_is_echo(const lumat_word *name);

/* Of an entry that compiles: did a statement with a ';' behind it give the name
 * its last value? Then that is not shown. */
void lumat_note_silenced(lua_State *L, const char *text, size_t length);
int lumat_is_silenced(lua_State *L, const char *name);

/* With the message of an error on top that names a line of the entry last given
 * to lumat_push_echoing: adds where in the statement a row goes on with the one
 * above it, though each could be a statement of its own. */
void lumat_explain_rows(lua_State *L);

/* The values are on the stack from 1 on; shown: they end a row, without a ';'.
 * What it raises ends the entry. */
typedef void lumat_echo_fn(lua_State *L, int shown);
void lumat_set_echo(lumat_echo_fn *echo);

/* --- tables of numbers ---------------------------------------------------- */
/* Tables of numbers as text, read and written: pure, without Lua. The reader
 * borrows the text; nothing here allocates. */

enum lumat_csv_header { LUMAT_HEADER_AUTO, LUMAT_HEADER_NO, LUMAT_HEADER_YES };

enum { LUMAT_CSV_MOST_NAMES = 1 << 21 };

typedef struct lumat_csv {
    /* set by the caller */
    const char *text;
    size_t length;
    char delimiter; /* 0: look for one; ' ': runs of blanks */
    enum lumat_csv_header header;
    int (*goes_on)(size_t bytes); /* or NULL; called when so many more are
                                   * read; 0 stops with no message */
    /* set by lumat_csv_open */
    int64_t cols;
    int64_t rows; /* unless some have too few cells; rows * cols <= length +
                   * cols */
    size_t names; /* where the line of names starts */
    size_t data;  /* where the rows start */
    int64_t line; /* the number of the line there, from 1 */
    int has_names;
} lumat_csv;

/* Finds delimiter, names, columns and rows. The first line is one of names,
 * unless told, when none of its cells is a number. Returns 1, or 0 with a
 * message, which starts with a line, "17: column 2: …", where one is known. */
int lumat_csv_open(lumat_csv *c, char *error, size_t size);

/* Where reading goes on: at a cell of a line. Begins as {data, line, 0}; what
 * is before `at` is not looked at again. */
typedef struct lumat_csv_place {
    size_t at;
    int64_t line, col;
} lumat_csv_place;

/* Reads at most so many cells, row after row, into floats or doubles (the
 * other NULL). Empty cells are NaN. Returns how many, 0 behind the last one,
 * or -1 with a message that starts with the line. */
int64_t lumat_csv_read(const lumat_csv *c, lumat_csv_place *place, int64_t most,
                       float *singles, double *doubles, char *error,
                       size_t size);

/* Steps through the names: *at starts at c->names. text gets the raw name,
 * in which quotes are still doubled. Returns 0 after the last. */
int lumat_csv_name(const lumat_csv *c, size_t *at, const char **text,
                   size_t *length);

/* Must a name be written in quotes? */
int lumat_csv_needs_quotes(const char *name, size_t length, char delimiter);

/* --- .npy files ----------------------------------------------------------- */
/* NumPy's .npy files: pure, without Lua. The reader borrows the bytes; nothing
 * here allocates. Source: NumPy Enhancement Proposal 1 and the documentation
 * of numpy.lib.format. */

typedef struct lumat_npy {
    char kind;          /* 'b' truth values, 'i' 'u' integers, 'f' reals */
    int bytes;          /* of an element */
    int swapped;        /* the other byte order */
    int fortran;        /* column after column */
    int ndim;           /* 0 to 2 */
    int64_t rows, cols; /* 1 where there is no such dimension */
    size_t data;        /* where the elements start */
} lumat_npy;

/* Reads the header and compares the size it claims with what is there: length
 * is the whole file's; of its bytes, LUMAT_NPY_MOST_HEADER are enough. Returns
 * 1, or 0 with a message. */
enum { LUMAT_NPY_MOST_HEADER = 65536 + 12 };
int lumat_npy_open(lumat_npy *n, const void *file, size_t length, char *error,
                   size_t size);

/* The type that takes every value: bool, f32 for what is no wider than 16
 * bits or is float32, else f64. */
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

#endif
