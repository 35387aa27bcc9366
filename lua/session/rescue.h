/* Saving the variables when the program cannot go on. */
#ifndef LUMAT_RESCUE_H
#define LUMAT_RESCUE_H

#include <stddef.h>

/* Saves what can be read of the variables, as save_session does, into the
 * first of the paths (up to a NULL) that can be written. For a program that
 * does not stop: lumat_rescue may be called in any signal handler. What it
 * leaves to do, if anything, lumat_rescue_here may, unless that hangs. said:
 * of LUMAT_RESCUE_TEXT bytes, what was saved or why it failed. */
typedef enum lumat_rescued {
    LUMAT_RESCUE_LATER = 1, /* it stands badly: try again in a moment */
    LUMAT_RESCUE_FAILED,
    LUMAT_RESCUED_IN_PART, /* lumat_rescue_here is needed */
    LUMAT_RESCUED
} lumat_rescued;
enum { LUMAT_RESCUE_TEXT = 4096 };
lumat_rescued lumat_rescue(const char *const *paths, char *said, size_t size);
lumat_rescued lumat_rescue_here(const char *const *paths, char *said,
                                size_t size);

#endif
