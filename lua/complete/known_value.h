/* What is certain about an expression before it is evaluated. Nothing here
 * runs user code or waits for a device: tables are read raw, the rest is known
 * of the library. Functions that push a value leave nil when there is none. */
#ifndef LUMAT_KNOWN_VALUE_H
#define LUMAT_KNOWN_VALUE_H

#include "parse.h"
#include "value.h"
#include "scope.h"

enum { LUMAT_LEVELS = 40 }; /* nesting that is looked into */

/* --- known_value.c, chain.c, steps.c
 * -------------------------------------------- */

/* What is certain about an expression before it is evaluated. */
typedef enum lumat_fact_kind {
    LUMAT_IS_UNKNOWN,
    LUMAT_IS_VALUE, /* a table, a function or another's userdata, on the stack
                     */
    LUMAT_IS_DENSE,
    LUMAT_IS_SPARSE,
    LUMAT_IS_STRING,
    LUMAT_IS_NUMBER
} lumat_fact_kind;

typedef struct lumat_fact {
    lumat_fact_kind kind;
    gpu_matrix shape;         /* of a matrix; ndim 0: not known */
    const gpu_device *device; /* of a matrix; NULL: not known */
} lumat_fact;

/* The fact about the value on top. */
lumat_fact lumat_fact_of(lua_State *L);
/* Replaces the value on top by its field, or by nil. */
void lumat_replace_by_field(lua_State *L, const char *name, size_t length);
/* Replaces the value on top by the table in which its fields are found next:
 * what its metatable has as __index. Pops it and returns 0 when there is no
 * such table. */
int lumat_next_table(lua_State *L);
/* The name of the library's function on top, or NULL. */
const char *lumat_library_name(lua_State *L);
/* Where the chain of names, calls and indices that ends before token `end`
 * begins; `end` when there is none. */
int lumat_chain_start(const lumat_tokens *t, int end);
/* The fact about the chain first .. end - 1. Pushes its value, or nil. */
lumat_fact lumat_push_chain(lua_State *L, const lumat_tokens *t, int first,
                            int end);
/* The same from *at on, as far as the chain goes; depth counts brackets. */
lumat_fact lumat_read_chain(lua_State *L, const lumat_tokens *t, int *at,
                            int end, int depth);
/* Takes the step of a chain at token i, and returns where it ends: at i when
 * there is none. */
int lumat_take_step(lua_State *L, const lumat_tokens *t, int i, int end,
                    lumat_fact *fact);
/* Arguments between an open bracket and token `end`. */
int lumat_count_arguments(const lumat_tokens *t, int open, int end);

/* --- infer_shape.c
 * -------------------------------------------------------------- */

/* What a binary operator makes of two operands. */
lumat_fact lumat_combine(lumat_fact a, int sign, lumat_fact b);
/* The fact about the expression first .. end - 1; with an operator at `end`,
 * about its left operand. Pushes its value, or nil. */
lumat_fact lumat_infer(lua_State *L, const lumat_tokens *t, int first, int end,
                       int depth);
/* Where the expression that ends before token `end` begins. */
int lumat_expression_start(const lumat_tokens *t, int end);
int lumat_is_binary(const lumat_tokens *t, int i);
/* What the library's function gives for so many arguments, by its row. */
lumat_fact lumat_result_of(lua_State *L, const char *function, int arguments);

#endif
