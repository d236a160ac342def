# SPDX-License-Identifier: Apache-2.0
"""The mutants of a C source: places in its syntax tree, and the text with all of
them in it (mutants.h).

Conditions turned round (a comparison, an operand of && || ! and of if, while,
for, do and ?:), && for || and || for &&, bounds (< for <=, a number compared or
added one greater), and values returned (0; 1 for 0; the opposite of a bool).
"""
import collections
import re
import subprocess

from clang.cindex import (CursorKind as K, Index, StorageClass,
                          TranslationUnit, TypeKind)

OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": None, "!=": None}
NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*$")
INTEGERS = {TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG,
            TypeKind.SHORT, TypeKind.USHORT, TypeKind.LONGLONG,
            TypeKind.ULONGLONG, TypeKind.UCHAR, TypeKind.SCHAR,
            TypeKind.CHAR_S, TypeKind.ENUM}

ALLOCATIONS = {"malloc", "calloc", "realloc", "reallocarray"}

# N is its number, TEXT what is changed, CHANGE how.
Mutant = collections.namedtuple("Mutant", "n line function text change")


class Source:
    """One file: its mutants, and the text that has them all."""

    def __init__(self, path, args, first, left_out=()):
        """FIRST: the number of the first mutant.  LEFT_OUT: lines in which there
        are to be none."""
        self.path, self.first, self.left_out = path, first, left_out
        with open(path, "rb") as f:
            self.bytes = f.read()
        include = subprocess.run(["clang", "-print-resource-dir"], text=True,
                                 capture_output=True, check=True).stdout
        self.tu = Index.create().parse(
            path, [*args, "-I", include.strip() + "/include"],
            options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        self.macros = [self.range(c) for c in self.tu.cursor.get_children()
                       if c.kind == K.MACRO_INSTANTIATION and self.is_own(c)]
        self.mutants, self.opening, self.closing, self.commas = [], [], [], []
        self.function = None
        for c in self.tu.cursor.get_children():
            if c.kind == K.FUNCTION_DECL and c.is_definition() and \
                    self.is_own(c):
                self.function = c
                for child in c.get_children():
                    if child.kind == K.COMPOUND_STMT:
                        self.visit(child)

    def is_own(self, c):
        return c.location.file is not None and c.location.file.name == self.path

    @staticmethod
    def range(c):
        return c.extent.start.offset, c.extent.end.offset

    def text(self, start, end):
        return " ".join(self.bytes[start:end].decode().split())

    def is_written(self, c):
        """Is C in the file as it stands, not part of a macro's expansion?"""
        start, end = self.range(c)
        return start < end and not any(
            (ms < end and start < me) and not (start <= ms and me <= end)
            for ms, me in self.macros)

    def new(self, c, change, count=1):
        """The number of a mutant of C; None if there can be none."""
        line = c.extent.start.line
        if not self.is_written(c) or line in self.left_out:
            return None
        n = self.first + len(self.mutants)
        changes = [change] if count == 1 else change
        for i in range(count):
            self.mutants.append(Mutant(
                n + i, line, self.function.spelling, self.text(*self.range(c)),
                changes[i]))
        return n

    def wrap(self, c, before, after=")"):
        start, end = self.range(c)
        self.opening.append((start, before))
        self.closing.append((end, after))

    @staticmethod
    def bare(c):
        """C without the conversions and parentheses around it."""
        while c.kind in (K.UNEXPOSED_EXPR, K.PAREN_EXPR):
            inner = list(c.get_children())
            if len(inner) != 1:
                break
            c = inner[0]
        return c

    def operator(self, c):
        """C's operator and operands, if it is a binary one."""
        if c.kind != K.BINARY_OPERATOR:
            return None, None, None
        left, right = c.get_children()
        (ls, le), (rs, re_) = self.range(left), self.range(right)
        if (ls, re_) != self.range(c) or le > rs or \
                not (self.is_written(left) and self.is_written(right)):
            return None, None, None
        between = re.sub(rb"/\*.*?\*/", b"", self.bytes[le:rs], flags=re.S)
        return between.decode().strip(), left, right

    def split(self, c, left, right, before):
        """BEFORE, left operand, comma, right operand, parenthesis."""
        self.wrap(c, before)
        self.opening.append((self.range(left)[0], "("))
        self.closing.append((self.range(left)[1], ")"))
        self.opening.append((self.range(right)[0], "("))
        self.closing.append((self.range(right)[1], ")"))
        self.commas.append((self.range(left)[1], self.range(right)[0]))

    def condition(self, c):
        """The truth of C decides something."""
        inner = self.bare(c)
        op = self.operator(inner)[0]
        if op in OTHER or op in ("&&", "||") or (
                inner.kind == K.UNARY_OPERATOR and
                self.bytes[self.range(inner)[0]:][:1] == b"!"):
            return
        if NUMBER.match(self.text(*self.range(inner))):
            return
        n = self.new(c, "not")
        if n:
            self.wrap(c, f"MUTANT_NOT({n}, ")

    def number(self, c):
        """C is compared or added."""
        inner = self.bare(c)
        if inner.kind == K.INTEGER_LITERAL and \
                NUMBER.match(self.text(*self.range(inner))):
            n = self.new(inner, "one more")
            if n:
                self.wrap(inner, f"MUTANT_MORE({n}, ")

    def binary(self, c):
        op, left, right = self.operator(c)
        if op in OTHER:
            other = OTHER[op]
            if other:
                n = self.new(c, [f"{op} to {other}", "not"], 2)
                if n:
                    self.split(c, left, right,
                               f"MUTANT_COMPARE({n}, {op}, {other}, ")
            else:
                n = self.new(c, "not")
                if n:
                    self.wrap(c, f"MUTANT_NOT({n}, ")
        if op in OTHER or op in ("+", "-"):
            self.number(left)
            self.number(right)
        if op in ("&&", "||"):
            n = self.new(c, f"{op} to {'||' if op == '&&' else '&&'}")
            if n:
                self.split(c, left, right,
                           f"MUTANT_{'AND' if op == '&&' else 'OR'}({n}, ")
            self.condition(left)
            self.condition(right)

    def for_condition(self, c, children):
        """The child between the two semicolons; the tree leaves out what is not
        there without a word."""
        text, at, depth, ends = self.bytes, self.range(c)[0], 0, []
        at = text.index(b"(", at)
        for i in range(at, len(text)):
            depth += {40: 1, 41: -1}.get(text[i], 0)
            if text[i] == 59 and depth == 1:
                ends.append(i)
            if not depth or len(ends) == 2:
                break
        for child in children:
            start, end = self.range(child)
            if len(ends) == 2 and ends[0] < start and end <= ends[1]:
                self.condition(child)

    def is_zero(self, c):
        inner = self.bare(c)
        if inner.kind == K.DECL_REF_EXPR:
            return (inner.referenced.kind == K.ENUM_CONSTANT_DECL and
                    inner.referenced.enum_value == 0)
        return self.text(*self.range(inner)) == "0"

    def returned(self, c):
        kind = c.type.get_canonical().kind
        op = self.operator(self.bare(c))[0]
        text = self.text(*self.range(c))
        if kind == TypeKind.BOOL or op in OTHER or op in ("&&", "||"):
            if text in ("true", "false"):
                other = "false" if text == "true" else "true"
                n = self.new(c, other)
                if n:
                    self.wrap(c, f"MUTANT_RETURN({n}, {int(text != 'true')}, ")
            else:
                self.condition(c)
            return
        if kind == TypeKind.POINTER and text not in ("NULL", "0"):
            n, other = self.new(c, "NULL"), "0"
        elif kind in INTEGERS:
            other = "1" if self.is_zero(c) else "0"
            n = self.new(c, other)
        else:
            return
        if n:
            self.wrap(c, f"MUTANT_RETURN({n}, {other}, ")

    def visit(self, c):
        if c.kind == K.VAR_DECL and (
                c.storage_class == StorageClass.STATIC):
            return
        # sizeof; a declaration's own; the expansion of a macro; more memory than
        # is needed.
        if c.kind in (K.CXX_UNARY_EXPR, K.ENUM_DECL, K.STRUCT_DECL) or \
                self.range(c) in self.macros or (
                    c.kind == K.CALL_EXPR and c.spelling in ALLOCATIONS):
            return
        children = list(c.get_children())
        if c.kind == K.CASE_STMT:
            children = children[1:]
        if c.kind == K.VAR_DECL and c.type.kind == TypeKind.CONSTANTARRAY:
            children = [x for x in children if x.kind == K.INIT_LIST_EXPR]
        if c.kind in (K.IF_STMT, K.WHILE_STMT, K.CONDITIONAL_OPERATOR):
            self.condition(children[0])
        elif c.kind == K.DO_STMT:
            self.condition(children[-1])
        elif c.kind == K.FOR_STMT:
            self.for_condition(c, children)
        elif c.kind == K.RETURN_STMT and children:
            self.returned(children[0])
        elif c.kind == K.BINARY_OPERATOR:
            self.binary(c)
        elif c.kind == K.UNARY_OPERATOR and \
                self.bytes[self.range(c)[0]:][:1] == b"!":
            self.condition(children[0])
        for child in children:
            self.visit(child)

    def mutated(self):
        """The source with all mutants, its lines where they were."""
        at = collections.defaultdict(lambda: ["", ""])
        for where, text in self.closing:
            at[where][0] = text + at[where][0]
        for where, text in self.opening:
            at[where][1] += text
        gone = {i for start, end in self.commas for i in range(start, end)}
        out = []
        for i in range(len(self.bytes) + 1):
            if i in at:
                out.append(at[i][0].encode())
            for start, _ in self.commas:
                if i == start:
                    out.append(b", ")
            if i in at:
                out.append(at[i][1].encode())
            if i < len(self.bytes):
                b = self.bytes[i:i + 1]
                out.append(b if i not in gone or b == b"\n" else b"")
        return b"".join(out)
