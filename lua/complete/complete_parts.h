/* What the files of this room tell each other, and nobody else hears: what is
 * known of an expression, the call at the cursor, the list of offers.
 *
 * Nothing here runs user code or waits for a device: tables are read raw, the
 * rest is known of the library. The stack is left as it was but where something
 * is said to push. */
#ifndef LUMAT_COMPLETE_PARTS_H
#define LUMAT_COMPLETE_PARTS_H

#include "completion.h"
#include "function.h"
#include "parse.h"
#include "scope.h"
#include "value.h"

/* --- what is certain about an expression: infer.c ------------------------- */

enum { LUMAT_LEVELS = 40 }; /* nesting that is looked into */

typedef enum lumat_fact_kind {
    LUMAT_IS_UNKNOWN,
    LUMAT_IS_VALUE, /* a table, a function or another's userdata: on the stack
                     */
    LUMAT_IS_DENSE,
    LUMAT_IS_SPARSE,
    LUMAT_IS_STRING,
    LUMAT_IS_NUMBER
} lumat_fact_kind;

typedef struct lumat_fact {
    lumat_fact_kind kind;
    gpu_matrix shape;         /* of a matrix; ndim 0: not known. No elements */
    const gpu_device *device; /* of a matrix; NULL: not known */
} lumat_fact;

/* Dense or sparse. */
int lumat_is_matrix_fact(lumat_fact f);

/* Replaces the value on top by its field, or by nil. */
void lumat_replace_by_field(lua_State *L, const char *name, size_t length);
/* Replaces the value on top by the table in which its fields are found next:
 * what its metatable has as __index, or as __members. Pops it and returns 0
 * when there is no such table. */
int lumat_next_table(lua_State *L);
/* The name of the library's function or table on top, or NULL. */
const char *lumat_library_name(lua_State *L);

/* The commas between an open bracket and token `end`, but for those in brackets
 * of their own; and how many arguments they divide. */
int lumat_count_commas(const lumat_tokens *t, int open, int end);
int lumat_count_arguments(const lumat_tokens *t, int open, int end);

/* Where the chain of names, calls and indices that ends before token `end`
 * begins, such as A.T or t.x[1]; `end` when there is none. */
int lumat_chain_start(const lumat_tokens *t, int end);
/* The fact about the chain first .. end - 1. Pushes its value, or nil. */
lumat_fact lumat_push_chain(lua_State *L, const lumat_tokens *t, int first,
                            int end);

/* What a binary operator makes of two operands. */
lumat_fact lumat_combine(lumat_fact a, int sign, lumat_fact b);
/* The fact about the expression first .. end - 1, depth: how many brackets are
 * around it; with an operator at `end`, about its left operand. Pushes its
 * value, or nil. */
lumat_fact lumat_push_fact(lua_State *L, const lumat_tokens *t, int first,
                           int end, int depth);
/* The same, and pushes nothing. */
lumat_fact lumat_infer(lua_State *L, const lumat_tokens *t, int first, int end);
/* Where the expression that ends before token `end` begins. */
int lumat_expression_start(const lumat_tokens *t, int end);
/* Is it an operator between two operands? */
int lumat_is_binary(const lumat_tokens *t, int i);

/* --- the call at the cursor: completion.c --------------------------------- */

typedef struct lumat_calling {
    char name[64]; /* of the library's function, or as written: io.open */
    const lumat_function *row; /* NULL: it is none of the library's */
    int is_method;
    int argument;     /* from 1; the object of a method is the first */
    int callee, open; /* tokens: what is called, and where arguments begin */
} lumat_calling;

/* The call whose arguments token `open`, a bracket or string, begins; its
 * argument that begins before token `at`. Returns 0 when there is none. */
int lumat_find_call(lua_State *L, const lumat_tokens *t, int open, int at,
                    lumat_calling *call);
/* The fact about an argument before the one that the cursor is in. */
lumat_fact lumat_argument_fact(lua_State *L, const lumat_tokens *t,
                               const lumat_calling *call, int argument);
/* How the metatable of the table on top names it, or NULL. */
const char *lumat_owner_name(lua_State *L);

/* --- the list of offers: offer_list.c ------------------------------------- */

