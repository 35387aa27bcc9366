/* Square tiles of what lies along columns, turned in shared memory: so both
 * sides move 16 bytes at a time. What interprets a program (map.cu) and what is
 * compiled for one (kernel_body.h) have this text.
 *
 * Before it stand ITEMS and the type quad<T> of so many elements. A block of
 * TURN_THREADS threads has a tile: thread t is the c-th in a row, with t =
 * TURN_ACROSS row + c, of rows row, TURN_DOWN + row …, of which it has a four
 * each. Its elements are neighbours, or apart: TURN_ACROSS from one another. */
#include "jit_job.h"

typedef long long int64;

enum { SIDE = JIT_SIDE, TURN_ACROSS = 16, TURN_DOWN = 16, TURN_THREADS = 256 };
enum { TURN_FOURS = SIDE / TURN_DOWN }; /* of a thread */

/* The column of a tile that thread t has: such that the threads of a warp find
 * 32 banks of shared memory, and as well when they fill a tile, where they have
 * eight fours in each of every fourth of 16 rows. */
__device__ __forceinline__ int own_column(int t)
{
    return t ^ (t / 64 % 4 << 3);
}

/* Where element k of a thread's q-th four lies. gap: what else lies between
 * every two of a thread's fours and the next. */
__device__ __forceinline__ int place_in_tile(int q, int row, int c, int k,
                                             int gap)
{
    return (q * ITEMS + k) * TURN_THREADS + q / 2 * gap +
           own_column(row * TURN_ACROSS + c);
}

/* What a tile is filled with: element (i, j) lies i row_stride + j col_stride
 * from the first, and there are rows x cols of them, or more. */
template <class S> struct tile_source {
    const S *first;
    int64 row_stride, col_stride, rows, cols;
    bool is_apart;
    int gap;
};

template <class T, class S> __device__ __forceinline__ T as_number(S x)
{
    return sizeof(S) == 1 ? (T)(x != 0) : (T)x;
}

template <class S>
__device__ __forceinline__ bool is_whole_and_wide(const tile_source<S> &from)
{
    return from.rows >= SIDE && from.cols >= SIDE && from.row_stride == 1 &&
           from.col_stride % ITEMS == 0 &&
           (unsigned long long)from.first % alignof(quad<S>) == 0;
}

/* A warp reads the whole of eight columns, a quarter of each at a time. */
template <class S, class T>
__device__ __forceinline__ void fill_whole(const tile_source<S> &from, T *tile)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = lane % 4 * ITEMS, c = warp / 4 * 8 + lane / 4, k = warp % 4;
    int j = from.is_apart ? c + k * TURN_ACROSS : c * ITEMS + k;
    const S *first = from.first + j * from.col_stride + row;
    quad<S> v[TURN_FOURS];
#pragma unroll
    for (int q = 0; q < TURN_FOURS; q++)
        v[q] = *(const quad<S> *)(first + q * TURN_DOWN);
#pragma unroll
    for (int q = 0; q < TURN_FOURS; q++)
#pragma unroll
        for (int e = 0; e < ITEMS; e++)
            tile[place_in_tile(q, row + e, c, k, from.gap)] =
                as_number<T>(v[q].at[e]);
}

/* Of any layout, or of which there is less: neighbouring threads read
 * neighbours in a column, and everything is asked for at once. */
template <class S, class T>
__device__ __forceinline__ void fill_part(const tile_source<S> &from, T *tile)
{
    int row = threadIdx.x % TURN_DOWN, c = threadIdx.x / TURN_DOWN;
    int rows = (int)(from.rows < SIDE ? from.rows : (int64)SIDE) - row;
    int cols = (int)(from.cols < SIDE ? from.cols : (int64)SIDE);
    int first = from.is_apart ? c : c * ITEMS;
    int apart = from.is_apart ? TURN_ACROSS : 1;
    const S *place =
        from.first + row * from.row_stride + first * from.col_stride;
    int64 down = TURN_DOWN * from.row_stride, across = apart * from.col_stride;
    S v[ITEMS][TURN_FOURS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const S *at = place;
#pragma unroll
        for (int q = 0; q < TURN_FOURS; q++) {
            v[k][q] =
                q * TURN_DOWN < rows && first + k * apart < cols ? *at : (S)0;
            at += down;
        }
        place += across;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
#pragma unroll
        for (int q = 0; q < TURN_FOURS; q++)
            tile[place_in_tile(q, row, c, k, from.gap)] = as_number<T>(v[k][q]);
}

template <class S, class T>
__device__ __forceinline__ void fill_tile(const tile_source<S> &from, T *tile)
{
    if (is_whole_and_wide(from))
        fill_whole(from, tile);
    else
        fill_part(from, tile);
}

/* Where tile number t of so many down and across begins. Of a square, tiles
 * that are each other's mirror follow one another, so that of A + A.T what one
 * of them reads the other finds in the cache: shell n is the n-th row of tiles
 * up to the diagonal, and the n-th column. */
__device__ __forceinline__ void find_tile(unsigned t, unsigned down,
                                          unsigned across, int64 *i, int64 *j)
{
    unsigned row = t / across, column = t - row * across;
    if (down == across) {
        unsigned n = (unsigned)sqrtf((float)t);
        n -= n * n > t;
        n += (n + 1) * (n + 1) <= t;
        unsigned along = (t - n * n) / 2;
        bool is_column = (t - n * n) % 2;
        row = is_column ? along : n;
        column = is_column ? n : along;
    }
    *i = (int64)row * SIDE;
    *j = (int64)column * SIDE;
}
