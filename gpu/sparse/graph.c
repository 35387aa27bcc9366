/* Searches through graphs: a square sparse matrix whose entry at (i, j), be it
 * zero, is an edge from node i to node j. They follow edges one by one, so they
 * run on the CPU; of a graph on a GPU its arrays come over once. Sources:
 * Tarjan, Efficiency of a good but not linear set union algorithm, 1975, and
 * Depth-first search and linear graph algorithms, 1972; Dijkstra, A note on two
 * problems in connexion with graphs, 1959; Bellman, On a routing problem, 1958.
 */
#include "sparse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The edges as they lie in the CPU's memory. */
typedef struct edges {
    int32_t nodes;
    const int32_t *starts, *ends; /* those of i: ends[starts[i]] … */
    const double *lengths;        /* NULL where they are not asked for */
    gpu_sparse here;              /* what these lie in */
} edges;

static gpu_status no_room(size_t bytes)
{
    return gpu_fail(GPU_MEMORY, "out of memory: %s to search a graph",
                    gpu_bytes_text(bytes));
}

/* An array of n + 1 elements, so that none is empty. */
static void *take_room(int64_t n, size_t size, gpu_status *status)
{
    size_t bytes = ((size_t)n + 1) * size;
    void *room = *status == GPU_OK ? malloc(bytes) : NULL;
    if (*status == GPU_OK && !room)
        *status = no_room(bytes);
    return room;
}

static gpu_status check_graph(const char *name, const gpu_sparse *s)
{
    gpu_device *d;
    TRY(gpu_sparse_check(name, s, &d));
    if (s->rows == s->cols)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE, "%s: a graph is a square matrix, not %s", name,
                    gpu_size_text(s->rows, s->cols));
}

/* The values of a matrix on the CPU come as f64, whatever their type; where
 * they are not read they stay as they are. */
static gpu_status open_edges(const gpu_sparse *s, int has_lengths, edges *e)
{
    gpu_dtype type = has_lengths ? GPU_F64 : s->values.dtype;
    *e = (edges){.nodes = (int32_t)s->rows};
    TRY(gpu_sparse_clone(s, type, gpu_cpu(), &e->here));
    gpu_status status = gpu_settle(&e->here.values);
    if (status != GPU_OK) {
        gpu_sparse_release(&e->here);
        return status;
    }
    e->starts = gpu_view_of(&e->here.starts).data;
    e->ends = gpu_view_of(&e->here.columns).data;
    if (has_lengths)
        e->lengths = gpu_view_of(&e->here.values).data;
    return GPU_OK;
}

/* A new vector on s's device with the n values. */
static gpu_status give(const gpu_sparse *s, int64_t n, const double *values,
                       gpu_matrix *out)
{
    return gpu_upload_vector(gpu_matrix_device(&s->values), GPU_F64, n, values,
                             out);
}

/* --- edges of each node --------------------------------------------------- */

gpu_status gpu_graph_degrees(const gpu_sparse *s, gpu_matrix *out)
{
    edges e;
    out->storage = NULL;
    TRY(check_graph("degree", s));
    if (gpu_dry)
        return give(s, s->rows, NULL, out);
    TRY(open_edges(s, 0, &e));
    gpu_status status = GPU_OK;
    double *counts = take_room(e.nodes, sizeof *counts, &status);
    for (int32_t i = 0; status == GPU_OK && i < e.nodes; i++)
        counts[i] = e.starts[i + 1] - e.starts[i];
    if (status == GPU_OK)
        status = give(s, e.nodes, counts, out);
    free(counts);
    gpu_sparse_release(&e.here);
    return status;
}

/* --- components ----------------------------------------------------------- */

/* The first node of i's tree; each node passed on the way is hung higher. */
static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* first[i] becomes the smallest node that i is joined with, edges taken both
 * ways. */
static gpu_status join(const edges *e, int32_t *first)
{
    for (int32_t i = 0; i < e->nodes; i++)
        first[i] = i;
    for (int32_t i = 0; i < e->nodes; i++)
        for (int32_t k = e->starts[i]; k < e->starts[i + 1]; k++) {
            POLL_AT(k);
            int32_t a = root_of(first, i), b = root_of(first, e->ends[k]);
            if (a < b)
                first[b] = a;
            else
                first[a] = b;
        }
    for (int32_t i = 0; i < e->nodes; i++)
        first[i] = root_of(first, i);
    return GPU_OK;
}

