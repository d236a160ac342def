/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.c - see cmd_top.h. */
#include "cmd_top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd_top_draw.h"
#include "screen.h"
#include "signals.h"
#include "wallprof/clock.h"
#include "wallprof/symbolize.h"

#define REFRESH_NS WP_NS_PER_S
/* Naming functions may take so much of the time. */
enum { NAMING_SHARE = 50 };

int wp_cmd_top_open(struct wp_cmd_top **ret, const struct wp_options *options,
		    struct wp_profile *profile,
		    const struct wp_process *process, struct wp_err *err)
{
	struct wp_cmd_top *t;
	int rc = wp_screen_open(err);

	if (rc)
		return rc;
	t = calloc(1, sizeof(*t));
	if (!t) {
		wp_screen_close();
		return wp_err_set(err, -ENOMEM, "no memory");
	}
	*t = (struct wp_cmd_top){
		.options = options,
		.profile = profile,
		.process = process,
		.top = WP_TOP_INIT,
		.selected = UINT32_MAX,
		.cost_ns = wp_clock_used_ns(RUSAGE_SELF) +
			   wp_clock_used_ns(RUSAGE_CHILDREN),
	};
	*ret = t;
	return 0;
}

void wp_cmd_top_pause(struct wp_cmd_top *t)
{
	wp_screen_close();
	t->dirty = true;
}

void wp_cmd_top_close(struct wp_cmd_top *t)
{
	if (!t)
		return;
	wp_screen_close();
	wp_top_clear(&t->top);
	free(t->text);
	free(t);
}

/* Name the functions of new stacks, as often as is cheap; wait reasons of the look
 * depend on names, those of the recording stay as they are. */
static int name_functions(struct wp_cmd_top *t, uint64_t now_ns)
{
	struct wp_profile *p = t->profile;
	struct wp_sample_set kept = p->sets[WP_PROFILE_WALL];
	int rc = 0;

	if (p->nlocated < p->nstacks && now_ns >= t->next_naming_ns) {
		p->sets[WP_PROFILE_WALL] = (struct wp_sample_set){ 0 };
		rc = wp_symbolize(p, t->process, &wp_interrupts);
		p->sets[WP_PROFILE_WALL] = kept;
		t->next_naming_ns = now_ns +
				    NAMING_SHARE * (wp_clock_ns() - now_ns);
	}
	wp_symbolize_waits(p, &t->top.set);
	return rc;
}

/* The thread that is selected stays so wherever it moves. */
static void find_selected(struct wp_cmd_top *t)
{
	for (uint32_t i = 0; i < t->top.n; i++)
		if (t->top.v[i].thread == t->selected) {
			t->at = i;
			return;
		}
	if (t->at >= t->top.n)
		t->at = t->top.n ? t->top.n - 1 : 0;
}

static int list_anew(struct wp_cmd_top *t)
{
	int rc = wp_top_list(&t->top, t->profile);

	find_selected(t);
	t->dirty = true;
	return rc;
}

static int look(struct wp_cmd_top *t, struct wp_sampler *sampler,
		uint64_t now_ns)
{
	uint64_t cost_ns = wp_clock_used_ns(RUSAGE_SELF) +
			   wp_clock_used_ns(RUSAGE_CHILDREN);
	uint64_t last_ns = t->top.look_ns;
	int rc = wp_sampler_settle(sampler);

	if (!rc)
		rc = wp_top_look(&t->top, t->profile, now_ns);
	if (!rc)
		rc = name_functions(t, now_ns);
	if (!rc)
		rc = list_anew(t);
	if (last_ns)
		t->cost = 100 * (double)(cost_ns - t->cost_ns) /
			  (double)(now_ns - last_ns);
	t->cost_ns = cost_ns;
	return rc;
}

static void show_text(struct wp_cmd_top *t, char *text)
{
	free(t->text);
	t->text = text;
	t->text_first = 0;
	t->mode = MODE_TEXT;
	t->dirty = true;
}

