/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c - see screen.h. */
#include "screen.h"

#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

/* ncurses has one terminal a process. */
static SCREEN *screen;
/* As wp_screen_note found it; false: standard input is none. */
static struct termios noted;
static bool is_noted;

static void set_colours(void)
{
	const char *no = getenv("NO_COLOR");

	if ((no && *no) || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(WP_LOOK_RUNNING, COLOR_GREEN, -1);
	init_pair(WP_LOOK_RUNNABLE, COLOR_YELLOW, -1);
	init_pair(WP_LOOK_LOCK, COLOR_RED, -1);
}

int wp_screen_open(struct wp_err *err)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return wp_err_set(err, -ENOTTY,
				  "top wants a terminal; wallprof dump prints "
				  "threads once");
	setlocale(LC_CTYPE, "");
	screen = newterm(term, stdout, stdin);
	if (!screen)
		return wp_err_set(err, -ENOTTY,
				  "ncurses does not know the terminal \"%s\"",
				  term ? term : "");
	set_colours();
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	return 0;
}

void wp_screen_close(void)
{
	if (screen && !isendwin())
		endwin();
}

void wp_screen_note(void)
{
	is_noted = !tcgetattr(STDIN_FILENO, &noted);
}

/* Write what the terminal calls CAPABILITY (terminfo(5)), if it has it. */
static void put_capability(const char *capability)
{
	/* tigetstr(3X) declares what it does not change as such. */
	char *text = tigetstr((char *)capability);

	if (text && text != (char *)-1)
		putp(text);
}

void wp_screen_mend(void)
{
	struct termios now;
	int err;

	/* Who has not changed how lines are read has drawn nothing. */
	if (!is_noted || tcgetattr(STDIN_FILENO, &now) ||
	    now.c_lflag == noted.c_lflag)
		return;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &noted);
	if (setupterm(NULL, STDOUT_FILENO, &err) == ERR)
		return;
	/* Colours, the keypad's keys, the cursor, the other screen. */
	put_capability("sgr0");
	put_capability("rmkx");
	put_capability("cnorm");
	put_capability("rmcup");
	fflush(stdout);
}

void wp_screen_begin(unsigned int *ret_rows, unsigned int *ret_columns)
{
	struct winsize size;

	/* SIGWINCH is for those whose terminal it is: the supervisor. */
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row &&
	    size.ws_col && !is_term_resized(size.ws_row, size.ws_col))
		size.ws_row = 0;
	else if (size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	erase();
	*ret_rows = (unsigned int)LINES;
	*ret_columns = (unsigned int)COLS;
}

/* The bytes of TEXT that take at most ROOM columns. */
static int count_fitting(const char *text, int room)
{
	/* What is no character is shown as "M-^X", a control character as "^X". */
	enum { OF_BYTE = 4, OF_CONTROL = 2 };
	mbstate_t state = { 0 };
	const char *at = text;

	while (*at) {
		wchar_t c;
		size_t n = mbrtowc(&c, at, MB_CUR_MAX, &state);
		int width = n > MB_CUR_MAX ? OF_BYTE : wcwidth(c);

		room -= width < 0 ? OF_CONTROL : width;
		if (room < 0)
			break;
		if (n > MB_CUR_MAX)
			state = (mbstate_t){ 0 };
		at += n > MB_CUR_MAX ? 1 : n;
	}
	return (int)(at - text);
}

void wp_screen_line(unsigned int row, const char *text,
		    enum wp_screen_look look, bool selected)
{
	attr_t attr = look == WP_LOOK_HEADING ? A_BOLD :
		      look == WP_LOOK_DIM     ? A_DIM :
						A_NORMAL;

	if (has_colors())
		attr |= (attr_t)COLOR_PAIR(look);
	if (selected)
		attr |= A_REVERSE;
	attrset(attr);
	mvaddnstr((int)row, 0, text, count_fitting(text, COLS));
	if (selected)
		for (int x = getcurx(stdscr);
		     x < COLS && getcury(stdscr) == (int)row && x > 0; x++)
			addch(' ');
	attrset(A_NORMAL);
}

void wp_screen_end(void)
{
	refresh();
}

int wp_screen_key(void)
{
	int key = getch();

	switch (key) {
	case ERR:
	case KEY_RESIZE:
		return WP_KEY_NONE;
	case KEY_UP:
		return WP_KEY_UP;
	case KEY_DOWN:
		return WP_KEY_DOWN;
	case KEY_PPAGE:
		return WP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return WP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return WP_KEY_HOME;
	case KEY_END:
		return WP_KEY_END;
	case '\r':
	case '\n':
	case KEY_ENTER:
		return WP_KEY_ENTER;
	case 27:
		return WP_KEY_ESCAPE;
	case KEY_BACKSPACE:
	case 127:
	case 8:
		return WP_KEY_ERASE;
	default:
		return key > 0 && key < 256 ? key : WP_KEY_NONE;
	}
}