/* Tarjan's search, its recursion laid out as a list. A node's number says when
 * it was met, its low which node met earlier it comes back to. */
typedef struct search {
    const edges *e;
    int32_t *number, *low; /* 0: not met; low: node until its component ends */
    int32_t *next;         /* the edge that is followed next */
    int32_t *path, *open;  /* nodes being searched; those of no component yet */
    int32_t met, depth, opened;
    int32_t *first; /* what it finds; -1: no component yet */
} search;

static void enter(search *s, int32_t i)
{
    s->number[i] = s->low[i] = ++s->met;
    s->next[i] = s->e->starts[i];
    s->path[s->depth++] = i;
    s->open[s->opened++] = i;
}

/* All that was opened since i is one component with it. */
static void close_component(search *s, int32_t i)
{
    int32_t begin = s->opened, least = i;
    do {
        begin--;
        if (s->open[begin] < least)
            least = s->open[begin];
    } while (s->open[begin] != i);
    for (int32_t k = begin; k < s->opened; k++)
        s->first[s->open[k]] = least;
    s->opened = begin;
}

static void leave(search *s, int32_t i)
{
    s->depth--;
    if (s->low[i] == s->number[i])
        close_component(s, i);
    if (s->depth > 0) {
        int32_t above = s->path[s->depth - 1];
        if (s->low[i] < s->low[above])
            s->low[above] = s->low[i];
    }
}

static gpu_status search_from(search *s, int32_t start)
{
    enter(s, start);
    while (s->depth > 0) {
        int32_t i = s->path[s->depth - 1], k = s->next[i]++;
        POLL_AT(k);
        if (k == s->e->starts[i + 1]) {
            leave(s, i);
            continue;
        }
        int32_t j = s->e->ends[k];
        if (s->number[j] == 0)
            enter(s, j);
        else if (s->first[j] < 0 && s->number[j] < s->low[i])
            s->low[i] = s->number[j];
    }
    return GPU_OK;
}

/* As join, of nodes with ways from each to each. */
static gpu_status join_both_ways(const edges *e, int32_t *first)
{
    gpu_status status = GPU_OK;
    int32_t *room = take_room(5 * (int64_t)e->nodes, sizeof *room, &status);
    size_t n = (size_t)e->nodes;
    if (status != GPU_OK)
        return status;
    search s = {.e = e,
                .first = first,
                .number = room,
                .low = room + n,
                .next = room + 2 * n,
                .path = room + 3 * n,
                .open = room + 4 * n};
    memset(s.number, 0, n * sizeof *s.number);
    for (int32_t i = 0; i < e->nodes; i++)
        first[i] = -1;
    for (int32_t i = 0; status == GPU_OK && i < e->nodes; i++)
        if (s.number[i] == 0)
            status = search_from(&s, i);
    free(room);
    return status;
}

/* From first nodes to numbers from 1 on, in the order of these nodes. */
static int64_t number_components(int32_t nodes, const int32_t *first,
                                 double *numbers)
{
    int64_t count = 0;
    for (int32_t i = 0; i < nodes; i++)
        numbers[i] = first[i] == i ? (double)++count : numbers[first[i]];
    return count;
}

gpu_status gpu_graph_components(const gpu_sparse *s, int is_strong,
                                gpu_matrix *numbers, int64_t *count)
{
    edges e;
    numbers->storage = NULL;
    *count = 1;
    TRY(check_graph("components", s));
    if (gpu_dry)
        return give(s, s->rows, NULL, numbers);
    TRY(open_edges(s, 0, &e));
    gpu_status status = GPU_OK;
    int32_t *first = take_room(e.nodes, sizeof *first, &status);
    double *values = take_room(e.nodes, sizeof *values, &status);
    if (status == GPU_OK)
        status = is_strong ? join_both_ways(&e, first) : join(&e, first);
    if (status == GPU_OK) {
        *count = number_components(e.nodes, first, values);
        status = give(s, e.nodes, values, numbers);
    }
    free(first);
    free(values);
    gpu_sparse_release(&e.here);
    return status;
}

/* --- ways from one node --------------------------------------------------- */

