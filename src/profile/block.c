/* block.c - see wallprof/block.h. */
#include "wallprof/block.h"

/* From 0 to below 1. */
static double fraction(uint64_t random)
{
	return (double)(random >> 11) * 0x1p-53;
}

double wp_block_keep(uint64_t rate_ns, uint64_t delay_ns, uint64_t random)
{
	double p;

	if (delay_ns >= rate_ns)
		return 1;
	/* The shortest that a clock can tell is not nothing. */
	p = (double)(delay_ns ? delay_ns : 1) / (double)rate_ns;
	return fraction(random) < p ? 1 / p : 0;
}

struct wp_block_parts wp_block_missed_by_looks(uint64_t delay_ns,
					       uint64_t interval_ns)
{
	double x = (double)delay_ns / (double)interval_ns;

	if (x <= WP_BLOCK_LOOKS - 1)
		return (struct wp_block_parts){ 1, 1 };
	if (x >= WP_BLOCK_LOOKS)
		return (struct wp_block_parts){ 0, 0 };
	/* X looks on average are WP_BLOCK_LOOKS of them with probability
	 * X - (WP_BLOCK_LOOKS - 1), and then tell that many intervals. */
	x -= WP_BLOCK_LOOKS - 1;
	return (struct wp_block_parts){
		1 - x, 1 - WP_BLOCK_LOOKS * x / (x + WP_BLOCK_LOOKS - 1) };
}

double wp_block_window_weight(uint64_t delay_ns, uint64_t window_ns,
			      uint64_t cycle_ns)
{
	if (delay_ns >= window_ns)
		return 0;
	return (double)cycle_ns / (double)(window_ns - delay_ns);
}

uint64_t wp_block_round(double x, uint64_t random)
{
	uint64_t whole = (uint64_t)x;

	return whole + (fraction(random) < x - (double)whole);
}
