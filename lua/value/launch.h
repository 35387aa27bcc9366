/* How a state is begun, and what its scripts may do. */
#ifndef LUMAT_LAUNCH_H
#define LUMAT_LAUNCH_H

#include <stddef.h>

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

#endif
