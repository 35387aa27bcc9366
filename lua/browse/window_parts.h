/* A window from the inside, for the files of this room. */
#ifndef LUMAT_WINDOW_PARTS_H
#define LUMAT_WINDOW_PARTS_H

#include "browse.h"
#include "print.h"

struct lumat_window {
    /* One of the two; both belong to a value the userdata keeps. A vector is
     * a matrix of one column here. */
    gpu_matrix *dense;
    gpu_sparse *sparse;
    int64_t rows, cols;
    gpu_dtype dtype;
    int digits, always_e;
    int is_vector, is_turned;
    lumat_area here; /* no rows: nothing yet */
    double *values;
    uint8_t *stored;       /* sparse only */
    lumat_column *columns; /* one for each column that is here */
};

#endif
