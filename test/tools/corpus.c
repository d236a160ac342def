/* SPDX-License-Identifier: Apache-2.0 */
/* corpus - walks of live threads by each unwinder, frame by frame.
 *
 * corpus [-n ROUNDS] [-s STEPS] [-dgw] PID...
 *
 * Each thread is stopped ROUNDS times and looked at there and after each of the
 * next STEPS instructions.  Every look is walked by the rows and compared with:
 *
 *   walk      wp_unwind_walk by libunwind: pc, CFA, flags, end
 *   step      one step by libunwind, from the registers that the rows came to:
 *             result, CFA, every register that is followed
 *   unknown   the rows, knowing pc and sp alone: no other frames
 *   perf      libunwind as perf drives it, with a search of its own: pcs
 *   libdw     as eu-stack (with -d): pcs
 *   guess     with -g: the step that is guessed as if there were no unwind
 *             info, from the same registers and from pc and sp alone; it may
 *             refuse, but not differ in result, CFA or register
 *
 * One JSON object a line: "differs" for each place and kind of difference,
 * "walk" for each distinct walk by the rows (with -w), "looked" for each
 * process, with what was covered.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../unwind/cfi.h"
#include "../../unwind/prover.h"
#include "../bench/backend.h"
#include "wallprof/hash.h"
#include "wallprof/unwind.h"

enum {
	FINDINGS_MAX = 256,
	TEXT_MAX = 200,
	MAPPINGS_MAX = 4096,
	PCS_BITS = 17,
	WALKS_BITS = 13,
};

/* A place where two did not agree. */
struct finding {
	const char *kind;
	const char *what;
	uint32_t mapping;
	/* What was looked up: of the frame whose step was not the same. */
	uint64_t svma;
	size_t count;
	char ours[TEXT_MAX];
	char theirs[TEXT_MAX];
};

/* Room for a walk. */
struct walked {
	struct wp_frame frames[SNAP_FRAMES_MAX];
	uint64_t cfas[SNAP_FRAMES_MAX];
	struct wp_stack stack;
};

struct corpus {
	pid_t pid;
	unsigned int rounds;
	unsigned int steps;
	bool has_libdw;
	bool guesses;
	bool prints_walks;
	struct snap_set set;
	struct wp_unwinder *rows;
	struct wp_unwinder *libunwind;
	/* The same, step by step. */
	struct wp_unwind_stats step_stats;
	void *step_rows;
	void *step_libunwind;
	struct wp_prover *prover;
	/* NULL: could not be opened, or was not asked for. */
	void *perf;
	void *libdw;

	size_t nsnapshots;
	size_t nframes;
	size_t nguessed;
	/* Frames that nothing could leave, and not the first of a thread. */
	size_t nstuck;
	/* Walks that needed no more than pc and sp. */
	size_t nunknown_whole;
	size_t ends[WP_NSTACK_ENDS];
	bool mappings[MAPPINGS_MAX];
	/* Open addressing; 0: free. */
	uint64_t pcs[1 << PCS_BITS];
	size_t npcs;
	/* Hashes of the walks that were printed; 0: free. */
	uint64_t walks[1 << WALKS_BITS];
	size_t nwalks;
	/* Steps that were guessed: as the rows say, refused, and where neither
	 * the rows nor libunwind have info. */
	size_t nguess_right;
	size_t nguess_refused;
	size_t nguess_more;

	struct finding findings[FINDINGS_MAX];
	size_t nfindings;
	/* For which there was no room. */
	size_t nlost;
};

static struct corpus corpus;

static const struct wp_unwind_module *module_of(const struct corpus *c,
						uint64_t avma)
{
	return wp_unwind_find_module(&c->set.space.view, avma);
}

