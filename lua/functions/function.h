/* lua/functions: what is known of a function of the library stands in one row
 * beside its code. Help, manual and completion read it, and calls are checked
 * by it: how many arguments, their kinds, the names and kinds of options, A.f()
 * for A:f(). One thing is left to functions in C, as they look before they read
 * it anyway: is this object a matrix, is this number whole, a size, an axis?
 * lumat_check_… look, and refuse the others in the row's words.
 *
 * Files in Lua write the same rows as row{…}: lua/std/embed cuts them out,
 * add_row in rows.c reads them. */
#ifndef LUMAT_FUNCTION_H
#define LUMAT_FUNCTION_H

#include "value.h"

#include <stdint.h>

/* An option of the table that may end a call: {dtype="f64"}. */
typedef struct lumat_option {
    const char *name;      /* NULL ends a list */
    const char *kind;      /* of its value, as in `takes` */
    const char *otherwise; /* what is taken without it, where that is said */
    const char *help;      /* what it does */
} lumat_option;

/* A function of the library.
 *
 * takes: its arguments. Forms of a call are divided by " or ", arguments by
 * commas; each is "name: kind", in brackets where it may be left out, followed
 * where two must agree by what they agree in and with which: "B: matrix rows A"
 * (elements product rows columns lengths beside). A kind is one of
 * argument_kinds.c, a string in quotes, or several with | between them. {axis,
 * out} is the table of options; a comma before it says that this form needs it.
 * … stands for any more of the last argument. So the usage of "A: matrix [,
 * axis: axis] or A: matrix, {axis}" is sum(A [, axis]) or sum(A, {axis=}).
 *
 * gives: the kinds of its results with commas between them; " or " before
 * another one, which may end in "with NAME": given when that argument or
 * option is.
 * "same" is the kind of the first argument, "nothing" no result. */
typedef struct lumat_function {
    const char *name;
    lua_CFunction call;
    int method; /* A:name(…) works too */
    const char *takes, *gives;
    const char *help;             /* one or two sentences */
    const char *example, *result; /* Lua expressions; as in ops.def */
    const char *group;            /* of the reference, see chapters.lua */
    const lumat_option *options;  /* those that have no common meaning */
    const lumat_option *more;     /* and those of another function */
    const char *usage;            /* where `takes` does not show it best */
    const char *instead; /* told where something else stands in the place of
                            the options, as other languages have it */
    /* Called before so many arguments are refused, as too many or for a kind:
     * may raise what was meant. */
    void (*on_mistake)(lua_State *L, const struct lumat_function *f, int count);
    int tag; /* whatever tells functions with one `call` apart */
} lumat_function;

/* Adds the rows up to one without a name: to the library's table, the methods
 * and the help. They are kept: strings and rows must live as long as L. */
void lumat_register(lua_State *L, const lumat_function *list);
void lumat_register_one(lua_State *L, const lumat_function *f);
/* The row of the function that runs, which was registered by one of these. */
const lumat_function *lumat_running_row(lua_State *L);

/* The row of the function at index; NULL: it is none of the library's. */
const lumat_function *lumat_row_of(lua_State *L, int index);
/* The row of a library function, or of a member as "experiment.run"; NULL:
 * there is none. */
const lumat_function *lumat_find_row(lua_State *L, const char *name);
/* Pushes how it is called. */
const char *lumat_push_usage(lua_State *L, const lumat_function *f);

/* --- arguments, one by one (takes.c) ---------------------------------------
 */

typedef struct lumat_piece {
    const char *start;
    size_t length;
} lumat_piece;

int lumat_is_piece(lumat_piece p, const char *word);

typedef enum lumat_argument_kind {
    LUMAT_ARGUMENT,
    LUMAT_ARGUMENT_MORE, /* … */
    LUMAT_ARGUMENT_OPTIONS
} lumat_argument_kind;

