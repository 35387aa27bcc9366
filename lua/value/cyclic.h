/* Places, from 0, of a dimension whose blocks go round the processes of a line
 * of a grid, as ScaLAPACK has it (Blackford et al., ScaLAPACK Users' Guide,
 * 1997, section 4.3). */
#ifndef LUMAT_CYCLIC_H
#define LUMAT_CYCLIC_H

#include <stdint.h>

typedef struct lumat_cyclic {
    int64_t n, block, process, processes;
} lumat_cyclic;

static inline int lumat_cyclic_is_valid(const lumat_cyclic *c)
{
    return c->n >= 0 && c->block > 0 && c->process >= 0 &&
           c->process < c->processes;
}

/* How many of the first n the process has. */
static inline int64_t lumat_cyclic_count(const lumat_cyclic *c, int64_t n)
{
    int64_t round = c->block * c->processes;
    int64_t rest = n % round - c->process * c->block;
    int64_t some = rest < 0 ? 0 : rest < c->block ? rest : c->block;
    return n / round * c->block + some;
}

/* The place of its i-th, from 0. */
static inline int64_t lumat_cyclic_place(const lumat_cyclic *c, int64_t i)
{
    return (i / c->block * c->processes + c->process) * c->block + i % c->block;
}

#endif
