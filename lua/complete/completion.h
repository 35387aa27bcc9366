/* What may stand at the cursor. */
#ifndef LUMAT_COMPLETION_H
#define LUMAT_COMPLETION_H

#include <stddef.h>
#include "value.h"

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

#endif
