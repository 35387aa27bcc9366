/* What goes from this process to the others: bytes that MPI's calls are given,
 * counted while somebody asks for them, and how fast a link is. The calls are
 * those of MPI's profiling interface (MPI 3.1, section 14.2), so that what
 * ScaLAPACK sends is counted, too; of a broadcast or a reduction what each
 * receiver, or sender, has to get, however the library passes it on. */
#include "worker.h"

#include "lauxlib.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#define SEEN __attribute__((visibility("default")))

static int64_t *sent; /* bytes to each process; NULL: nobody asks */

/* Rank `to` of a communicator among all. */
static int rank_of_all(MPI_Comm within, int to)
{
    MPI_Group some, all;
    int rank;
    PMPI_Comm_group(within, &some);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_translate_ranks(some, 1, &to, all, &rank);
    PMPI_Group_free(&some);
    PMPI_Group_free(&all);
    return rank;
}

static void count(int n, MPI_Datatype type, int to, MPI_Comm within)
{
    int size;
    if (!sent || to == MPI_PROC_NULL)
        return;
    PMPI_Type_size(type, &size);
    to = rank_of_all(within, to);
    if (to != MPI_UNDEFINED)
        sent[to] += (int64_t)n * size;
}

/* From a root to all others. */
static void count_to_all(int n, MPI_Datatype type, int root, MPI_Comm within)
{
    int rank, size;
    if (!sent)
        return;
    PMPI_Comm_rank(within, &rank);
    PMPI_Comm_size(within, &size);
    for (int to = 0; rank == root && to < size; to++)
        if (to != rank)
            count(n, type, to, within);
}

SEEN int MPI_Send(const void *from, int n, MPI_Datatype type, int to, int tag,
                  MPI_Comm within)
{
    count(n, type, to, within);
    return PMPI_Send(from, n, type, to, tag, within);
}

SEEN int MPI_Rsend(const void *from, int n, MPI_Datatype type, int to, int tag,
                   MPI_Comm within)
{
    count(n, type, to, within);
    return PMPI_Rsend(from, n, type, to, tag, within);
}

SEEN int MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag,
                   MPI_Comm within, MPI_Request *request)
{
    count(n, type, to, within);
    return PMPI_Isend(from, n, type, to, tag, within, request);
}

SEEN int MPI_Sendrecv(const void *from, int n, MPI_Datatype type, int to,
                      int tag, void *into, int m, MPI_Datatype its_type,
                      int source, int its_tag, MPI_Comm within,
                      MPI_Status *status)
{
    count(n, type, to, within);
    return PMPI_Sendrecv(from, n, type, to, tag, into, m, its_type, source,
                         its_tag, within, status);
}

SEEN int MPI_Bcast(void *bytes, int n, MPI_Datatype type, int root,
                   MPI_Comm within)
{
    count_to_all(n, type, root, within);
    return PMPI_Bcast(bytes, n, type, root, within);
}

SEEN int MPI_Reduce(const void *from, void *into, int n, MPI_Datatype type,
                    MPI_Op op, int root, MPI_Comm within)
{
    int rank;
    PMPI_Comm_rank(within, &rank);
    if (rank != root)
        count(n, type, root, within);
    return PMPI_Reduce(from, into, n, type, op, root, within);
}

SEEN int MPI_Allreduce(const void *from, void *into, int n, MPI_Datatype type,
                       MPI_Op op, MPI_Comm within)
{
    int rank;
    PMPI_Comm_rank(within, &rank);
    if (rank != 0)
        count(n, type, 0, within);
    count_to_all(n, type, 0, within);
    return PMPI_Allreduce(from, into, n, type, op, within);
}

/* traffic(): a list of the bytes that went to each process since the last
 * call; from the first on they are counted. */
int lumat_traffic(lua_State *L)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!sent && !(sent = calloc((size_t)size, sizeof *sent)))
        return luaL_error(L, "no memory to count in");
    lua_createtable(L, size, 0);
    for (int i = 0; i < size; i++) {
        lua_pushinteger(L, sent[i]);
        lua_rawseti(L, -2, i + 1);
        sent[i] = 0;
    }
    return 1;
}

/* stop_traffic(): they are counted no longer. */
int lumat_stop_traffic(lua_State *L)
{
    (void)L;
    free(sent);
    sent = NULL;
    return 0;
}

/* ping(other, bytes, times): seconds that a message of so many bytes takes to
 * the process of that number, from 0, which calls it as well. */
int lumat_ping(lua_State *L)
{
    int other = (int)luaL_checkinteger(L, 1);
    int bytes = (int)luaL_checkinteger(L, 2);
    int times = (int)luaL_checkinteger(L, 3), rank;
    char *room = lua_newuserdatauv(L, (size_t)bytes + 1, 0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double began = 0;
    for (int i = -1; i < times; i++) { /* the first one finds the way */
        if (i == 0)
            began = MPI_Wtime();
        if (rank < other)
            PMPI_Send(room, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        PMPI_Recv(room, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE);
        if (rank > other)
            PMPI_Send(room, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    }
    lua_pushnumber(L, (MPI_Wtime() - began) / times / 2);
    return 1;
}
