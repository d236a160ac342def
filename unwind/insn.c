/* SPDX-License-Identifier: Apache-2.0 */
/* insn.c - see insn.h. */
#include "insn.h"

#include <string.h>

/* What follows an opcode, a letter each (SDM vol. 2, tables ):
 *	.  nothing		m  ModRM
 *	b  8 bits		M  ModRM and 8 bits
 *	z  16 or 32 bits	Z  ModRM and 16 or 32 bits
 *	v  16, 32 or 64 bits	w  16 bits
 *	o  a full address	e  16 bits and 8 (enter)
 *	j  branch of 8 bits	J  branch of 32 bits
 *	t  ModRM and, for reg 0 and 1, as M; T the same as Z (test)
 *	x  not for user code, or not in 64-bit mode, or a prefix
 */
static const char one_byte[] = "mmmmbzxxmmmmbzxx"
			       "mmmmbzxxmmmmbzxx"
			       "mmmmbzxxmmmmbzxx"
			       "mmmmbzxxmmmmbzxx"
			       "xxxxxxxxxxxxxxxx"
			       "................"
			       "xxxmxxxxzZbMxxxx"
			       "jjjjjjjjjjjjjjjj"
			       "MZxMmmmmmmmmmmmm"
			       "..........x....."
			       "oooo....bz......"
			       "bbbbbbbbvvvvvvvv"
			       "MMw.xxMZe.xx.bxx"
			       "mmmmxxx.mmmmmmmm"
			       "jjjjxxxxJJxjxxxx"
			       "xxxx..tT..xx..mm";

static const char two_byte[] = "xmmmx.xxxxx.xmxx"
			       "mmmmmmmmmmmmmmmm"
			       "xxxxxxxxmmmmmmmm"
			       "x.xxxxxxxxxxxxxx"
			       "mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmm"
			       "MMMMmmm.mmxxmmmm"
			       "JJJJJJJJJJJJJJJJ"
			       "mmmmmmmmmmmmmmmm"
			       "xx.mMmxxxxxmMmmm"
			       "mmmmmmmmmmMmmmmm"
			       "mmMmMMMm........"
			       "mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmm";

_Static_assert(sizeof(one_byte) == 257 && sizeof(two_byte) == 257,
	       "a letter for each opcode");

/* Reads on, and never past the end: what is not there is 0 and said. */
struct bytes {
	const uint8_t *p;
	const uint8_t *end;
	bool over;
};

static uint8_t next(struct bytes *b)
{
	if (b->p == b->end) {
		b->over = true;
		return 0;
	}
	return *b->p++;
}

static int64_t next_signed(struct bytes *b, unsigned int len)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < len; i++)
		v |= (uint64_t)next(b) << 8 * i;
	/* Sign-extended from its own length. */
	return len == 8 ? (int64_t)v :
			  (int64_t)(v << (64 - 8 * len)) >> (64 - 8 * len);
}

/* REX.R, .X and .B, as 8 or 0. */
struct extension {
	uint8_t r;
	uint8_t x;
	uint8_t b;
};

static void decode_modrm(struct wp_insn *i, struct bytes *b,
			 const struct extension *ext)
{
	uint8_t modrm = next(b), rm = modrm & 7;

	i->has_modrm = true;
	i->mod = modrm >> 6;
	i->reg = (uint8_t)((modrm >> 3 & 7) | ext->r);
	i->rm = (uint8_t)(rm | ext->b);
	i->base = WP_NO_BASE;
	if (i->mod == 3)
		return;
	i->base = i->rm;
	if (rm == 4) {
		uint8_t sib = next(b);

		i->base = (uint8_t)((sib & 7) | ext->b);
		i->has_index = ((sib >> 3 & 7) | ext->x) != 4;
		if (i->mod == 0 && (sib & 7) == 5)
			i->base = WP_NO_BASE;
	} else if (i->mod == 0 && rm == 5) {
		i->base = WP_RIP_BASE;
	}
	if (i->mod == 1)
		i->disp = (int32_t)next_signed(b, 1);
	else if (i->mod == 2 || i->base >= WP_NO_BASE)
		i->disp = (int32_t)next_signed(b, 4);
}

