/* The suggestion behind the cursor. */
#include "ghost.h"

#include "recall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>

static int is_on;

void repl_ghost_begin(int on)
{
    const char *wish = getenv("LUMAT_SUGGESTIONS");
    is_on = on && (wish == NULL || strcmp(wish, "off") != 0);
}

/* Where a line is asked for in parts, or a key awaits others, or an earlier
 * entry was just brought back, nothing is suggested. */
static int is_wanted(void)
{
    if (!is_on || rl_end == 0 || rl_point != rl_end || repl_recalled())
        return 0;
    if (RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG |
                   RL_STATE_VIMOTION | RL_STATE_COMPLETING))
        return 0;
    return rl_editing_mode != 0 || rl_get_keymap() == vi_insertion_keymap;
}

const char *repl_ghost(void)
{
    size_t length = (size_t)rl_end;
    if (!is_wanted())
        return NULL;
    for (int i = repl_remembered_count() - 1; i >= 0; i--) {
        const char *entry = repl_remembered(i);
        if (entry[0] == rl_line_buffer[0] &&
            strncmp(entry, rl_line_buffer, length) == 0 &&
            entry[length] != '\0')
            return entry + length;
    }
    return NULL;
}