static const char *module_name(const struct corpus *c, uint32_t mapping)
{
	const struct wp_profile *profile = &c->set.profile;
	const char *path, *slash;

	if (!mapping || mapping >= profile->nmappings)
		return "";
	path = wp_intern_str(&profile->strings,
			     profile->mappings[mapping].path);
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* MODULE+0xOFF, or the bare address. */
static int format_pc(const struct corpus *c, char *buf, size_t len,
		     uint64_t avma)
{
	const struct wp_unwind_module *module = module_of(c, avma);

	if (!module)
		return snprintf(buf, len, "%#" PRIx64, avma);
	return snprintf(buf, len, "%s+%#" PRIx64,
			module_name(c, module->mapping), avma - module->bias);
}

/* Add a difference in the step of the frame that was looked up at AVMA; NULL if
 * it is known or there is no room. */
static struct finding *add_finding(struct corpus *c, const char *kind,
				   const char *what, uint64_t avma)
{
	const struct wp_unwind_module *module = module_of(c, avma);
	uint32_t mapping = module ? module->mapping : 0;
	uint64_t svma = module ? avma - module->bias : avma;
	struct finding *f = c->findings;

	for (size_t i = 0; i < c->nfindings; i++, f++) {
		if (f->kind != kind || f->what != what || f->svma != svma ||
		    f->mapping != mapping)
			continue;
		f->count++;
		return NULL;
	}
	if (c->nfindings == FINDINGS_MAX) {
		c->nlost++;
		return NULL;
	}
	c->nfindings++;
	*f = (struct finding){ .kind = kind,
			       .what = what,
			       .svma = svma,
			       .mapping = mapping,
			       .count = 1 };
	return f;
}

static void walk(struct corpus *c, struct wp_unwinder *unwinder,
		 const struct wp_regs *regs, struct snap *snap,
		 struct walked *w)
{
	struct wp_mem mem = { snap_read, snap };

	w->stack = (struct wp_stack){ .frames = w->frames,
				      .cfa_avma = w->cfas,
				      .cap = SNAP_FRAMES_MAX };
	wp_unwind_walk(unwinder, &c->set.space.view, regs, &mem,
		       WP_UNWIND_THOROUGH, &w->stack);
}

/* What W has at frame I: "pc flags cfa" or why it ended before. */
static void format_frame(const struct corpus *c, char *buf,
			 const struct walked *w, uint32_t i)
{
	char pc[TEXT_MAX / 2];

	if (i >= w->stack.depth) {
		snprintf(buf, TEXT_MAX, "ends after %u: %s", w->stack.depth,
			 wp_stack_end_text(w->stack.end));
		return;
	}
	format_pc(c, pc, sizeof(pc), w->frames[i].pc_avma);
	snprintf(buf, TEXT_MAX, "%s flags %u cfa %#" PRIx64, pc,
		 w->frames[i].flags, w->cfas[i]);
}

/* The first frame that is not the same in both, or the least depth. */
static uint32_t first_difference(const struct walked *a, const struct walked *b)
{
	uint32_t i = 0;

	while (i < a->stack.depth && i < b->stack.depth &&
	       a->frames[i].pc_avma == b->frames[i].pc_avma &&
	       a->frames[i].flags == b->frames[i].flags &&
	       a->cfas[i] == b->cfas[i])
		i++;
	return i;
}

static uint64_t lookup_of(const struct walked *w, uint32_t i)
{
	return wp_frame_lookup_avma(&w->frames[i]);
}

static void compare_walks(struct corpus *c, const struct walked *ours,
			  const struct walked *theirs)
{
	uint32_t i = first_difference(ours, theirs);
	bool is_cfa = i < ours->stack.depth && i < theirs->stack.depth &&
		      ours->frames[i].pc_avma == theirs->frames[i].pc_avma;
	struct finding *f;

	if (i == ours->stack.depth && i == theirs->stack.depth &&
	    ours->stack.end == theirs->stack.end)
		return;
	/* Its caller is not the same; its CFA or a flag is. */
	f = add_finding(c, "walk", is_cfa ? "cfa" : "frame",
			lookup_of(ours, is_cfa || !i ? i : i - 1));
	if (!f)
		return;
	format_frame(c, f->ours, ours, i);
	format_frame(c, f->theirs, theirs, i);
}

static void compare_unknown(struct corpus *c, struct snap *snap,
			    const struct walked *full)
{
	static struct walked part;
	struct wp_regs regs = { .known = 0 };
	struct finding *f;
	uint32_t i = 0;

	wp_reg_set(&regs, WP_REG_PC, snap->regs.v[WP_REG_PC]);
	wp_reg_set(&regs, WP_REG_SP, snap->regs.v[WP_REG_SP]);
	walk(c, c->rows, &regs, snap, &part);
	while (i < part.stack.depth && i < full->stack.depth &&
	       part.frames[i].pc_avma == full->frames[i].pc_avma)
		i++;
	if (i == part.stack.depth && part.stack.end == WP_END_UNKNOWN_REG)
		return;
	if (i == part.stack.depth && i == full->stack.depth &&
	    part.stack.end == full->stack.end) {
		c->nunknown_whole++;
		return;
	}
	f = add_finding(c, "unknown", "frame", lookup_of(full, i ? i - 1 : 0));
	if (!f)
		return;
	format_frame(c, f->ours, full, i);
	format_frame(c, f->theirs, &part, i);
}

static void compare_pcs(struct corpus *c, struct snap *snap,
			const struct walked *ours,
			const struct backend *backend, void *self)
{
	static uint64_t pcs[SNAP_FRAMES_MAX];
	size_t n = self ? backend->walk(self, snap, pcs) : 0, i = 0;
	struct finding *f;

	if (!self)
		return;
	while (i < n && i < ours->stack.depth &&
	       pcs[i] == ours->frames[i].pc_avma)
		i++;
	if (i == n && i == ours->stack.depth)
		return;
	f = add_finding(c, backend->name,
			i == n		       ? "ends earlier" :
			i == ours->stack.depth ? "goes on" :
						 "frame",
			lookup_of(ours, i ? (uint32_t)i - 1 : 0));
	if (!f)
		return;
	format_frame(c, f->ours, ours, (uint32_t)i);
	if (i < n)
		format_pc(c, f->theirs, TEXT_MAX, pcs[i]);
	else
		snprintf(f->theirs, TEXT_MAX, "ends after %zu", n);
}

/* What a step came to. */
struct stepped {
	enum wp_step_result result;
	struct wp_regs regs;
	uint64_t cfa_avma;
	bool is_signal;
};

static struct stepped step_by(const struct wp_step_ops *ops, void *self,
			      const struct wp_step *from)
{
	struct stepped to = { .regs = *from->regs };
	struct wp_step step = *from;

	step.regs = &to.regs;
	to.result = ops->step(self, &step);
	to.cfa_avma = step.cfa_avma;
	to.is_signal = step.is_signal;
	return to;
}

static void format_step(const struct corpus *c, char *buf,
			const struct stepped *to)
{
	char pc[TEXT_MAX / 2];
	size_t n;

	if (to->result != WP_STEP_OK) {
		snprintf(buf, TEXT_MAX, "result %d", (int)to->result);
		return;
	}
	format_pc(c, pc, sizeof(pc), to->regs.v[WP_REG_PC]);
	n = (size_t)snprintf(buf, TEXT_MAX, "%s cfa %#" PRIx64 "%s", pc,
			     to->cfa_avma, to->is_signal ? " signal" : "");
	for (unsigned int i = 0; i < WP_CFI_NTRACKED && n < TEXT_MAX; i++) {
		unsigned int reg = wp_cfi_tracked[i];

		if (reg == WP_REG_PC || reg == WP_REG_SP)
			continue;
		n += (size_t)snprintf(buf + n, TEXT_MAX - n,
				      wp_reg_known(&to->regs, reg) ?
					      " r%u=%" PRIx64 :
					      " r%u=?",
				      reg, to->regs.v[reg]);
	}
}

/* What is not the same, or NULL. */
static const char *step_difference(const struct stepped *a,
				   const struct stepped *b)
{
	if (a->result != b->result)
		return "result";
	if (a->result != WP_STEP_OK)
		return NULL;
	if (a->cfa_avma != b->cfa_avma || a->is_signal != b->is_signal)
		return "cfa";
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++) {
		unsigned int reg = wp_cfi_tracked[i];

		if (wp_reg_known(&a->regs, reg) != wp_reg_known(&b->regs, reg))
			return "known register";
		if (wp_reg_known(&a->regs, reg) &&
		    a->regs.v[reg] != b->regs.v[reg])
			return "register";
	}
	return NULL;
}

