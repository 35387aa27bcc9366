/* Elements from each process to each other, whatever they are: what lists of
 * rows and columns need, which no routine of ScaLAPACK moves. */
#include "worker.h"

#include "complex_numbers.h"
#include "value.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of one message, as MPI counts them in ints. */
#define MOST ((int64_t)1 << 30)

typedef struct piece {
    gpu_matrix *m;
    char *bytes;
    int64_t length;
    int is_copy; /* the matrix keeps its elements in pairs, elsewhere */
} piece;

/* Element `number`, from 1, of the list at index, which stays on the stack; nil
 * is none. */
static piece check_piece(lua_State *L, int index, int number, int is_read)
{
    if (lua_rawgeti(L, index, number) == LUA_TNIL)
        return (piece){.m = NULL};
    gpu_matrix *m = lumat_check_matrix(L, -1);
    piece p = {.m = m, .length = (int64_t)gpu_bytes(m)};
    if (p.length == 0)
        return p;
    if (!gpu_is_contiguous(m))
        luaL_error(L, "a part with gaps");
    p.bytes = gpu_own_bytes(m);
    if (p.bytes)
        return p;
    const void *from;
    p.bytes = lua_newuserdatauv(L, (size_t)p.length, 0);
    p.is_copy = 1;
    if (is_read) {
        lumat_try(L, gpu_look_at_bytes(m, p.bytes, &from));
        if (from != p.bytes)
            memcpy(p.bytes, from, (size_t)p.length);
    }
    return p;
}

/* Begins the messages of one piece; as many requests as message_count says. */
static MPI_Request *begin(const piece *p, int other, int is_sent,
                          MPI_Request *next)
{
    for (int64_t at = 0; at < p->length; at += MOST) {
        int n = (int)(p->length - at < MOST ? p->length - at : MOST);
        if (is_sent)
            MPI_Isend(p->bytes + at, n, MPI_BYTE, other, 0, MPI_COMM_WORLD,
                      next++);
        else
            MPI_Irecv(p->bytes + at, n, MPI_BYTE, other, 0, MPI_COMM_WORLD,
                      next++);
    }
    return next;
}

static int64_t message_count(const piece *p)
{
    return (p->length + MOST - 1) / MOST;
}

static void take(lua_State *L, const piece *p)
{
    if (p->is_copy)
        lumat_try(L, gpu_is_complex(p->m) ? gpu_complex_upload(p->m, p->bytes)
                                          : gpu_upload(p->m, p->bytes));
}

/* prepare_swap(sent, wanted): of lists of matrices, by the number of the other
 * process from 1, where there is something for it, what swap takes, with the
 * room that it needs: so each process knows that it can before one begins. */
int lumat_prepare_swap(lua_State *L)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    luaL_checkstack(L, 4 * size + 8, "too many processes");
    lua_settop(L, 2);
    lua_createtable(L, 4 * size + 2, 0); /* what it names lives as long */
    piece *list = lua_newuserdatauv(L, 2 * (size_t)size * sizeof *list, 0);
    for (int i = 0; i < size; i++) {
        list[i] = check_piece(L, 1, i + 1, 1);
        list[size + i] = check_piece(L, 2, i + 1, 0);
    }
    int64_t messages = 0;
    for (int i = 0; i < 2 * size; i++)
        messages += message_count(&list[i]);
    lua_newuserdatauv(L, (size_t)messages * sizeof(MPI_Request) + 1, 0);
    lua_rawseti(L, 3, 2); /* the pieces are 1 */
    for (int i = 3; lua_gettop(L) > 4; i++)
        lua_rawseti(L, 3, i);
    lua_rawseti(L, 3, 1);
    return 1;
}

/* swap(prepared) */
int lumat_swap(lua_State *L)
{
    int size, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    lua_rawgeti(L, 1, 1);
    lua_rawgeti(L, 1, 2);
    const piece *sent = lua_touserdata(L, -2), *wanted = sent + size;
    MPI_Request *list = lua_touserdata(L, -1), *next = list;
    for (int i = 0; i < size; i++)
        if (i != rank)
            next = begin(&wanted[i], i, 0, next);
    for (int i = 0; i < size; i++)
        if (i != rank)
            next = begin(&sent[i], i, 1, next);
    MPI_Waitall((int)(next - list), list, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size; i++)
        take(L, &wanted[i]);
    return 0;
}