/* What `wallprof dump` prints of the process; owned by the caller. */
static char *read_dump(const struct wp_cmd_top *t)
{
	char *text = NULL, pid[16], buf[4096];
	size_t len;
	FILE *out = open_memstream(&text, &len);
	int fds[2];
	ssize_t n;
	pid_t child;

	if (!out)
		return NULL;
	snprintf(pid, sizeof(pid), "%d", t->process->pid);
	if (pipe(fds)) {
		fclose(out);
		return text;
	}
	child = fork();
	if (child == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl("/proc/self/exe", "wallprof", "dump", pid, NULL);
		_exit(127);
	}
	close(fds[1]);
	while (child > 0 && (n = read(fds[0], buf, sizeof(buf))) > 0)
		fwrite(buf, 1, (size_t)n, out);
	close(fds[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	fclose(out);
	return text;
}

static void move(struct wp_cmd_top *t, int by)
{
	int64_t at = (int64_t)t->at + by;

	if (!t->top.n)
		return;
	t->at = at < 0 ? 0 : at >= t->top.n ? t->top.n - 1 : (uint32_t)at;
	t->selected = t->top.v[t->at].thread;
}

static void heed_text_key(struct wp_cmd_top *t, int key)
{
	enum { PAGE = 20 };

	switch (key) {
	case WP_KEY_DOWN:
	case 'j':
		t->text_first++;
		break;
	case WP_KEY_UP:
	case 'k':
		t->text_first -= t->text_first > 0;
		break;
	case WP_KEY_PAGE_DOWN:
	case ' ':
		t->text_first += PAGE;
		break;
	case WP_KEY_PAGE_UP:
		t->text_first -= t->text_first < PAGE ? t->text_first : PAGE;
		break;
	case WP_KEY_HOME:
		t->text_first = 0;
		break;
	case WP_KEY_ESCAPE:
	case WP_KEY_ENTER:
	case 'q':
	case 'd':
		t->mode = MODE_THREADS;
		break;
	default:
		break;
	}
}

static int heed_filter_key(struct wp_cmd_top *t, int key)
{
	size_t len = strlen(t->top.filter);

	if (key == WP_KEY_ENTER)
		t->mode = MODE_THREADS;
	if (key == WP_KEY_ESCAPE) {
		t->mode = MODE_THREADS;
		t->top.filter[0] = '\0';
	}
	if (key == WP_KEY_ERASE && len)
		t->top.filter[len - 1] = '\0';
	if (key >= ' ' && key < 127 && len + 1 < sizeof(t->top.filter)) {
		t->top.filter[len] = (char)key;
		t->top.filter[len + 1] = '\0';
	}
	return list_anew(t);
}

static int heed_key(struct wp_cmd_top *t, int key, bool *ret_quit)
{
	enum { PAGE = 15 };

	switch (key) {
	case 'q':
		*ret_quit = true;
		break;
	case 's':
		t->top.sort = (enum wp_top_sort)((t->top.sort + 1) %
						 WP_NTOP_SORTS);
		return list_anew(t);
	case '/':
		t->mode = MODE_FILTER;
		t->top.filter[0] = '\0';
		return list_anew(t);
	case ' ':
		t->frozen = !t->frozen;
		break;
	case 'f':
		t->follows = !t->follows;
		move(t, 0);
		break;
	case 'd':
		show_text(t, read_dump(t));
		break;
	case WP_KEY_ENTER:
		show_text(t, wp_cmd_top_draw_stack(t));
		break;
	case WP_KEY_DOWN:
	case 'j':
		move(t, 1);
		break;
	case WP_KEY_UP:
	case 'k':
		move(t, -1);
		break;
	case WP_KEY_PAGE_DOWN:
		move(t, PAGE);
		break;
	case WP_KEY_PAGE_UP:
		move(t, -PAGE);
		break;
	case WP_KEY_HOME:
		move(t, -INT32_MAX);
		break;
	case WP_KEY_END:
		move(t, INT32_MAX);
		break;
	default:
		break;
	}
	return 0;
}

int wp_cmd_top_step(struct wp_cmd_top *t, struct wp_sampler *sampler,
		    uint64_t now_ns, bool *ret_quit)
{
	int key, rc = 0;

	while (!rc && (key = wp_screen_key()) != WP_KEY_NONE) {
		t->dirty = true;
		if (t->mode == MODE_TEXT)
			heed_text_key(t, key);
		else if (t->mode == MODE_FILTER)
			rc = heed_filter_key(t, key);
		else
			rc = heed_key(t, key, ret_quit);
	}
	if (!rc && now_ns >= t->next_ns) {
		if (!t->frozen && t->mode != MODE_TEXT)
			rc = look(t, sampler, now_ns);
		t->next_ns = now_ns + REFRESH_NS;
	}
	if (!rc && t->dirty)
		wp_cmd_top_draw(t);
	return rc;
}