static struct stepped guess_from(struct corpus *c, const struct wp_step *from,
				 const struct wp_regs *regs)
{
	struct stepped to = { .regs = *regs };
	struct wp_step step = *from;

	step.regs = &to.regs;
	to.result = wp_step_guess(c->prover, &step, &c->set.space.view);
	to.cfa_avma = step.cfa_avma;
	to.is_signal = step.is_signal;
	return to;
}

/* A guess may know fewer registers than the CFI, and none but those that a call
 * keeps; what it knows must be so. */
static const char *guess_difference(const struct stepped *guess,
				    const struct stepped *truth)
{
	uint64_t both = guess->regs.known & truth->regs.known &
			WP_ARCH_CALLEE_SAVED;

	if (guess->result != truth->result)
		return "result";
	if (guess->result != WP_STEP_OK)
		return NULL;
	if (guess->regs.v[WP_REG_PC] != truth->regs.v[WP_REG_PC] ||
	    guess->regs.v[WP_REG_SP] != truth->regs.v[WP_REG_SP] ||
	    guess->is_signal != truth->is_signal)
		return "frame";
	for (unsigned int reg = 0; reg < WP_NREGS; reg++)
		if (both >> reg & 1 && guess->regs.v[reg] != truth->regs.v[reg])
			return "register";
	return NULL;
}

