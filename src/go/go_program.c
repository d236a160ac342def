/* SPDX-License-Identifier: Apache-2.0 */
/* go_program.c - see wallprof/go_program.h. */
#include "go_program_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "wallprof/enum_name.h"

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
