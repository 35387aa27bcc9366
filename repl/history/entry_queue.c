/* Entries that wait to be read. */
#include "history.h"

#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>

typedef struct queued {
    struct queued *next;
    int flags;
    char text[];
} queued;

static queued *first, **place = &first; /* where the next one goes */
static int taken;                       /* the flags of the line's entry */

void repl_queue_entry(const char *text, int flags)
{
    queued *entry = malloc(sizeof *entry + strlen(text) + 1);
    if (entry == NULL)
        return;
    strcpy(entry->text, text);
    entry->flags = flags;
    entry->next = *place;
    *place = entry;
    place = &entry->next;
}

static void drop_first(void)
{
    queued *entry = first;
    first = entry->next;
    place = &first;
    free(entry);
}

int repl_take_queued(void)
{
    taken = 0;
    if (first == NULL)
        return 0;
    taken = first->flags;
    rl_insert_text(first->text);
    drop_first();
    return taken & REPL_RUN;
}

/* --- what does not run ---------------------------------------------------- */

/* All that waits as one text, each entry on rows of its own, or NULL; adds how
 * many they are. */
static char *join(int *count)
{
    size_t room = 1;
    char *text, *end;
    for (queued *entry = first; entry != NULL; entry = entry->next)
        room += strlen(entry->text) + 1, ++*count;
    end = text = calloc(room, 1);
    if (text == NULL)
        return NULL;
    for (queued *entry = first; entry != NULL; entry = entry->next)
        end += sprintf(end, entry == first ? "%s" : "\n%s", entry->text);
    return text;
}

/* One text, so that Up and RETURN go on with it. */
static void drop_all(void)
{
    char message[80];
    int count = 0;
    char *text = join(&count);
    if (count == 0) {
        free(text);
        return;
    }
    if (text != NULL)
        repl_remember(text);
    snprintf(message, sizeof message,
             count == 1 ? "the entry behind it did not run; Up brings it back"
                        : "the %d entries behind it did not run; Up brings "
                          "them back",
             count);
    repl_note(message);
    free(text);
    while (first != NULL)
        drop_first();
}

void repl_queue_failed(void)
{
    if (!(taken & REPL_MAY_FAIL))
        drop_all();
}

void repl_queue_interrupted(void)
{
    drop_all();
}