static bool decode_rest(struct wp_insn *i, struct bytes *b, char what,
			const struct extension *ext)
{
	unsigned int full = i->narrow && !i->wide ? 2 : 4;

	if (strchr("mMZtT", what))
		decode_modrm(i, b, ext);
	switch (what) {
	case '.':
	case 'm':
		return true;
	case 'b':
	case 'M':
	case 'j':
		i->imm = next_signed(b, 1);
		return true;
	case 'z':
	case 'Z':
		i->imm = next_signed(b, full);
		return true;
	case 'v':
		i->imm = next_signed(b, i->wide ? 8 : full);
		return true;
	case 'w':
		i->imm = next_signed(b, 2);
		return true;
	case 'o':
		next_signed(b, 8);
		return true;
	case 'e':
		next_signed(b, 3);
		return true;
	case 'J':
		/* The operand's size does not matter. */
		i->imm = next_signed(b, 4);
		return true;
	case 't':
	case 'T':
		if ((i->reg & 7) < 2)
			i->imm = next_signed(b, what == 't' ? 1 : full);
		return true;
	default:
		return false;
	}
}

static char what_follows(const struct wp_insn *i)
{
	switch (i->map) {
	case WP_MAP_ONE_BYTE:
		return one_byte[i->op];
	case WP_MAP_0F:
		/* In EVEX's map every opcode has a ModRM. */
		if (i->vector == 2)
			return strchr("M", two_byte[i->op]) ? 'M' : 'm';
		return two_byte[i->op];
	case WP_MAP_0F3A:
		return 'M';
	default:
		return 'm';
	}
}

/* VEX (C5, C4) and EVEX (62): SDM vol. 2, 2.3.5 and 2.7.1. */
static bool decode_vector(struct wp_insn *i, struct bytes *b, uint8_t first)
{
	uint8_t p0 = next(b), last = p0;
	struct extension ext = { .r = p0 & 0x80 ? 0 : 8 };

	i->vector = first == 0x62 ? 2 : 1;
	i->map = WP_MAP_0F;
	if (first != 0xc5) {
		ext.x = p0 & 0x40 ? 0 : 8;
		ext.b = p0 & 0x20 ? 0 : 8;
		i->map = p0 & (first == 0x62 ? 7 : 31);
		if (i->map < WP_MAP_0F || i->map == 4 || i->map > WP_MAP_6)
			return false;
		last = next(b);
		i->wide = last & 0x80;
	}
	i->vvvv = ~last >> 3 & 15;
	i->rep = (last & 3) == 2;
	if (first == 0x62)
		next(b);
	i->op = next(b);
	return decode_rest(i, b, what_follows(i), &ext);
}

static bool decode_plain(struct wp_insn *i, struct bytes *b, uint8_t op,
			 uint8_t rex)
{
	const struct extension ext = { (uint8_t)((rex & 4) << 1),
				       (uint8_t)((rex & 2) << 2),
				       (uint8_t)((rex & 1) << 3) };

	i->rex = rex;
	i->wide = rex & 8;
	if (op == 0x0f) {
		i->map = WP_MAP_0F;
		op = next(b);
		if (op == 0x38 || op == 0x3a) {
			i->map = op == 0x38 ? WP_MAP_0F38 : WP_MAP_0F3A;
			op = next(b);
		}
	}
	i->op = op;
	/* Registers in the opcode's low bits. */
	i->rm = (uint8_t)((op & 7) | ext.b);
	if (!decode_rest(i, b, what_follows(i), &ext))
		return false;
	/* But for pop, 8F is AMD's XOP prefix. */
	return i->map != WP_MAP_ONE_BYTE || op != 0x8f || !(i->reg & 7);
}

bool wp_insn_decode(struct wp_insn *ret, const uint8_t *code, size_t left)
{
	struct bytes b = { code,
			   code + (left < WP_INSN_MAX ? left : WP_INSN_MAX),
			   false };
	struct wp_insn i = { .base = WP_NO_BASE };
	uint8_t op, rex = 0;
	bool ok;

	for (;; i.narrow |= op == 0x66, i.segment |= op == 0x64 || op == 0x65,
		i.rep |= op == 0xf3) {
		op = next(&b);
		if (op == 0 || b.over ||
		    !memchr("\x66\x67\xf0\xf2\xf3\x2e\x36"
			    "\x3e\x26\x64\x65",
			    op, 11))
			break;
	}
	if ((op & 0xf0) == 0x40) {
		rex = op;
		op = next(&b);
	}
	if (op == 0x62 || op == 0xc4 || op == 0xc5)
		ok = !rex && decode_vector(&i, &b, op);
	else
		ok = decode_plain(&i, &b, op, rex);
	i.len = (uint8_t)(b.p - code);
	if (!ok || b.over)
		return false;
	*ret = i;
	return true;
}