/* What a search from a node fills: how far nodes are, INFINITY where no way
 * leads, and the node before each on a way there, from 1; NaN: none. */
typedef struct ways {
    const edges *e;
    double *distance, *previous;
} ways;

typedef gpu_status (*filler)(const ways *w, int32_t from, int64_t *trouble);

static gpu_status fill_ways(const char *name, const gpu_sparse *s,
                            int has_lengths, filler fill, int64_t from,
                            gpu_matrix *distances, gpu_matrix *previous,
                            int64_t *trouble)
{
    edges e;
    distances->storage = previous->storage = NULL;
    TRY(check_graph(name, s));
    if (from < 0 || from >= s->rows)
        return gpu_fail(GPU_RANGE, "%s: node %lld is outside 1..%lld", name,
                        (long long)from + 1, (long long)s->rows);
    gpu_status status = GPU_OK;
    ways w = {&e, NULL, NULL};
    if (gpu_dry) {
        e = (edges){.nodes = (int32_t)s->rows};
    } else {
        TRY(open_edges(s, has_lengths, &e));
        w.distance = take_room(e.nodes, sizeof *w.distance, &status);
        w.previous = take_room(e.nodes, sizeof *w.previous, &status);
        for (int32_t i = 0; status == GPU_OK && i < e.nodes; i++) {
            w.distance[i] = INFINITY;
            w.previous[i] = NAN;
        }
        if (status == GPU_OK)
            status = fill(&w, (int32_t)from, trouble);
    }
    if (status == GPU_OK)
        status = give(s, e.nodes, w.distance, distances);
    if (status == GPU_OK)
        status = give(s, e.nodes, w.previous, previous);
    if (status != GPU_OK)
        gpu_release(distances);
    free(w.distance);
    free(w.previous);
    gpu_sparse_release(&e.here);
    return status;
}

/* Nodes in the order in which they are met, those of a distance together. */
static gpu_status walk(const ways *w, int32_t from, int64_t *trouble)
{
    gpu_status status = GPU_OK;
    int32_t *met = take_room(w->e->nodes, sizeof *met, &status);
    int32_t count = 0;
    (void)trouble;
    if (status != GPU_OK)
        return status;
    w->distance[from] = 0;
    met[count++] = from;
    for (int32_t at = 0; status == GPU_OK && at < count; at++) {
        int32_t i = met[at], last = w->e->starts[i + 1];
        if (at % GPU_POLL == 0)
            status = gpu_poll();
        for (int32_t k = w->e->starts[i]; k < last; k++) {
            int32_t j = w->e->ends[k];
            if (w->distance[j] < INFINITY)
                continue;
            w->distance[j] = w->distance[i] + 1;
            w->previous[j] = i + 1;
            met[count++] = j;
        }
    }
    free(met);
    return status;
}

gpu_status gpu_graph_walk(const gpu_sparse *s, int64_t from, gpu_matrix *depths,
                          gpu_matrix *previous)
{
    int64_t none;
    return fill_ways("bfs", s, 0, walk, from, depths, previous, &none);
}

/* --- the shortest ways ---------------------------------------------------- */

/* The nodes that may come next, in a heap of four children each, the nearest
 * first; of two as near the one with the smaller number. */
typedef struct heap {
    const double *distance;
    int32_t *node, *place; /* place[node[k]] is k; -1: not there */
    int32_t count;
} heap;

static int is_nearer(const heap *h, int32_t a, int32_t b)
{
    double x = h->distance[a], y = h->distance[b];
    return x < y || (x == y && a < b);
}

static void put(heap *h, int32_t at, int32_t node)
{
    h->node[at] = node;
    h->place[node] = at;
}

static void rise(heap *h, int32_t at, int32_t node)
{
    while (at > 0) {
        int32_t above = (at - 1) / 4;
        if (!is_nearer(h, node, h->node[above]))
            break;
        put(h, at, h->node[above]);
        at = above;
    }
    put(h, at, node);
}

static void sink(heap *h, int32_t node)
{
    int64_t at = 0;
    for (int64_t below = 1; below < h->count; below = 4 * at + 1) {
        int64_t least = below;
        for (int64_t k = below + 1; k < below + 4 && k < h->count; k++)
            if (is_nearer(h, h->node[k], h->node[least]))
                least = k;
        if (is_nearer(h, node, h->node[least]))
            break;
        put(h, (int32_t)at, h->node[least]);
        at = least;
    }
    put(h, (int32_t)at, node);
}

