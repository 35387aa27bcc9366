/* A function of numbers as a formula: what it computes of its arguments, as
 * operations of ops.def. For the files of lua/math that make and run one. */
#ifndef LUMAT_FORMULA_H
#define LUMAT_FORMULA_H

#include "team.h"
#include "value.h"

enum { LUMAT_MOST_VALUES = 1024, LUMAT_HINDRANCE = 200 };

typedef enum lumat_value_is {
    LUMAT_VALUE_OPERAND,  /* an element of the matrix at argument x */
    LUMAT_VALUE_CONSTANT, /* number */
    LUMAT_VALUE_OPERATION /* op of the values x, y, z */
} lumat_value_is;

/* What Lua would hold there. */
typedef enum lumat_value_kind {
    LUMAT_FLOAT,
    LUMAT_WHOLE,  /* an integer from low to high */
    LUMAT_EITHER, /* a float for some elements, such an integer for others */
    LUMAT_TRUTH   /* true or false: 1 or 0 */
} lumat_value_kind;

typedef struct lumat_formula_value {
    lumat_value_is is;
    lumat_value_kind kind;
    int op, x, y, z; /* values before this one; those past the arity are 0 */
    double number;
    double low, high;
} lumat_formula_value;

/* Computed in f64, every step as Lua does it. */
typedef struct lumat_formula {
    int count, result; /* result: a value's number */
    int is_mixed;      /* true or false for some elements, numbers for others */
    lumat_formula_value values[LUMAT_MOST_VALUES];
    char hindrance[LUMAT_HINDRANCE]; /* "calls print (line 3)" */
} lumat_formula;

/* Reads the function at index f as a formula of the arguments first …
 * first + count - 1, matrices and numbers, and behind them the row and the
 * column of the element: of a result of `shape`. f is not called. Returns 0,
 * with the hindrance, where it does anything but compute: what it takes from
 * outside counts as it is now, so it must change nothing, and call nothing but
 * such functions. Raises nothing but for memory. */
int lumat_read_formula(lua_State *L, int f, int first, int count,
                       const gpu_matrix *shape, lumat_formula *out);

/* Notes which functions math.sin and the like are. */
void lumat_know_math(lua_State *L);

/* Pushes a matrix of that type and shape, the values of the formula for the
 * arguments from first on, and returns it. One program where it fits one, else
 * parts of it one after the other; where through has devices by these. */
gpu_matrix *lumat_run_formula(lua_State *L, const lumat_formula *formula,
                              int first, int count, const gpu_matrix *shape,
                              gpu_dtype dtype, gpu_team through);

/* The operation whose function is at index; -1: it is none. */
int lumat_op_at(lua_State *L, int index);
enum { LUMAT_MOST_DECIMALS = 308 }; /* of round: 10^309 is no number */
/* Has it a second operand besides those of its expression: round, log, atan? */
int lumat_has_second(gpu_op op);
/* Adds the instructions of one with it to a program of two inputs, x and the
 * second operand, which is `second` where that is known, else NaN; round's has
 * to be. */
void lumat_add_with_second(gpu_program *p, gpu_op op, double second);

#endif