static uint32_t bit(unsigned int reg)
{
	return UINT32_C(1) << reg;
}

/* A byte register without REX: 4 to 7 are ah, ch, dh and bh. */
static uint32_t byte_bit(const struct wp_insn *i, uint8_t reg)
{
	return bit(!i->rex && reg >= 4 && reg < 8 ? reg - 4 : reg);
}

static uint32_t rm_bit(const struct wp_insn *i)
{
	return i->mod == 3 ? bit(i->rm) : 0;
}

/* Operands of an arithmetic opcode: its low three bits say which is written. */
static uint32_t alu_writes(const struct wp_insn *i)
{
	switch (i->op & 7) {
	case 0:
		return i->mod == 3 ? byte_bit(i, i->rm) : 0;
	case 1:
		return rm_bit(i);
	case 2:
		return byte_bit(i, i->reg);
	case 3:
		return bit(i->reg);
	default:
		return bit(WP_RAX);
	}
}

/* mul, div and what shares their opcode. */
static uint32_t unary_writes(const struct wp_insn *i)
{
	unsigned int what = i->reg & 7;

	if (what < 2)
		return 0;
	if (what > 3)
		return bit(WP_RAX) | bit(WP_RDX);
	if (i->mod != 3)
		return 0;
	return i->op == 0xf6 ? byte_bit(i, i->rm) : bit(i->rm);
}

static uint32_t one_byte_high_writes(const struct wp_insn *i)
{
	switch (i->op) {
	case 0xc0:
	case 0xd0:
	case 0xd2:
	case 0xc6:
	case 0xfe:
		return i->mod == 3 ? byte_bit(i, i->rm) : 0;
	case 0xc1:
	case 0xd1:
	case 0xd3:
	case 0xc7:
		return rm_bit(i);
	case 0xf6:
	case 0xf7:
		return unary_writes(i);
	case 0xff:
		/* inc, dec; the rest reads. */
		return (i->reg & 7) < 2 ? rm_bit(i) : 0;
	case 0xd7:
	case 0xdf:
		/* xlat; fnstsw. */
		return bit(WP_RAX);
	case 0xc8:
	case 0xc9:
		return bit(WP_RBP) | bit(WP_RSP);
	case 0xe0:
	case 0xe1:
	case 0xe2:
		return bit(WP_RCX);
	default:
		return 0;
	}
}

static uint32_t one_byte_middle_writes(const struct wp_insn *i)
{
	switch (i->op) {
	case 0x80:
	case 0x82:
		return (i->reg & 7) != 7 && i->mod == 3 ? byte_bit(i, i->rm) :
							  0;
	case 0x81:
	case 0x83:
		return (i->reg & 7) != 7 ? rm_bit(i) : 0;
	case 0x86:
	case 0x88:
	case 0x8a:
		return (i->op == 0x88 ? 0 : byte_bit(i, i->reg)) |
		       (i->op != 0x8a && i->mod == 3 ? byte_bit(i, i->rm) : 0);
	case 0x87:
		return bit(i->reg) | rm_bit(i);
	case 0x89:
	case 0x8c:
	case 0x8f:
		return rm_bit(i);
	case 0x8b:
	case 0x8d:
		return bit(i->reg);
	case 0x98:
	case 0x99:
		return bit(WP_RAX) | bit(WP_RDX);
	case 0x9f:
		/* lahf */
		return bit(WP_RAX);
	default:
		break;
	}
	/* With r8, 90 is no nop. */
	if (i->op >= 0x90 && i->op < 0x98 && i->rm != WP_RAX)
		return bit(WP_RAX) | bit(i->rm);
	return 0;
}

