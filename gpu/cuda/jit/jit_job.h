/* What a compiled kernel is given: read by the host and by the text of the
 * kernels alike, so it includes nothing. */
#ifndef JIT_JOB_H
#define JIT_JOB_H

enum { JIT_INPUTS = 8, JIT_CONSTANTS = 8, JIT_EXTRAS = 3 };
enum { JIT_THREADS = 256, JIT_ITEMS = 4 }; /* of a block; side by side */

/* Tiles of what lies along columns, and rows and columns that are worth one. */
enum { JIT_SIDE = 64, JIT_LEAST_SIDE = 16 };

/* How an input lies, or comes to be, for a thread that wants four neighbours of
 * a row. */
typedef enum jit_way {
    JIT_WIDE,   /* 16 bytes at once (of truth values 4) */
    JIT_ROW,    /* the same, and the same row everywhere */
    JIT_COLUMN, /* one element a row */
    JIT_SAME,   /* one element */
    JIT_EACH,   /* element by element, by any strides */
    JIT_TURNED, /* along columns, by any strides: a tile at a time */
    /* drawn: element (i, j) is the one of the number that its place is */
    JIT_UNIFORM,
    JIT_NORMAL,
    JIT_INTEGER,
    JIT_WAYS
} jit_way;

/* What the rounds of Philox, for blocks of numbers below 2^32, have in common:
 * of the counter only the lower word differs, so that one of the two products
 * of each of the first two rounds is the same for all; it lies in early, joined
 * with the keys. And limits: low, high, what is between them, and the largest
 * number below high. */
enum { JIT_DRAWS = 2, JIT_ROUNDS = 10 };
typedef struct jit_rounds {
    unsigned early[4];
    unsigned keys[JIT_ROUNDS][2];
} jit_rounds;
typedef struct jit_draw {
    jit_rounds rounds;
    float single[4];
    double wide[4];
} jit_draw;

/* Element (i, j) lies i row_stride + j col_stride elements from data. */
typedef struct jit_operand {
    const void *data;
    long long row_stride, col_stride;
} jit_operand;

typedef struct jit_job {
    jit_operand in[JIT_INPUTS], out;
    void *extra[JIT_EXTRAS]; /* further results, which lie as out does */
    long long rows, cols;
    unsigned across; /* blocks beside each other; unused of a single row */
    float single[JIT_CONSTANTS];
    double constant[JIT_CONSTANTS]; /* the same in f64, or what f64 has */
    jit_draw draw[JIT_DRAWS];       /* in the order of their inputs */
} jit_job;

/* How a pass that reduces shares out its lines, which are what stays, and their
 * elements: see reduce_body.h. */
enum { JIT_FOLD_THREADS = 128 };
typedef struct jit_lines {
    long long lines, length; /* elements of each */
    long long row_length;    /* whole: for row-major places */
    long long chunk;         /* elements of a line that a block takes */
    long long chunks;
    int kind; /* gpu_reduction */
    int is_whole;
    int is_turned;     /* lines are columns */
    int along_threads; /* power of two; the others go over lines */
    int along_first;   /* neighbouring threads run along the line */
    int neighbours;    /* a thread's four elements lie side by side */
    void *partials;    /* lines x chunks; whole: a block each */
} jit_lines;

/* What reduces a program's results: out has one for each line, below each
 * other. */
typedef struct jit_reduction {
    jit_job job;
    jit_lines lines;
} jit_reduction;

#endif