/* Begins as {.rest = takes}. */
typedef struct lumat_argument {
    lumat_argument_kind is;
    int form, place; /* from 0; from 1 */
    int depth;       /* brackets around it: above 0 it may be left out */
    int is_needed;   /* of options: this form needs the table */
    lumat_piece name, kind, fit, partner; /* of options, name: "axis, out" */
    const char *rest;
    int open; /* brackets that are open at rest */
} lumat_argument;

/* Reads the next one; 0 at the end. */
int lumat_next_argument(lumat_argument *a);
/* The next of the parts that | divides; 0 at the end. */
int lumat_next_kind(lumat_piece *rest, lumat_piece *kind);
/* The next name of a list; 0 at the end. */
int lumat_next_name(lumat_piece *rest, lumat_piece *name);

/* Calls each(data, option) for the options of a function, once each. */
typedef void lumat_option_fn(void *data, const lumat_option *option);
void lumat_each_option(const lumat_function *f, lumat_option_fn *each,
                       void *data);
/* Does it mean the same wherever it is taken? */
int lumat_is_common(const lumat_option *option);
/* What the name stands for in calls of f; NULL: f does not take it. */
const lumat_option *lumat_find_option(const lumat_function *f, const char *name,
                                      size_t length);

/* The kind of the first result when so many arguments are given: a kind of
 * `gives`; and how many results there are at most, 0 to 8. */
lumat_piece lumat_result_kind(const lumat_function *f, int arguments);
int lumat_most_results(const lumat_function *f);
/* How many there are as a rule, and the argument or option with which there are
 * others, "" when none changes that; and from which place on that is given. */
int lumat_count_results(const lumat_function *f, lumat_piece *with);
int lumat_place_of(const lumat_function *f, lumat_piece argument);

/* --- kinds (argument_kinds.c) ----------------------------------------------
 */

enum { LUMAT_KIND_TESTS = 6 };

/* A kind, or several with | between them, read once for many tests. */
typedef int lumat_kind_test(lua_State *L, int index);
typedef struct lumat_kind {
    unsigned all, some; /* bits of Lua types: which of their values are it */
    unsigned quick;     /* of those whose values functions in C look at */
    int has_words;      /* strings in quotes are among them */
    lumat_kind_test *tests[LUMAT_KIND_TESTS]; /* of some, up to NULL */
    lumat_piece text; /* as it was read; lives as long as the row */
} lumat_kind;

lumat_kind lumat_read_kind(lumat_piece text);
/* Is it a frame? The functions of its kind are the library's in Lua. */
int lumat_is_frame(lua_State *L, int index);
/* Is it a matrix that lies on the processes of a pool? */
int lumat_is_distributed(lua_State *L, int index);
/* Is the value at index of the kind? */
int lumat_is_kind(lua_State *L, int index, const lumat_kind *kind);
/* Pushes "a number or true or false": the kind in words. */
const char *lumat_push_kind(lua_State *L, lumat_piece kind);

/* --- checks of calls (calls.c) ---------------------------------------------
 */

/* How a function with this row is called: checked, then done. */
void lumat_push_checked(lua_State *L, const lumat_function *f);
/* The same of the Lua function at index. */
void lumat_push_checked_lua(lua_State *L, const lumat_function *f, int index);
/* Pushes the method A:f(…) of what one of these pushed, which is on top. */
void lumat_push_method(lua_State *L);
/* Raises that the argument at arg of the function that runs is not what its
 * row says: the guards of functions in C do. Returns where there is no row, or
 * no form of it has something against that argument. */
void lumat_refuse_kind(lua_State *L, int arg);
/* Raises "name: argument text" of the argument at arg, whose kind is right and
 * whose value is not: text goes on after its name, as in "is 0". */
int lumat_raise_argument(lua_State *L, int arg, const char *text, ...);
/* Checks the table at index against the options of f: names, kinds. */
void lumat_check_options(lua_State *L, int index, const lumat_function *f);

/* Registers rows that stand in Lua: private.row. */
void lumat_open_rows(lua_State *L);

#endif
