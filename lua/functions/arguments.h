/* Arguments of functions: sizes, axes, options, and what does not fit. */
#ifndef LUMAT_ARGUMENTS_H
#define LUMAT_ARGUMENTS_H

#include "function.h"
#include "team.h"

/* What a constructor is asked for: (m, n [, options]) or (n [, options]). */
typedef struct lumat_request {
    const char *name; /* of the constructor, for messages about elements */
    int ndim;
    int64_t rows, cols;
    gpu_dtype dtype;
    gpu_device *device;
    int options;        /* stack index of the table, or of nothing */
    int may_be_complex; /* the type is no one's wish */
} lumat_request;

/* An argument that its row calls a number or an integer. In a dry run it may
 * be unknown, which raises that what is done has to be run. */
double lumat_check_number(lua_State *L, int arg);
lua_Integer lumat_check_integer(lua_State *L, int arg);
lua_Integer lumat_optional_integer(lua_State *L, int arg,
                                   lua_Integer otherwise);
/* The matrix at arg, which must have one axis, or two. */
gpu_matrix *lumat_check_vector(lua_State *L, int arg);
gpu_matrix *lumat_check_two_axes(lua_State *L, int arg);

/* Reads sizes and the options dtype and device from arg on. */
lumat_request lumat_check_request(lua_State *L, int arg);
/* A size argument: a whole number, not negative. */
int64_t lumat_check_size(lua_State *L, int arg);
/* An axis of m, which is 1 when there is no argument. */
int lumat_check_axis(lua_State *L, int arg, const gpu_matrix *m);
/* The axis of m under `axis` of the options at arg; 0: none is there. */
int lumat_option_axis(lua_State *L, int arg, const gpu_matrix *m);
/* How many arguments there are, nils at the end aside. */
int lumat_arguments(lua_State *L);

/* Does a matrix of dtype hold the whole number exactly? (f32 up to 2^24, and
 * some above.) */
int lumat_holds(gpu_dtype dtype, double whole);
/* Raises that it does not, what being the number or numbers as a text. */
int lumat_raise_inexact(lua_State *L, const char *name, const char *what,
                        gpu_dtype dtype);
/* The same for a Lua integer on top, such as a place, that is to become an
 * element. */
void lumat_check_whole(lua_State *L, const char *name, gpu_dtype dtype);

/* The element type and the device under `dtype` and `device` of the options at
 * arg. */
gpu_dtype lumat_option_dtype(lua_State *L, int arg, gpu_dtype otherwise);
gpu_device *lumat_option_device(lua_State *L, int arg, gpu_device *otherwise);
/* For functions that compute operands of the CPU by other devices, too: their
 * options for rows, and those under `device` of the options at arg, for
 * gpu_compute_together; none: where m lies, as where arg is 0. Raises where
 * that is elsewhere. */
#define LUMAT_OPTION_THROUGH                                                  \
    {                                                                         \
        "device", "device|devices", "where A lies",                           \
            "\"cuda\", \"cuda:N\": what computes it, in tiles, of operands "  \
            "on the CPU, which may be larger than its memory; the result "    \
            "lies on the CPU; {\"cuda:0\", \"cuda:1\"}: both, with tiles of " \
            "their own"                                                       \
    }
extern const lumat_option lumat_through_options[];
gpu_team lumat_option_through(lua_State *L, int arg, const gpu_matrix *m);
/* The number under key of the options at arg. */
double lumat_option_number(lua_State *L, int arg, const char *key,
                           double otherwise);
/* The matrix under `out` of the options at arg, left on the stack; NULL when
 * there is none. */
gpu_matrix *lumat_option_out(lua_State *L, int arg);

/* out (made when empty) = 0-based places as 1-based ones; may be in place.
 * name is what errors and the trace say. */
void lumat_count_from_one(lua_State *L, const char *name,
                          const gpu_matrix *places, gpu_matrix *out);

#endif
