/* SPDX-License-Identifier: Apache-2.0 */
/* tree_print.c - the call trees of the text report, one per thread group.
 *
 *   100.0 %   10.0 s  main (server.c:12)
 *                     serve (server.c:40)
 *    96.0 %   9.60 s  + wait_for_work (server.c:55)
 *                     | epoll_wait (libc.so.6)  [waiting: poll]
 *     4.0 %   0.40 s  + handle (server.c:80)  [running]
 *
 * Calls go down.  Where all the time goes on to one callee, the callee stands
 * under its caller without numbers; "+" begins a branch.
 */
#include <inttypes.h>
#include <string.h>

#include "columns.h"
#include "groups.h"
#include "report.h"
#include "tree.h"

enum {
	/* Least share of its group's time that a branch has, in percent. */
	LEAST_SHARE = 1,
	TOP_GROUPS = 24,
	TOP_STATES = 3,
	/* Frames that are shown at each end of a long chain of single callees. */
	CHAIN_END = 6,
	/* Most columns of guides; beyond, a number says the depth. */
	GUIDES_MAX = 60,
	/* Columns before the guides. */
	NUMBERS = 2 + 7 + 2 + 8 + 2,
};

struct printer {
	struct wp_report *r;
	struct wp_tree tree;
	/* "| " or "  " for each open branch. */
	struct wp_buf guides;
	/* The position in the chain that is being printed, and its length. */
	uint32_t chain_at;
	uint32_t chain_len;
};

/* NODE has all the time of its caller. */
static bool continues(const struct wp_tree *tree, uint32_t node)
{
	const struct wp_tree_node *n = &tree->nodes[node];
	const struct wp_tree_node *parent = &tree->nodes[n->parent];

	return node && parent->first == node && !n->next &&
	       parent->total_ns - n->total_ns <= parent->total_ns / 1000;
}

static uint32_t chain_length(const struct wp_tree *tree, uint32_t node)
{
	uint32_t len = 1;

	while (continues(tree, tree->nodes[node].first)) {
		node = tree->nodes[node].first;
		len++;
	}
	return len;
}

/* Add NODE's own states to r->name: "  [waiting: poll]". */
static void put_states(struct printer *p, uint32_t node)
{
	const struct wp_tree_node *n = &p->tree.nodes[node];
	const struct wp_pairs *states = &p->tree.states;
	uint64_t all = p->tree.nodes[0].total_ns;
	bool whole = n->self_ns == n->total_ns;
	uint32_t i = n->state - 1, end = i;
	struct wp_report *r = p->r;
	char share[WP_CELL];

	if (!n->state || !wp_columns_have_states(r->profile, r->kind) ||
	    (!r->options->full && n->self_ns < all / 100 * LEAST_SHARE))
		return;
	while (end < states->len && states->v[end].a == node)
		end++;
	wp_buf_str(&r->name, "  ");
	wp_report_paint(r, (enum wp_state)(states->v[i].b & 0xff),
			states->v[i].b >> 8);
	wp_buf_char(&r->name, '[');
	wp_report_share(share, n->self_ns, all);
	if (!whole)
		wp_buf_printf(&r->name,
			      "itself %s: ", share + strspn(share, " "));
	for (uint32_t k = i; k < end; k++) {
		uint64_t reason = states->v[k].b >> 8;

		wp_buf_str(&r->name, k == i ? "" : ", ");
		if (wp_report_hides(r, k - i, TOP_STATES)) {
			wp_buf_str(&r->name, "...");
			break;
		}
		wp_buf_str(&r->name, wp_types_state_name((enum wp_state)(
					     states->v[k].b & 0xff)));
		if (reason) {
			wp_buf_str(&r->name, ": ");
			wp_report_wait(r, reason);
		}
		wp_report_share(share, states->v[k].self, all);
		if (end - i > 1)
			wp_buf_printf(&r->name, " %s",
				      share + strspn(share, " "));
	}
	wp_buf_char(&r->name, ']');
}

/* Write the guides and MARK; returns the columns of the line so far. */
static size_t put_guides(struct printer *p, size_t indent, const char *mark)
{
	size_t used = NUMBERS + strlen(mark);
	char depth[32];

	if (indent <= GUIDES_MAX) {
		wp_buf_add(&p->r->out, p->guides.data, indent);
		wp_buf_str(&p->r->out, mark);
		return used + indent;
	}
	snprintf(depth, sizeof(depth), "[%zu deep] ", indent / 2);
	wp_buf_str(&p->r->out, depth);
	wp_buf_str(&p->r->out, mark);
	return used + strlen(depth);
}

static void put_node(struct printer *p, uint32_t node, bool chained)
{
	const struct wp_tree_node *n = &p->tree.nodes[node];
	uint64_t all = p->tree.nodes[0].total_ns;
	bool branch = !continues(&p->tree, node);
	char share[WP_CELL], time[WP_CELL];
	struct wp_report *r = p->r;
	struct wp_view view;
	size_t used;

	wp_report_share(share, n->total_ns, all);
	wp_report_value(r, time, n->total_ns);
	if (chained)
		wp_buf_fill(&r->out, ' ', NUMBERS);
	else
		wp_buf_printf(&r->out, "  %s  %s  ", share, time);
	used = put_guides(p, p->tree.nodes[n->parent].indent,
			  branch ? "+ " : "");
	wp_view_set(r->profile, n->loc, n->level, &view);
	view.line = n->line;
	view.guessed = n->guessed;
	wp_report_name(r, &view);
	if (n->repeat > 1 && p->tree.fold_recursion)
		wp_buf_printf(&r->name, "  (recursive, up to %" PRIu32 " deep)",
			      n->repeat);
	put_states(p, node);
	wp_report_end(r, used);
}

