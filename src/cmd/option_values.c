/* SPDX-License-Identifier: Apache-2.0 */
/* option_values.c - see option_values.h. */
#include "option_values.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option_table.h"
#include "output_file.h"
#include "wallprof/clock.h"

#define DIGITS "0123456789"

/* The process id TEXT, or -EINVAL. */
static int parse_pid(const char *option, const char *text, struct wp_err *err)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || pid < 1 ||
	    pid > INT32_MAX)
		return wp_err_set(err, -EINVAL,
				  "%s wants a process id, not \"%s\" (pgrep "
				  "NAME finds one)",
				  option, text);
	return (int)pid;
}

/* A decimal number from 0 on, as "30", "1.5", ".5", "1e3", with *RET_END behind it.
 * One too small for a double is the smallest, for 0 may mean "no limit".  False:
 * TEXT begins with none. */
static bool parse_decimal(double *ret, const char *text, char **ret_end)
{
	size_t whole = strspn(text, DIGITS), part = 0;
	const char *behind = text + whole;

	if (*behind == '.') {
		part = strspn(behind + 1, DIGITS);
		behind += 1 + part;
	}
	/* strtod(3) takes 0x1, inf and nan, too. */
	if ((!whole && !part) || *behind == 'x' || *behind == 'X')
		return false;
	*ret = strtod(text, ret_end);
	if (*ret_end < behind || !isfinite(*ret))
		return false;
	if (*ret == 0 && strcspn(text, "123456789") < (size_t)(behind - text))
		*ret = DBL_MIN;
	return true;
}

/* A number and its unit.  Without a unit it is in UNIT_NS; 0: it must have one. */
static int parse_time(uint64_t *ret_ns, const char *text, double unit_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "ns", 1 },	 { "us", 1e3 },	   { "ms", 1e6 },
		{ "s", 1e9 },	 { "m", 60e9 },	   { "min", 60e9 },
		{ "h", 3600e9 }, { "d", 86400e9 },
	};
	char *end;
	double val;

	if (!parse_decimal(&val, text, &end))
		return -EINVAL;
	if (*end)
		unit_ns = 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].name))
			unit_ns = units[i].ns;
	if (unit_ns <= 0 || val * unit_ns > 1e18)
		return -EINVAL;
	/* Upwards, as timeout(1) does: only 0 is 0. */
	*ret_ns = (uint64_t)ceil(val * unit_ns);
	return 0;
}

int wp_option_duration(uint64_t *ret, const char *option, const char *text,
		       struct wp_err *err)
{
	if (parse_time(ret, text, 1e9))
		return wp_err_set(err, -EINVAL,
				  "%s wants a time such as 30, 30s or 5m, not "
				  "\"%s\"",
				  option, text);
	return 0;
}

int wp_option_rate(uint64_t *ret_ns, const char *text, struct wp_err *err)
{
	char *end;
	double hz;

	if (!parse_decimal(&hz, text, &end) ||
	    (*end && strcasecmp(end, "hz")) || !(hz >= 1 && hz <= 1000))
		return wp_err_set(err, -EINVAL,
				  "-r wants samples per second from 1 to 1000, "
				  "not \"%s\"",
				  text);
	*ret_ns = (uint64_t)(1e9 / hz);
	return 0;
}

int wp_option_interval(uint64_t *ret_ns, const char *text, struct wp_err *err)
{
	uint64_t ns;

	if (parse_time(&ns, text, 0) || ns < WP_NS_PER_MS || ns > WP_NS_PER_S)
		return wp_err_set(err, -EINVAL,
				  "-i wants a time with its unit from 1ms to "
				  "1s, not \"%s\"",
				  text);
	*ret_ns = ns;
	return 0;
}

/* Shorter than that, and a busy machine's threads seem not to move. */
int wp_option_look_interval(uint64_t *ret_ns, const char *text,
			    struct wp_err *err)
{
	uint64_t ns;

	if (parse_time(&ns, text, 1e9) || ns < 50 * WP_NS_PER_MS ||
	    ns > 3600 * WP_NS_PER_S)
		return wp_err_set(
			err, -EINVAL,
			"--check -i wants a time from 50ms to 1h, not "
			"\"%s\"",
			text);
	*ret_ns = ns;
	return 0;
}