static uint32_t one_byte_writes(const struct wp_insn *i)
{
	if (i->op < 0x38)
		return alu_writes(i);
	if (i->op < 0x40)
		return 0;
	if (i->op < 0x60)
		return i->op < 0x58 ? 0 : bit(i->rm);
	if (i->op < 0x80)
		return i->op == 0x63 || i->op == 0x69 || i->op == 0x6b ?
			       bit(i->reg) :
			       0;
	if (i->op < 0xa0)
		return one_byte_middle_writes(i);
	if (i->op < 0xb0)
		/* Strings and moves by absolute address. */
		return bit(WP_RAX) | bit(WP_RCX) | bit(WP_RSI) | bit(WP_RDI);
	if (i->op < 0xb8)
		return byte_bit(i, i->rm);
	if (i->op < 0xc0)
		return bit(i->rm);
	return one_byte_high_writes(i);
}

/* Opcodes behind 0F that have to do with general registers; those that write
 * the one in ModRM.reg, or in ModRM.rm, are told apart where it is easy. */
static uint32_t two_byte_writes(const struct wp_insn *i)
{
	uint8_t op = i->op;

	if (op == 0x1e || op == 0x1f || op == 0x0d || (op >= 0x18 && op < 0x1e))
		/* nop, endbr64, prefetch; rdssp is written into rm. */
		return op == 0x1e ? rm_bit(i) : 0;
	if ((op >= 0x40 && op < 0x50) || op == 0xaf || op == 0xb6 ||
	    op == 0xb7 || op == 0xbe || op == 0xbf)
		return bit(i->reg);
	if (op >= 0x90 && op < 0xa0 && !i->vector)
		return i->mod == 3 ? byte_bit(i, i->rm) : 0;
	if (op == 0x05 || op == 0x31 || op == 0x01)
		return bit(WP_RAX) | bit(WP_RCX) | bit(WP_RDX) | bit(11);
	if (op == 0xa2)
		return 15;
	if (op >= 0xc8 && op < 0xd0)
		return bit(i->rm);
	/* bt reads. */
	if (op == 0xa3 || (op == 0xba && (i->reg & 7) == 4))
		return 0;
	/* cvttsd2si, movmskps, pextrw, pmovmskb, kmov, vcvttss2usi write ModRM.reg.
	 * ModRM.rm may be a vector, of a general register's number. */
	if (op == 0x2c || op == 0x2d || op == 0x50 || op == 0xc5 ||
	    op == 0xd7 || (op >= 0x90 && op < 0xa0) ||
	    (i->vector == 2 && (op == 0x78 || op == 0x79)))
		return bit(i->reg);
	/* Groups 8, 9 and 15: ModRM.reg is a part of the opcode. */
	if (op == 0xba || op == 0xae || op == 0xc7)
		return rm_bit(i) | (op == 0xc7 ? bit(WP_RAX) | bit(WP_RDX) : 0);
	/* popcnt, bsf and bsr. */
	if (op == 0xb8 || op == 0xbc || op == 0xbd)
		return bit(i->reg);
	if (op == 0x02 || op == 0x03 || (op >= 0xa3 && op < 0xc2))
		return bit(i->reg) | rm_bit(i) | bit(WP_RAX) | bit(WP_RDX) |
		       /* cmpxchg and xadd of bytes. */
		       (i->mod == 3 ? byte_bit(i, i->rm) : 0) |
		       byte_bit(i, i->reg);
	/* With F3 it moves between vectors. */
	return op == 0x7e && !i->rep ? rm_bit(i) : 0;
}

uint32_t wp_insn_writes(const struct wp_insn *i)
{
	uint32_t both = i->has_modrm ? bit(i->reg) | rm_bit(i) : 0;

	switch (i->map) {
	case WP_MAP_ONE_BYTE:
		return one_byte_writes(i);
	case WP_MAP_0F:
	/* Half precision: its conversions have the opcodes of single precision. */
	case WP_MAP_5:
		return two_byte_writes(i);
	case WP_MAP_6:
		return 0;
	case WP_MAP_0F38:
		/* cmpccxadd */
		if (i->vector == 1 && (i->op & 0xf0) == 0xe0 && i->mod != 3)
			return both;
		return i->op >= 0xf0 ? both | bit(i->vvvv) | bit(WP_RDX) : 0;
	case WP_MAP_0F3A:
		/* pcmpestri and pcmpistri; pextr and the like; rorx. */
		return i->op == 0x61 || i->op == 0x63 ? bit(WP_RCX) :
		       i->op >= 0x14 && i->op < 0x18  ? rm_bit(i) :
		       i->op >= 0xf0		      ? both :
							0;
	default:
		return both;
	}
}