/* Take NODE's place in its chain, and print it unless it is in the middle of a
 * long one. */
static void visit(struct printer *p, uint32_t node)
{
	struct wp_tree_node *n = &p->tree.nodes[node];
	size_t indent = p->tree.nodes[n->parent].indent;
	uint32_t hidden = 0;

	p->guides.len = indent;
	if (!continues(&p->tree, node))
		wp_buf_str(&p->guides, n->next ? "| " : "  ");
	n->indent = (uint32_t)p->guides.len;
	if (!n->parent || !continues(&p->tree, node)) {
		p->chain_at = 0;
		p->chain_len = chain_length(&p->tree, node);
	}
	if (!p->r->options->full && p->chain_len > 2 * CHAIN_END + 2)
		hidden = p->chain_len - 2 * CHAIN_END;
	if (!hidden || p->chain_at < CHAIN_END ||
	    p->chain_at >= CHAIN_END + hidden) {
		put_node(p, node, p->chain_at);
	} else if (p->chain_at == CHAIN_END) {
		wp_buf_fill(&p->r->out, ' ', NUMBERS);
		wp_buf_printf(&p->r->name, "... %" PRIu32 " calls ...", hidden);
		wp_report_end(p->r, put_guides(p, n->indent, ""));
	}
	p->chain_at++;
}

/* Not recursive: a target's stack may be of any depth. */
static void visit_all(struct printer *p)
{
	const struct wp_tree_node *nodes = p->tree.nodes;
	uint32_t at = nodes[0].first;

	while (at) {
		visit(p, at);
		if (nodes[at].first) {
			at = nodes[at].first;
			continue;
		}
		while (at && !nodes[at].next)
			at = nodes[at].parent;
		at = nodes[at].next;
	}
}

static void put_hidden(struct printer *p)
{
	char share[WP_CELL];

	if (!p->tree.nhidden)
		return;
	wp_report_share(share, p->tree.hidden_ns, p->tree.nodes[0].total_ns);
	wp_buf_printf(&p->r->out,
		      "  (%" PRIu32 " %s under %d %% not shown, %s together)\n",
		      p->tree.nhidden,
		      p->tree.nhidden == 1 ? "branch" : "branches", LEAST_SHARE,
		      share + strspn(share, " "));
}

static void put_group_title(struct wp_report *r, const struct wp_groups *groups,
			    const struct wp_group *group)
{
	const char *name = wp_intern_str(&groups->names, group->name);
	char text[WP_CELL];
	const char *sep = ": ";

	wp_report_value(r, text, group->total_ns);
	wp_buf_str(&r->out, "\n");
	wp_buf_str(&r->name, "Call tree of ");
	wp_escape_terminal(&r->name, *name ? name : "[no name]");
	if (r->profile->threads[group->thread].part)
		wp_buf_str(&r->name, " (");
	else if (group->nthreads == 1)
		wp_buf_printf(&r->name, " (tid %" PRId32 ", ",
			      r->profile->threads[group->thread].tid);
	else
		wp_buf_printf(&r->name, " (%" PRIu32 " threads, ",
			      group->nthreads);
	wp_buf_printf(&r->name, "%s)", text + strspn(text, " "));
	for (unsigned int i = 0; i < WP_NSTATES; i++) {
		if (!group->ns[i] ||
		    !wp_columns_have_states(r->profile, r->kind))
			continue;
		wp_report_share(text, group->ns[i], group->total_ns);
		wp_buf_printf(&r->name, "%s%s %s", sep,
			      wp_types_state_name((enum wp_state)i),
			      text + strspn(text, " "));
		sep = ", ";
	}
	wp_report_end(r, 0);
}

static void put_tree(struct wp_report *r, const struct wp_groups *groups,
		     const struct wp_group *group)
{
	struct printer p = { .r = r };
	bool full = r->options->full;
	uint64_t least = full ? 0 : group->total_ns / 100 * LEAST_SHARE;
	int rc;

	rc = wp_tree_init(&p.tree, r->profile, !full);
	for (uint32_t i = group->first; i && !rc; i = groups->next[i - 1]) {
		const struct wp_profile_sample *s = &r->set->samples[i - 1];

		rc = wp_tree_add(&p.tree, s, wp_report_ns(r, s));
	}
	if (!rc)
		rc = wp_tree_link(&p.tree, least);
	if (!rc) {
		put_group_title(r, groups, group);
		visit_all(&p);
		put_hidden(&p);
		rc = p.guides.rc;
	}
	if (rc)
		wp_report_fail(r, rc);
	wp_buf_clear(&p.guides);
	wp_tree_clear(&p.tree);
}

void wp_report_trees(struct wp_report *r)
{
	struct wp_groups groups;
	uint64_t left = 0;
	uint32_t i = 0;
	int rc;

	rc = wp_groups_init(&groups, r->profile, r->kind,
			    r->shows_idle || r->options->full);
	if (rc) {
		wp_report_fail(r, rc);
		wp_groups_clear(&groups);
		return;
	}
	for (; !r->rc && i < groups.len && !wp_report_hides(r, i, TOP_GROUPS);
	     i++)
		put_tree(r, &groups, &groups.v[i]);
	for (uint32_t k = i; k < groups.len; k++)
		left += groups.v[k].total_ns;
	if (i < groups.len) {
		char time[WP_CELL];

		wp_report_value(r, time, left);
		wp_buf_printf(&r->out,
			      "\n%" PRIu32 " more groups of threads not shown,"
			      " %s together\n",
			      groups.len - i, time + strspn(time, " "));
	}
	wp_groups_clear(&groups);
}
