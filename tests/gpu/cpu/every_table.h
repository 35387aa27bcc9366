/* The tables of vector functions, each tried in turn. */
#ifndef EVERY_TABLE_H
#define EVERY_TABLE_H

#include "vector.h"

/* Calls `check` with each table that the processor can run. */
static inline void by_every_table(void (*check)(void))
{
    const gpu_cpu_vector *best = gpu_cpu_vectors;
    const gpu_cpu_vector *tables[] = {&gpu_cpu_vector_base,
                                      &gpu_cpu_vector_avx2, best};
    for (int i = 0; i < 3; i++) {
        if (!tables[i]->name || (i == 1 && best == &gpu_cpu_vector_base))
            continue;
        gpu_cpu_vectors = tables[i];
        check();
    }
    gpu_cpu_vectors = best;
}

#endif
