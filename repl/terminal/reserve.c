/* Memory kept for when there is no other. Readline's allocations, which it
 * lets a program define, as Bash does, are here: its own end the program
 * without a word. */
#include "reserve.h"

#include "leave.h"
#include "report.h"

#include <stdlib.h>

/* Bytes: for a screen and some line, or an entry that makes room; and for
 * saving the variables, at least and at first. */
enum { FOR_PROMPT = 1 << 20, LEAST = 16 << 20, FOR_LEAVING = 32 << 20 };

static void *for_prompt, *for_leaving;
static size_t left; /* of what is for leaving */

/* By these names Readline looks for them, in the program first. */
__attribute__((visibility("default"))) void *xmalloc(size_t size);
__attribute__((visibility("default"))) void *xrealloc(void *old, size_t size);

static int has_room(size_t size)
{
    void *room = malloc(size);
    free(room);
    return room != NULL;
}

/* A session that was given what was for its prompt, and has used it. */
static void give_more(void)
{
    if (for_prompt != NULL) {
        repl_give_reserve();
    } else if (left > LEAST) {
        free(for_leaving);
        for_leaving = malloc(left - FOR_PROMPT);
        left = for_leaving != NULL ? left - FOR_PROMPT : 0;
    }
}

/* An entry that may free something needs memory, too: then it gets this. */
void repl_keep_reserve(void)
{
    static int is_short;
    int was_short = is_short;
    is_short = !has_room(FOR_PROMPT);
    if (is_short) {
        give_more();
        if (!was_short)
            repl_note("there is hardly any memory left; :who shows what takes "
                      "it, x = nil frees x");
        return;
    }
    if (left < FOR_LEAVING && has_room(2 * FOR_LEAVING)) {
        repl_give_last_reserve();
        for_leaving = malloc(FOR_LEAVING);
        left = for_leaving != NULL ? FOR_LEAVING : 0;
    }
    if (for_prompt == NULL && has_room(2 * FOR_PROMPT))
        for_prompt = malloc(FOR_PROMPT);
}

void repl_give_reserve(void)
{
    free(for_prompt);
    for_prompt = NULL;
}

void repl_give_last_reserve(void)
{
    repl_give_reserve();
    free(for_leaving);
    for_leaving = NULL;
    left = 0;
}

/* --- Readline's ----------------------------------------------------------- */

static void *allocate(void *old, size_t size)
{
    void *memory = realloc(old, size > 0 ? size : 1);
    if (memory != NULL)
        return memory;
    repl_give_reserve();
    memory = realloc(old, size > 0 ? size : 1);
    if (memory == NULL)
        repl_leave_short();
    return memory;
}

void *xmalloc(size_t size)
{
    return allocate(NULL, size);
}

void *xrealloc(void *old, size_t size)
{
    return allocate(old, size);
}
