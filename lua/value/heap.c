/* Lua's allocator. */
#include "heap.h"
#include "lauxlib.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lua tells the size of what it frees, so a small block needs no head: those of
 * one class, which differ by less than STEP bytes, lie in one list when unused,
 * and are cut from chunks that are kept for good. The last word of a small
 * block is its mark: 1 in userdata whose end is to be told. */
enum { STEP = 16, LARGEST = 320, CLASSES = LARGEST / STEP + 1 };
#define CHUNK ((size_t)32 << 10)

typedef struct unused {
    struct unused *next;
} unused;

static struct {
    unused *list[CLASSES];
    char *fresh, *chunk_end;
    size_t used, most; /* bytes; most 0: no limit */
    size_t (*others)(void);
    void *last; /* the block given last */
    void (*end)(void *data);
    size_t head; /* bytes of userdata before the data */
} heap;

static inline size_t class_of(size_t size)
{
    return (size + sizeof(uintptr_t) + STEP - 1) / STEP;
}

static inline int is_small(size_t size)
{
    return class_of(size) < CLASSES;
}

static inline uintptr_t *mark_of(void *block, size_t size)
{
    return (uintptr_t *)((char *)block + class_of(size) * STEP) - 1;
}

#ifdef __SANITIZE_ADDRESS__
/* Each of its own, so that what is used after its end is noticed. */
static void *take_small(size_t class)
{
    return malloc(class * STEP);
}

static void give_small(void *block, size_t class)
{
    (void)class;
    free(block);
}
#else
/* What is left of the last chunk is less than a block, and lost. */
static void *cut_chunk(size_t bytes)
{
    if ((size_t)(heap.chunk_end - heap.fresh) < bytes) {
        char *chunk = malloc(CHUNK);
        if (!chunk)
            return NULL;
        heap.fresh = chunk;
        heap.chunk_end = chunk + CHUNK;
    }
    heap.fresh += bytes;
    return heap.fresh - bytes;
}

static void *take_small(size_t class)
{
    unused *block = heap.list[class];
    if (!block)
        return cut_chunk(class * STEP);
    heap.list[class] = block->next;
    return block;
}

static void give_small(void *block, size_t class)
{
    unused *b = block;
    b->next = heap.list[class];
    heap.list[class] = b;
}
#endif

static inline void *take(size_t size)
{
    if (!is_small(size))
        return malloc(size);
    void *block = take_small(class_of(size));
    if (block)
        *mark_of(block, size) = 0;
    return block;
}

static inline void give(void *block, size_t size)
{
    if (!is_small(size)) {
        free(block);
        return;
    }
    if (*mark_of(block, size))
        heap.end((char *)block + heap.head);
    give_small(block, class_of(size));
}

static void *change(void *block, size_t old_size, size_t size)
{
    if (!is_small(old_size) && !is_small(size))
        return realloc(block, size);
    if (is_small(old_size) && class_of(old_size) == class_of(size))
        return block;
    void *moved = take(size);
    if (!moved)
        return NULL;
    memcpy(moved, block, old_size < size ? old_size : size);
    give(block, old_size);
    return moved;
}

/* Would it be more than the limit? */
static int is_too_much(size_t old, size_t size)
{
    return heap.most > 0 && size > old &&
           heap.used - old + size + heap.others() > heap.most;
}

/* A block that is new, or where there was one. Apart, so that what is done for
 * most blocks saves no registers. */
static __attribute__((noinline)) void *fit(void *block, size_t old, size_t size)
{
    if (is_too_much(old, size))
        return NULL;
    void *given = block ? change(block, old, size) : take(size);
    if (!given)
        return NULL;
    heap.used += size - old;
    heap.last = given;
    return given;
}

static __attribute__((noinline)) void *drop(void *block, size_t size)
{
    give(block, size);
    heap.used -= size;
    return NULL;
}

/* A new block from the list of its class, which most are. */
static inline void *reuse(size_t size)
{
    unused *block = is_small(size) ? heap.list[class_of(size)] : NULL;
    if (!block || heap.most > 0)
        return fit(NULL, 0, size);
    heap.list[class_of(size)] = block->next;
    *mark_of(block, size) = 0;
    heap.used += size;
    return heap.last = block;
}

/* Back to its list, where its end is told to nobody. */
static inline void *put_back(void *block, size_t size)
{
    if (!is_small(size) || *mark_of(block, size))
        return drop(block, size);
    give_small(block, class_of(size));
    heap.used -= size;
    return NULL;
}

/* A lua_Alloc. Without a block old_size is a type. */
static void *allocate(void *data, void *block, size_t old_size, size_t size)
{
    (void)data;
    if (size > 0)
        return block ? fit(block, old_size, size) : reuse(size);
    return block ? put_back(block, old_size) : NULL;
}

void lumat_limit_heap(size_t most, size_t (*others)(void))
{
    heap.most = most;
    heap.others = others;
}

size_t lumat_heap_used(void)
{
    return heap.used;
}

static int panic(lua_State *L)
{
    const char *text = lua_tostring(L, -1);
    fprintf(stderr, "lumat: an error that nothing catches: %s\n",
            text ? text : "(not a text)");
    return 0; /* to abort */
}

lua_State *lumat_new_state(void)
{
    lua_State *L = lua_newstate(allocate, NULL);
    if (!L)
        return NULL;
    lua_atpanic(L, panic);
    /* where data begin in userdata: nothing runs in between */
    lua_gc(L, LUA_GCSTOP);
    heap.head =
        (size_t)((char *)lua_newuserdatauv(L, 1, 0) - (char *)heap.last);
    lua_pop(L, 1);
    lua_gc(L, LUA_GCRESTART);
    return L;
}

void *lumat_new_ending(lua_State *L, size_t bytes, void (*end)(void *data))
{
    void *data = lua_newuserdatauv(L, bytes, 0);
    memset(data, 0, bytes);
    heap.end = end;
    *mark_of((char *)data - heap.head, heap.head + bytes) = 1;
    return data;
}
