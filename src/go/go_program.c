/* SPDX-License-Identifier: Apache-2.0 */
/* go_program.c - see wallprof/go_program.h. */
#include "go_program_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "wallprof/enum_name.h"

/* How deep calls are inlined, at most. */
enum { INLINED_MAX = 64 };

const char *wp_go_program_state_name(enum wp_goroutine_state state)
{
	return WP_ENUM_NAME(WP_GOROUTINE_STATES, state);
}

/* Read what the file says.  0, -ENOENT, -ENOTSUP. */
static int read_file(struct wp_go_program *p, struct wp_elf_image *image,
		     struct wp_err *err)
{
	struct wp_go_func first, last;
	int rc = wp_go_table_open(&p->table, image);

	if (rc == -ENOENT)
		return wp_err_set(err, rc, "not a Go program");
	if (!rc)
		rc = wp_go_module_read(&p->module, &p->table);
	if (rc == -ENOTSUP || (!rc && !wp_go_layout_find(p->module.minor)))
		return wp_err_set(err, -ENOTSUP,
				  "built by a Go that is not known (%s)",
				  *p->module.version ? p->module.version :
						       "before 1.18?");
	if (!rc && p->table.nfuncs && !wp_go_table_func(&p->table, 0, &first) &&
	    !wp_go_table_func(&p->table, p->table.nfuncs - 1, &last)) {
		p->text_start_avma = first.start_svma + p->bias;
		p->text_end_avma = last.end_svma + p->bias;
		p->layout = wp_go_layout_find(p->module.minor);
		return 0;
	}
	return wp_err_set(err, -ENOENT, "malformed tables of Go's linker");
}

int wp_go_program_open(struct wp_go_program **ret, struct wp_elf_image *image,
		       uint64_t bias, const struct wp_go_reader *reader,
		       struct wp_err *err)
{
	struct wp_go_program *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return wp_err_set(err, -ENOMEM, "no memory");
	p->memory.reader = *reader;
	p->bias = bias;
	rc = read_file(p, image, err);
	if (rc)
		goto out;
	rc = wp_go_locate(p);
	if (rc == -EAGAIN)
		wp_err_set(
			err, rc,
			"no list of goroutines is found in the memory of this "
			"program built by %s",
			p->module.version);
	else if (rc)
		wp_err_set(err, rc, "cannot read the program's memory: %s",
			   strerror(-rc));
	if (rc)
		goto out;
	*ret = p;
	return 0;
out:
	wp_go_program_free(p);
	return rc;
}

void wp_go_program_free(struct wp_go_program *program)
{
	if (!program)
		return;
	wp_go_memory_clear(&program->memory);
	free(program);
}

const char *wp_go_program_version(const struct wp_go_program *program)
{
	return program->module.version;
}

const char *wp_go_program_function(const struct wp_go_program *program,
				   uint64_t avma)
{
	struct wp_go_func func;

	if (wp_go_table_find(&program->table, avma - program->bias, &func))
		return NULL;
	return wp_go_table_text(&program->table, func.name_off);
}

/* The innermost function of the code at AVMA. */
static const char *innermost(const struct wp_go_program *p, uint64_t avma)
{
	struct wp_go_inlined inlined;
	struct wp_go_func func;

	if (wp_go_table_find(&p->table, avma - p->bias, &func))
		return NULL;
	if (wp_go_module_inlined(&p->module, &p->table, &func, avma - p->bias,
				 &inlined))
		return inlined.name;
	return wp_go_table_text(&p->table, func.name_off);
}

static uint32_t count_runtime(const struct wp_go_program *p,
			      const uint64_t *pcs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *name = innermost(p, pcs[i] - 1);

		if (!name || (strncmp(name, "runtime.", 8) &&
			      strncmp(name, "internal/runtime/", 17)))
			return i;
	}
	return 0;
}

static bool is_function(const struct wp_go_program *p, uint64_t pc,
			const char *want)
{
	const char *name = innermost(p, pc - 1);

	return name && !strcmp(name, want);
}

uint32_t wp_go_program_stack(const struct wp_go_program *program, uint64_t *pcs,
			     uint32_t n, bool hides_runtime)
{
	uint32_t i = hides_runtime ? count_runtime(program, pcs, n) : 0;
	uint32_t len = 0;

	/* runtime/pprof leaves it out. */
	if (n > i && is_function(program, pcs[n - 1], "runtime.goexit"))
		n--;
	while (i < n) {
		uint64_t svma = pcs[i] - 1 - program->bias;
		struct wp_go_inlined inlined;
		struct wp_go_func func;

		pcs[len++] = pcs[i++];
		if (wp_go_table_find(&program->table, svma, &func))
			continue;
		/* Its location has these functions too. */
		for (int k = 0;
		     k < INLINED_MAX &&
		     wp_go_module_inlined(&program->module, &program->table,
					  &func, svma, &inlined);
		     k++) {
			svma = inlined.call_svma;
			if (i < n && pcs[i] - 1 - program->bias == svma)
				i++;
		}
	}
	return len;
}