static void compare_guess(struct corpus *c, const struct wp_step *from,
			  const struct wp_regs *regs,
			  const struct stepped *truth, uint64_t lookup_avma)
{
	struct stepped guess = guess_from(c, from, regs);
	const char *what = guess_difference(&guess, truth);
	struct finding *f;

	if (guess.result != WP_STEP_OK && guess.result != WP_STEP_ROOT) {
		c->nguess_refused++;
		return;
	}
	if (truth->result == WP_STEP_NO_INFO) {
		c->nguess_more++;
		return;
	}
	c->nguess_right += !what;
	f = what ? add_finding(c, "guess", what, lookup_avma) : NULL;
	if (f) {
		format_step(c, f->ours, &guess);
		format_step(c, f->theirs, truth);
	}
}

/* Guess the step of FROM, of which TRUTH came. */
static void compare_guesses(struct corpus *c, const struct wp_step *from,
			    const struct stepped *truth, uint64_t lookup_avma)
{
	struct wp_regs bare = { .known = 0 };

	if (truth->result != WP_STEP_OK && truth->result != WP_STEP_ROOT &&
	    truth->result != WP_STEP_NO_INFO)
		return;
	wp_reg_set(&bare, WP_REG_PC, from->regs->v[WP_REG_PC]);
	wp_reg_set(&bare, WP_REG_SP, from->regs->v[WP_REG_SP]);
	compare_guess(c, from, from->regs, truth, lookup_avma);
	compare_guess(c, from, &bare, truth, lookup_avma);
}

/* Make the step of FROM by both and compare; the rows' one, or libunwind's
 * where these cannot. */
static struct stepped compare_step(struct corpus *c, const struct wp_step *from,
				   uint64_t lookup_avma)
{
	struct stepped ours = step_by(&wp_step_rows, c->step_rows, from);
	struct stepped theirs = step_by(&wp_step_libunwind, c->step_libunwind,
					from);
	const char *what = step_difference(&ours, &theirs);
	struct finding *f = what ? add_finding(c, "step", what, lookup_avma) :
				   NULL;

	if (f) {
		format_step(c, f->ours, &ours);
		format_step(c, f->theirs, &theirs);
	}
	return ours.result == WP_STEP_BAD_INFO ? theirs : ours;
}

static void compare_steps(struct corpus *c, struct snap *snap, uint32_t depth)
{
	struct wp_regs regs = snap->regs;
	struct wp_mem mem = { snap_read, snap };
	struct wp_step step = { .regs = &regs, .mem = &mem };

	for (uint32_t i = 0; i < depth; i++) {
		uint64_t lookup_avma = regs.v[WP_REG_PC] - step.is_return;
		struct stepped to = { .result = WP_STEP_NO_INFO };

		step.module = module_of(c, lookup_avma);
		if (step.module && step.module->image)
			to = compare_step(c, &step, lookup_avma);
		if (c->guesses && step.module && step.module->image)
			compare_guesses(c, &step, &to, lookup_avma);
		if (to.result == WP_STEP_OK) {
			regs = to.regs;
			step.is_signal = to.is_signal;
		} else if (to.result != WP_STEP_NO_INFO ||
			   wp_step_guess(c->prover, &step,
					 &c->set.space.view) != WP_STEP_OK) {
			return;
		}
		step.is_return = !step.is_signal;
	}
}

static void add_pc(struct corpus *c, uint64_t avma)
{
	uint64_t i = wp_hash_u64(avma);
	uint64_t *slot;

	if (!avma || c->npcs > (1 << PCS_BITS) / 2)
		return;
	while (*(slot = &c->pcs[i & ((1 << PCS_BITS) - 1)]) && *slot != avma)
		i++;
	c->npcs += !*slot;
	*slot = avma;
}