int wp_option_yes_no(bool *ret, const char *option, const char *text,
		     struct wp_err *err)
{
	*ret = !strcmp(text, "yes");
	if (*ret || !strcmp(text, "no"))
		return 0;
	return wp_err_set(err, -EINVAL, "%s wants yes or no, not \"%s\"",
			  option, text);
}

int wp_option_share(double *ret, const char *option, const char *text,
		    struct wp_err *err)
{
	char *end;
	double percent;

	if (!parse_decimal(&percent, text, &end) ||
	    (*end && strcmp(end, "%")) || !(percent >= 0 && percent <= 100))
		return wp_err_set(err, -EINVAL,
				  "%s wants percent from 0 to 100, not \"%s\"",
				  option, text);
	*ret = percent / 100;
	return 0;
}

static bool is_word(const char *text, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(text, word, n);
}

int wp_option_profiles(struct wp_options *o, const char *text,
		       struct wp_err *err)
{
	struct wp_sampler_options *s = &o->sampler;
	/* Nothing is sampled for it. */
	bool others;
	struct {
		const char *name;
		bool *on;
		enum wp_profile_kind kind;
	} const words[] = {
		{ "wall", &s->wall, WP_PROFILE_WALL },
		{ "cpu", &s->cpu, WP_PROFILE_WALL },
		{ "block", &s->block, WP_PROFILE_BLOCK },
		{ "mutex", &s->mutex, WP_PROFILE_MUTEX },
		{ "threadcreate", &s->thread_starts, WP_PROFILE_THREADCREATE },
		{ "goroutine", &others, WP_PROFILE_GOROUTINE },
		{ "heap", &s->heap, WP_PROFILE_HEAP },
		{ "wake", &s->wake, WP_PROFILE_WAKE },
	};
	const size_t nwords = sizeof(words) / sizeof(*words);

	s->wall = s->cpu = s->block = s->mutex = s->thread_starts = s->heap =
		s->wake = false;
	o->kinds = 0;
	for (const char *p = text; *p || p == text;) {
		size_t n = strcspn(p, ","), i = 0;

		while (i < nwords && !is_word(p, n, words[i].name))
			i++;
		if (i == nwords)
			return wp_err_set(
				err, -EINVAL,
				"--profile wants wall, cpu, block, wake, "
				"mutex, threadcreate, heap, several "
				"(wall,cpu,block) or, of a dump, goroutine, "
				"heap, block or mutex, not \"%s\"",
				text);
		*words[i].on = true;
		o->kinds |= 1u << words[i].kind;
		p += n + (p[n] == ',');
	}
	return 0;
}

int wp_option_heap(struct wp_sampler_options *s, int c, const char *arg,
		   struct wp_err *err)
{
	static const char *const tiers[] = {
		[WP_HEAP_TIER_AUTO] = "auto",
		[WP_HEAP_TIER_SESSION] = "session",
		[WP_HEAP_TIER_MULTI] = "multi",
		[WP_HEAP_TIER_PERF] = "perf",
	};
	int rc;

	switch (c) {
	case WP_OPT_HEAP_RATE:
		return wp_option_size(&s->heap_rate, "--heap-rate", arg, err);
	case WP_OPT_MAX_OVERHEAD:
		return wp_option_share(&s->max_overhead, "--max-overhead", arg,
				       err);
	case WP_OPT_HEAP_ANYWAY:
		s->heap_anyway = true;
		return 0;
	case WP_OPT_HEAP_LARGE:
		s->heap_large = true;
		return !arg ? 0 :
			      wp_option_size(&s->heap_least, "--heap-large",
					     arg, err);
	default:
		rc = wp_option_word("--heap-probe", arg, tiers, WP_HEAP_NTIERS,
				    err);
		s->heap_tier = (enum wp_heap_tier)(rc < 0 ? 0 : rc);
		return rc < 0 ? rc : 0;
	}
}

int wp_option_pids(struct wp_options *o, const char *option, const char *text,
		   struct wp_err *err)
{
	char word[16];
	int pid = 0;

