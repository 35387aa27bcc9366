/* The user's own editor. */
#ifndef EDITOR_H
#define EDITOR_H

/* Opens $VISUAL, $EDITOR or vi on the text. Returns what was saved, without
 * newlines at its end, which the caller frees; or NULL, after saying why. */
char *repl_edit_text(const char *text);

#endif
