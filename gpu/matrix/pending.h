/* What waits, for the files that record it (pending.c, which tells how a value
 * travels), make programs of it (compose.c) and run them (settle.c). Nobody
 * else includes this. */
#ifndef GPU_PENDING_H
#define GPU_PENDING_H

#include "core.h"

struct gpu_pending {
    const char *name;
    gpu_program p;                 /* of a product: over both factors, empty */
    gpu_matrix in[GPU_MAX_INPUTS]; /* with a reference each */
    gpu_waiting_product product;   /* its run is NULL: it is none */
    gpu_matrix out;                /* its storage is what waits: borrowed */
    int was_part;                  /* of a program, while others held it */
    int was_run;                   /* as a part, or what a program took in */
    int follows;                   /* see gpu_find_user */
    int is_running; /* a collection, for which it had no memory, may find it */
    int is_kept;    /* the list has a reference, too */
    int is_left;    /* see gpu_leave_waiting */
    const char *source; /* where it was written; NULL: not known */
    int line;
    int is_drawn;      /* no program: random numbers */
    uint8_t roundings; /* to f32 where it is part of an f64 program, with all
                          it is made of; GPU_NEVER_WIDE: it cannot be */
    gpu_random draw;
    gpu_pending *previous, *next; /* in the order of recording */
};

enum { GPU_NEVER_WIDE = UINT8_MAX };

/* Where one who goes through the list is: what ends meanwhile is passed by. */
typedef struct gpu_cursor {
    gpu_pending *next;
    struct gpu_cursor *outer;
} gpu_cursor;

/* The list, where those are who go through it, and what was set. */
extern struct gpu_waiting {
    gpu_pending *first, *last;
    gpu_cursor *cursors;
    int count, products, makes_room;
    int executes; /* see gpu_execute_all */
    size_t settled;
    gpu_fusion fusion;
    void (*collect)(void *data, gpu_garbage which);
    void *data;
    int (*ask_line)(void *data, const char **source);
    void *line_data;
} gpu_waiting;

static inline gpu_pending *pending_of(const gpu_matrix *m)
{
    return m->storage->pending;
}

/* --- the list (pending.c) ------------------------------------------------- */

/* Gives back the list's own reference: is_kept. */
void gpu_let_go(gpu_pending *n);
/* Lets the language look for garbage, which may run finalisers, and those
 * anything here. */
void gpu_collect_garbage(gpu_garbage which);

/* --- composing (compose.c) ------------------------------------------------ */

/* Parts of a program: some have no instruction, as conversions to a wider type
 * and random numbers. */
enum { GPU_MOST_NODES = GPU_MAX_CODE + GPU_MAX_INPUTS };

/* What becomes of a program and of those of its operands that wait. */
typedef struct gpu_gathering {
    gpu_composition *c;
    int64_t rows, cols;
    uint8_t compute; /* of all: see "one type for all parts" in compose.c */
    int draws;       /* may parts be random numbers? */
    int narrows;     /* may f64 be read as f32? */
    int is_alone, fits, length, inputs, constants, nodes;
    gpu_storage *misfit; /* that waits and cannot be a part; or NULL */
    int most_code, most_constants;
    double constant[GPU_MAX_CONSTANTS];
    gpu_pending *node[GPU_MOST_NODES]; /* operands before what reads them */
    int reads[GPU_MOST_NODES];         /* how often they are read here */
    int value[GPU_MOST_NODES];         /* the numbers of their results */
    int takes_product;                 /* may it take one in? */
    gpu_pending *product;              /* that it takes in; or NULL */
    int product_reads;
} gpu_gathering;

/* How many of its operands lie in the storage; and all of them. */
int gpu_count_reads(const gpu_pending *n, const gpu_storage *s);
void gpu_operands_of(const gpu_pending *n, const gpu_matrix **in);

/* Of nothing yet, in that type and for the inputs' device, and with one more
 * value in it, as a part. */
gpu_gathering gpu_begin_gathering(const gpu_program *p, gpu_dtype compute,
                                  const gpu_matrix *const *in, int64_t rows,
                                  int64_t cols, gpu_composition *c);
void gpu_gather_node(gpu_gathering *g, gpu_pending *n);
/* What becomes of the program; the inputs are borrowed. takes_product: may one
 * that waits be among them? */
gpu_gathering gpu_gather_operands(const gpu_program *p,
                                  const gpu_matrix *const *in, int64_t rows,
                                  int64_t cols, int takes_product,
                                  gpu_composition *c);
/* What becomes of n, which waits and is no product. */
gpu_gathering gpu_gather_waiting(const gpu_pending *n, gpu_composition *c);

/* What a program's results are rounded to f32 in one of f64, with what waits
 * among its inputs: see `roundings`. */
int gpu_count_roundings(const gpu_program *p, const gpu_matrix *const *in);
/* Does the program compute in a type of its own, with nothing beside it? */
int gpu_is_alone(const gpu_program *p);
/* The place of a part, and of an input; -1: it is none. */
int gpu_find_node(const gpu_gathering *g, const gpu_pending *n);
int gpu_find_input(const gpu_gathering *g, const gpu_matrix *m);
/* Does anything else than what was gathered hold the part; any of them? */
int gpu_is_held(const gpu_gathering *g, int at);
int gpu_has_held(const gpu_gathering *g);
/* The first that is better settled than worked out as a part; NULL: none. */
gpu_storage *gpu_choose_settled(const gpu_gathering *g);

/* The program of all parts into g->c, and their names. */
enum { GPU_LONGEST_NAME = 60 };
void gpu_compose_parts(gpu_gathering *g, char names[GPU_LONGEST_NAME]);
/* That of p, too, with what was gathered for it; its result is written in that
 * type. */
void gpu_compose_gathered(gpu_gathering *g, const char *name,
                          const gpu_program *p, const gpu_matrix *const *in,
                          gpu_dtype written);

/* --- settling (settle.c) -------------------------------------------------- */

/* Works out what waits for these bytes; nothing where they are there. */
gpu_status gpu_settle_storage(gpu_storage *s);
/* The first that is wanted of what a product goes into, the product among it;
 * NULL: none, or it is no product. */
gpu_pending *gpu_find_user(gpu_pending *product);

#endif