	for (const char *p = text; pid >= 0;) {
		size_t n = strcspn(p, ","), i = 0;

		snprintf(word, sizeof(word), "%.*s", (int)n, p);
		pid = parse_pid(option, n < sizeof(word) ? word : text, err);
		while (i < o->npids && o->pids[i] != pid)
			i++;
		if (pid > 0 && i == WP_PIDS_MAX)
			pid = wp_err_set(err, -EINVAL,
					 "%s names more than %d processes",
					 option, WP_PIDS_MAX);
		if (pid > 0 && i == o->npids)
			o->pids[o->npids++] = pid;
		p += n;
		if (!*p++)
			break;
	}
	o->pid = o->npids ? o->pids[0] : 0;
	return pid < 0 ? pid : 0;
}

int wp_option_number(uint32_t *ret, const char *option, const char *text,
		     long max, struct wp_err *err)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (!isdigit((unsigned char)text[0]) || *end || n < 1 || n > max)
		return wp_err_set(err, -EINVAL,
				  "%s wants a number from 1 to %ld, not \"%s\"",
				  option, max, text);
	*ret = (uint32_t)n;
	return 0;
}

int wp_option_size(size_t *ret, const char *option, const char *text,
		   struct wp_err *err)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	unit = *end ? strchr(units, *end) : NULL;
	for (long i = unit ? unit - units : -1; i >= 0 && n <= SIZE_MAX >> 10;
	     i--)
		n <<= 10;
	if (!isdigit((unsigned char)text[0]) || (unit ? end[1] : *end) || !n ||
	    n > SIZE_MAX >> 10)
		return wp_err_set(err, -EINVAL,
				  "%s wants bytes, such as 64M, not \"%s\"",
				  option, text);
	*ret = n;
	return 0;
}

int wp_option_word(const char *option, const char *text,
		   const char *const *names, int n, struct wp_err *err)
{
	char list[128] = "";
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		if (!strcmp(text, names[i]))
			return i;
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len,
						"%s%s",
						!i	  ? "" :
						i + 1 < n ? ", " :
							    " or ",
						names[i]);
	}
	return wp_err_set(err, -EINVAL, "%s wants %s, not \"%s\"", option, list,
			  text);
}

static bool ends_in(const char *s, const char *tail)
{
	size_t n = strlen(s), m = strlen(tail);

	return n >= m && !strcmp(s + n - m, tail);
}

int wp_option_format(const char *file, enum wp_format def, struct wp_err *err)
{
	static const struct {
		const char *ending;
		enum wp_format format;
	} endings[] = {
		{ ".pb.gz", WP_FORMAT_PPROF },
		{ ".pprof", WP_FORMAT_PPROF },
		{ ".prof", WP_FORMAT_PPROF },
		{ ".folded", WP_FORMAT_FOLDED },
		{ ".collapsed", WP_FORMAT_FOLDED },
		{ ".txt", WP_FORMAT_TEXT },
		{ ".html", WP_FORMAT_HTML },
		{ ".speedscope.json", WP_FORMAT_SPEEDSCOPE },
		{ ".firefox.json", WP_FORMAT_FIREFOX },
		{ ".svg", WP_FORMAT_SVG },
		{ ".json", WP_FORMAT_JSON },
	};

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (ends_in(file, endings[i].ending))
			return (int)endings[i].format;
	if (wp_output_file_is_stream(file))
		return (int)def;
	return wp_err_set(
		err, -EINVAL,
		"\"%s\" ends in none of .pb.gz, .html, .speedscope.json, "
		".firefox.json, .svg, .folded, .txt, .json: say the format with "
		"-f pprof, html, speedscope, firefox, svg, folded, text, json or go",
		file);
}

int wp_option_block_rate(struct wp_block_rate *ret, const char *text,
			 struct wp_err *err)
{
	char *end;
	long n = !strncmp(text, "1/", 2) && isdigit((unsigned char)text[2]) ?
			 strtol(text + 2, &end, 10) :
			 0;

	*ret = (struct wp_block_rate){ 0 };
	if (n > 0 && !*end && n <= INT32_MAX) {
		ret->every = (uint32_t)n;
		return 0;
	}
	if (parse_time(&ret->ns, text, 1) || ret->ns < 1 ||
	    ret->ns > 3600 * WP_NS_PER_S)
		return wp_err_set(err, -EINVAL,
				  "--block-rate wants 1/N or a "
				  "time such as 10us, not \"%s\"",
				  text);
	return 0;
}