static void count(struct corpus *c, const struct walked *w)
{
	enum wp_stack_end end = w->stack.end;

	c->nsnapshots++;
	c->nframes += w->stack.depth;
	c->ends[end]++;
	c->nstuck += end != WP_END_ROOT;
	for (uint32_t i = 0; i < w->stack.depth; i++) {
		const struct wp_frame *frame = &w->frames[i];

		c->nguessed += (frame->flags & WP_FRAME_GUESSED) != 0;
		if (frame->mapping < MAPPINGS_MAX)
			c->mappings[frame->mapping] = true;
		add_pc(c, lookup_of(w, i));
	}
}

/* TEXT in quotes; names of files are the target's. */
static void print_text(const char *key, const char *text)
{
	printf(", \"%s\": \"", key);
	for (; *text; text++)
		putchar(*text < ' ' || *text == '"' || *text == '\\' ? '?' :
								       *text);
	putchar('"');
}

/* W has been printed: its frames are those of one before. */
static bool is_known(struct corpus *c, const struct walked *w)
{
	uint64_t hash = wp_hash_bytes(w->stack.end, w->frames,
				      w->stack.depth * sizeof(*w->frames)) |
			1;
	uint64_t i = hash >> (64 - WALKS_BITS);

	while (c->walks[i] && c->walks[i] != hash)
		i = (i + 1) & ((1 << WALKS_BITS) - 1);
	if (c->walks[i] || c->nwalks == (1 << WALKS_BITS) / 2)
		return true;
	c->nwalks++;
	c->walks[i] = hash;
	return false;
}

/* Each frame where it is looked up, with '?' if it was guessed. */
static void print_walk(const struct corpus *c, const struct walked *w)
{
	printf("{\"kind\": \"walk\", \"pid\": %d", (int)c->pid);
	print_text("end", wp_stack_end_text(w->stack.end));
	printf(", \"frames\": [");
	for (uint32_t i = 0; i < w->stack.depth; i++) {
		uint64_t avma = lookup_of(w, i);
		const struct wp_unwind_module *module = module_of(c, avma);

		printf("%s[\"%s\", %" PRIu64 ", %s]", i ? ", " : "",
		       module ? module_name(c, module->mapping) : "",
		       module ? avma - module->bias : avma,
		       w->frames[i].flags & WP_FRAME_GUESSED ? "true" :
							       "false");
	}
	printf("]}\n");
}

static void look(void *ctx, struct snap *snap)
{
	static struct walked ours, theirs;
	struct corpus *c = ctx;

	walk(c, c->rows, &snap->regs, snap, &ours);
	if (!ours.stack.depth)
		return;
	count(c, &ours);
	walk(c, c->libunwind, &snap->regs, snap, &theirs);
	compare_walks(c, &ours, &theirs);
	compare_steps(c, snap, ours.stack.depth);
	compare_unknown(c, snap, &ours);
	compare_pcs(c, snap, &ours, &backend_libunwind, c->perf);
	compare_pcs(c, snap, &ours, &backend_libdw, c->libdw);
	if (c->prints_walks && !is_known(c, &ours))
		print_walk(c, &ours);
}

static void print_finding(const struct corpus *c, const struct finding *f)
{
	printf("{\"kind\": \"differs\", \"pid\": %d, \"count\": %zu",
	       (int)c->pid, f->count);
	print_text("from", f->kind);
	print_text("what", f->what);
	print_text("module", module_name(c, f->mapping));
	printf(", \"svma\": \"%#" PRIx64 "\"", f->svma);
	print_text("ours", f->ours);
	print_text("theirs", f->theirs);
	printf("}\n");
}

static void print_modules(const struct corpus *c)
{
	const char *comma = "";

	printf(", \"modules\": [");
	for (uint32_t i = 1; i < MAPPINGS_MAX; i++) {
		if (!c->mappings[i])
			continue;
		printf("%s\"", comma);
		for (const char *p = module_name(c, i); *p; p++)
			putchar(*p < ' ' || *p == '"' || *p == '\\' ? '?' : *p);
		putchar('"');
		comma = ", ";
	}
	printf("]");
}