/* The operand beside the word, and how a matrix in the word's place fits it. */
typedef struct lumat_partner {
    lumat_fact fact;
    int fit;      /* a lumat_fit; -1: nothing is certain */
    int is_shown; /* of a product: the note tells the result's shape */
    int is_call;  /* of a call, which gives a vector of one for two vectors */
    int is_join;  /* vectors of any length go end to end */
} lumat_partner;

typedef struct lumat_gather {
    lua_State *L;
    const char *prefix; /* what they begin with */
    size_t length;
    struct lumat_item *items; /* in a userdata at stack index `slot` */
    int slot, kept;           /* kept: where a table of strings made here is */
    int count, room;
    lumat_partner partner; /* what those ranked LUMAT_FITS fit */
} lumat_gather;

/* What fits is listed first; of the rest some would fit transposed; what is
 * hidden hides others of its name. */
enum { LUMAT_FITS, LUMAT_TURNED, LUMAT_LATER, LUMAT_HIDDEN };

/* Pushes what it needs. */
void lumat_open_gather(lumat_gather *g, lua_State *L, const char *prefix,
                       size_t length);
/* Adds a name that lives as long as the gathering does, if it begins as the
 * word does. Note: NULL, or shown. */
void lumat_gather_name(lumat_gather *g, const char *name, const char *note);
/* Copies the name. */
void lumat_gather_copy(lumat_gather *g, const char *name, size_t length,
                       const char *note);
/* Names separated by blanks. */
void lumat_gather_words(lumat_gather *g, const char *words);
/* A variable, the value of which is on top of the stack: the note tells its
 * kind, and how it fits the partner. */
void lumat_gather_value(lumat_gather *g, const char *name, int rank);
/* Keeps the string on top as long as the gathering lives, and pops it. */
const char *lumat_keep(lumat_gather *g);
/* Calls each in order of rank and name, for the first of equal names; returns
 * how many fit. */
int lumat_end_gather(lumat_gather *g, lumat_name_fn *each, void *data);

/* --- offers --------------------------------------------------------------- */

/* One Tab. */
typedef struct lumat_query {
    lua_State *L;
    lumat_wanted wanted;
    lumat_tokens tokens; /* before the word */
    lumat_gather gather; /* its prefix is the word */
    lumat_completion place;
    int at; /* the token that the word would be */
} lumat_query;

/* The call in whose parentheses the cursor directly is; 0: there is none. */
int lumat_find_call_around(lumat_query *q, lumat_calling *call);

/* offer_names.c */

/* The operand that the word stands beside, in the call (NULL: in none) or
 * behind an operator. */
lumat_partner lumat_find_partner(lumat_query *q, const lumat_calling *call);
/* Pushes what a matrix that fits gives, or that it fits: "gives 3x4". */
void lumat_push_fit(lua_State *L, const lumat_partner *p, const gpu_matrix *m);
/* Variables, those first that fit the partner when there is one (NULL: none),
 * and keywords. */
void lumat_offer_variables(lumat_query *q, const lumat_partner *partner);
/* What may follow the . or : before the word. */
void lumat_offer_fields(lumat_query *q);
void lumat_offer_methods(lumat_query *q);
/* The string keys of the table before the [ and quote before the word, or the
 * columns of the frame. */
void lumat_offer_keys(lumat_query *q);
/* Pushes the columns by name of the object on top where it is a frame, else
 * nil. */
void lumat_push_columns(lua_State *L);
/* The keys of the table at index that are written between quotes as they are;
 * those of an index of 0 are none. */
void lumat_gather_keys(lumat_gather *g, int index);

/* offer_values.c */

/* What a command takes that is no Lua; 0: it takes Lua. */
int lumat_offer_wanted(lumat_query *q);
/* Whether the cursor is in a call's table of options, behind { , or =. If so,
 * offers names or values. */
int lumat_offer_options(lumat_query *q);
/* What may stand in the quotes that are open. */
void lumat_offer_in_string(lumat_query *q);

/* offer_index.c */

/* Whether the cursor is where an index of a matrix begins, or a part of one. If
 * so, offers its forms, to be read. */
int lumat_offer_index(lumat_query *q);

#endif
