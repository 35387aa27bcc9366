/* Functions of a library that compute nothing: such as do nothing, make what a
 * handle is, and end it. */
#include <stdlib.h>

#define NOTHING(name)        \
    extern "C" int name(...) \
    {                        \
        return 0;            \
    }
#define MAKE(name)                       \
    extern "C" int name(void **out, ...) \
    {                                    \
        *out = malloc(1);                \
        return 0;                        \
    }
#define END(name)                   \
    extern "C" int name(void *made) \
    {                               \
        free(made);                 \
        return 0;                   \
    }