static void print_looked(const struct corpus *c)
{
	size_t nfallbacks = wp_unwinder_stats(c->rows)->fallbacks;
	char exe[512];

	wp_process_exe(&c->set.process, exe, sizeof(exe));
	printf("{\"kind\": \"looked\", \"pid\": %d", (int)c->pid);
	print_text("exe", exe);
	printf(", \"snapshots\": %zu, \"frames\": %zu, \"pcs\": %zu",
	       c->nsnapshots, c->nframes, c->npcs);
	printf(", \"rows\": %zu, \"libunwind\": %zu, \"guessed\": %zu, "
	       "\"stuck\": %zu, \"pc_and_sp_do\": %zu, \"lost\": %zu",
	       c->nframes - nfallbacks - c->nguessed - c->nstuck, nfallbacks,
	       c->nguessed, c->nstuck, c->nunknown_whole, c->nlost);
	printf(", \"guess_right\": %zu, \"guess_refused\": %zu, "
	       "\"guess_more\": %zu",
	       c->nguess_right, c->nguess_refused, c->nguess_more);
	for (int i = 0; i < WP_NSTACK_ENDS; i++)
		if (c->ends[i])
			printf(", \"end: %s\": %zu",
			       wp_stack_end_text((enum wp_stack_end)i),
			       c->ends[i]);
	print_modules(c);
	printf("}\n");
}

static int open_unwinders(struct corpus *c)
{
	int rc = wp_unwinder_new(&c->rows, WP_UNWIND_ROWS);

	if (!rc)
		rc = wp_unwinder_new(&c->libunwind, WP_UNWIND_LIBUNWIND);
	if (rc)
		return rc;
	c->step_rows = wp_step_rows.open(&c->step_stats);
	c->step_libunwind = wp_step_libunwind.open(&c->step_stats);
	c->prover = wp_prover_new(&c->step_stats);
	if (!c->step_rows || !c->step_libunwind ||
	    (WP_ARCH_HAS_PROOFS && !c->prover))
		return -ENOMEM;
	c->perf = backend_libunwind.open(&c->set);
	if (c->has_libdw)
		c->libdw = backend_libdw.open(&c->set);
	return 0;
}

static void close_unwinders(struct corpus *c)
{
	if (c->libdw)
		backend_libdw.close(c->libdw);
	if (c->perf)
		backend_libunwind.close(c->perf);
	wp_prover_free(c->prover);
	if (c->step_libunwind)
		wp_step_libunwind.close(c->step_libunwind);
	if (c->step_rows)
		wp_step_rows.close(c->step_rows);
	wp_unwinder_free(c->libunwind);
	wp_unwinder_free(c->rows);
}

static int run(struct corpus *c, struct wp_err *err)
{
	int rc = snap_set_open(&c->set, c->pid, err);

	if (rc)
		return rc;
	rc = open_unwinders(c);
	if (!rc)
		rc = snap_set_show(&c->set, c->rounds, c->steps, look, c);
	if (rc)
		rc = wp_err_set(err, rc, "pid %d: cannot be looked at",
				(int)c->pid);
	for (size_t i = 0; !rc && i < c->nfindings; i++)
		print_finding(c, &c->findings[i]);
	if (!rc)
		print_looked(c);
	close_unwinders(c);
	snap_set_close(&c->set);
	return rc;
}

static unsigned int number(const char *text)
{
	unsigned long n = strtoul(text, NULL, 10);

	return n > 1000000 ? 1000000 : (unsigned int)n;
}

static bool read_options(int argc, char **argv, struct corpus *c)
{
	int opt;

	c->rounds = 10;
	while ((opt = getopt(argc, argv, "n:s:dgw")) != -1) {
		if (opt == 'n')
			c->rounds = number(optarg);
		else if (opt == 's')
			c->steps = number(optarg);
		else if (opt == 'd')
			c->has_libdw = true;
		else if (opt == 'g')
			c->guesses = true;
		else if (opt == 'w')
			c->prints_walks = true;
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct corpus options;
	int status = 0;

	if (!read_options(argc, argv, &options))
		return 64;
	for (int i = optind; i < argc; i++) {
		struct wp_err err = WP_ERR_INIT;

		corpus = options;
		corpus.pid = (pid_t)strtol(argv[i], NULL, 10);
		if (run(&corpus, &err)) {
			fprintf(stderr, "corpus: %s\n", err.msg);
			status = 1;
		}
		fflush(stdout);
	}
	return status;
}