/* The nearest node, which leaves the heap. */
static int32_t take_nearest(heap *h)
{
    int32_t nearest = h->node[0], last = h->node[--h->count];
    h->place[nearest] = -1;
    if (h->count > 0)
        sink(h, last);
    return nearest;
}

static void follow_edges(const ways *w, heap *h, int32_t i)
{
    for (int32_t k = w->e->starts[i]; k < w->e->starts[i + 1]; k++) {
        int32_t j = w->e->ends[k];
        double distance = w->distance[i] + w->e->lengths[k];
        if (!(distance < w->distance[j]))
            continue;
        w->distance[j] = distance;
        w->previous[j] = i + 1;
        rise(h, h->place[j] < 0 ? h->count++ : h->place[j], j);
    }
}

/* Dijkstra's: no length is negative. */
static gpu_status go_nearest_first(const ways *w, int32_t from)
{
    gpu_status status = GPU_OK;
    int32_t n = w->e->nodes;
    heap h = {.distance = w->distance};
    h.node = take_room(n, sizeof *h.node, &status);
    h.place = take_room(n, sizeof *h.place, &status);
    for (int32_t i = 0; status == GPU_OK && i < n; i++)
        h.place[i] = -1;
    if (status == GPU_OK) {
        w->distance[from] = 0;
        rise(&h, h.count++, from);
    }
    for (int64_t round = 0; status == GPU_OK && h.count > 0; round++) {
        if (round % GPU_POLL == 0)
            status = gpu_poll();
        follow_edges(w, &h, take_nearest(&h));
    }
    free(h.node);
    free(h.place);
    return status;
}

/* Shortens ways by each edge once; a node whose way became shorter, or -1. */
static gpu_status shorten(const ways *w, int32_t *changed)
{
    *changed = -1;
    for (int32_t i = 0; i < w->e->nodes; i++)
        for (int32_t k = w->e->starts[i]; k < w->e->starts[i + 1]; k++) {
            int32_t j = w->e->ends[k];
            POLL_AT(k);
            double distance = w->distance[i] + w->e->lengths[k];
            if (distance < w->distance[j]) {
                w->distance[j] = distance;
                w->previous[j] = i + 1;
                *changed = j;
            }
        }
    return GPU_OK;
}

/* Bellman's and Ford's. A way that still becomes shorter after as many rounds
 * as there are nodes goes around a circle of negative length: trouble is one
 * of its nodes, from 1. */
static gpu_status go_in_rounds(const ways *w, int32_t from, int64_t *trouble)
{
    int32_t changed = from, n = w->e->nodes;
    w->distance[from] = 0;
    for (int32_t round = 0; round < n; round++) {
        TRY(shorten(w, &changed));
        if (changed < 0)
            return GPU_OK;
    }
    for (int32_t step = 0; step < n; step++)
        changed = (int32_t)w->previous[changed] - 1;
    *trouble = changed + 1;
    return GPU_OK;
}

/* Is a length below 0? One that is NaN is refused. */
static gpu_status look_at_lengths(const edges *e, int *has_negative)
{
    *has_negative = 0;
    for (int32_t i = 0; i < e->nodes; i++)
        for (int32_t k = e->starts[i]; k < e->starts[i + 1]; k++) {
            POLL_AT(k);
            if (isnan(e->lengths[k]))
                return gpu_fail(GPU_ARGUMENT,
                                "shortest_paths: the length of the edge from "
                                "%d to %d is nan",
                                i + 1, e->ends[k] + 1);
            *has_negative |= e->lengths[k] < 0;
        }
    return GPU_OK;
}

static gpu_status go(const ways *w, int32_t from, int64_t *trouble)
{
    int has_negative;
    TRY(look_at_lengths(w->e, &has_negative));
    return has_negative ? go_in_rounds(w, from, trouble)
                        : go_nearest_first(w, from);
}

gpu_status gpu_graph_paths(const gpu_sparse *s, int64_t from,
                           gpu_matrix *distances, gpu_matrix *previous,
                           int64_t *trouble)
{
    *trouble = 0;
    return fill_ways("shortest_paths", s, 1, go, from, distances, previous,
                     trouble);
}