int wp_option_bad(char **argv, int at, int c, enum wp_action action,
		  struct wp_err *err)
{
	const char *word = argv[at] ? argv[at] : "";
	bool is_long = !strncmp(word, "--", 2);
	const struct wp_option_row *near = NULL;

	if (c == ':')
		return wp_err_set(err, -EINVAL, "%s wants an argument", word);
	if (optopt && optopt < 256 && !is_long)
		return wp_err_set(err, -EINVAL, "no option -%c", optopt);
	if (optopt)
		return wp_err_set(err, -EINVAL, "%.*s takes no argument",
				  (int)strcspn(word, "="), word);
	if (is_long)
		near = wp_option_near(word + 2, strcspn(word + 2, "="), action);
	return wp_err_set(err, -EINVAL, "no option %.*s%s%s%s",
			  (int)strcspn(word, "="), word,
			  near ? ": did you mean --" : "",
			  near ? near->name : "", near ? "?" : "");
}

static int add_word(const char **v, size_t *n, size_t max, const char *option,
		    const char *word, struct wp_err *err)
{
	if (*n == max)
		return wp_err_set(err, -EINVAL,
				  "%s is given more than %zu times", option,
				  max);
	v[(*n)++] = word;
	return 0;
}

/* One of "lock=50%", "idle=30s", "runnable=5s". */
static int parse_hang(struct wp_options *o, const char *word,
		      struct wp_err *err)
{
	char number[16];
	size_t n = strlen(word);

	if (!strncmp(word, "idle=", 5) && atof(word + 5) > 0)
		return wp_option_duration(&o->hang_idle_ns, "--hang-when idle",
					  word + 5, err);
	if (!strncmp(word, "runnable=", 9) && atof(word + 9) > 0)
		return wp_option_duration(&o->hang_runnable_ns,
					  "--hang-when runnable", word + 9,
					  err);
	if (strncmp(word, "lock=", 5) || word[n - 1] != '%' || n > 10)
		return wp_err_set(err, -EINVAL,
				  "--hang-when wants lock=N%%, idle=TIME or "
				  "runnable=TIME of more than 0, not %s",
				  word);
	snprintf(number, sizeof(number), "%.*s", (int)(n - 6), word + 5);
	return wp_option_number(&o->hang_lock, "--hang-when lock", number, 99,
				err);
}

static int parse_hangs(struct wp_options *o, const char *arg,
		       struct wp_err *err)
{
	char words[128], *rest = words, *word;
	int rc = 0;

	if (snprintf(words, sizeof(words), "%s", arg) >= (int)sizeof(words))
		return wp_err_set(err, -EINVAL, "--hang-when is too long");
	while (!rc && (word = strsep(&rest, ",")))
		rc = parse_hang(o, word, err);
	return rc;
}

int wp_option_serve(struct wp_options *o, int c, const char *arg,
		    struct wp_err *err)
{
	switch (c) {
	case 'p':
		if (!arg[strspn(arg, "0123456789,")])
			return wp_option_pids(o, "-p", arg, err);
		return add_word(o->served, &o->nserved, WP_WORDS_MAX, "-p", arg,
				err);
	case WP_OPT_LISTEN:
		return add_word(o->listen, &o->nlisten, WP_LISTENS_MAX,
				"--listen", arg, err);
	case WP_OPT_TOKEN_FILE:
		o->token_file = arg;
		return 0;
	case WP_OPT_KEEP:
		return wp_option_duration(&o->keep_ns, "--keep", arg, err);
	case WP_OPT_ON_HANG:
		o->on_hang = arg;
		return 0;
	case WP_OPT_HANG_WHEN:
		return parse_hangs(o, arg, err);
	case WP_OPT_PUSH:
		o->push = arg;
		return 0;
	case WP_OPT_PUSH_AUTH:
		o->push_auth = arg;
		return 0;
	case WP_OPT_PUSH_INTERVAL:
		return wp_option_duration(&o->push_interval_ns,
					  "--push-interval", arg, err);
	default:
		return -EINVAL;
	}
}
