/* What the prompt begins with. */
#ifndef BANNER_H
#define BANNER_H

/* Three lines at a user's first start, one at later ones. */
void repl_print_banner(void);

#endif
