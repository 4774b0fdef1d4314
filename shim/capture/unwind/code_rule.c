#include "code_rule.h"

#include "arch_code.h"
#include "arch_instruction.h"
#include "arch_memory.h"
#include "stack_memory.h"

enum {
    /* instructions followed in all; nine of ten functions of libraries are shorter */
    MAX_INSTRUCTIONS = 512,
    MAX_BRANCHES = 6, /* branches found that are not yet followed */
    MAX_CALLS = 2,    /* paths behind calls that are not yet followed */
    MAX_SEEN = 16,    /* number of remembered branch targets */
};

/* Describes an address: a register's value at the start of the search plus an offset. */
enum base { BASE_SP, BASE_FP, BASE_LOST };
struct place {
    uint8_t base;
    int32_t offset;
};

/* Describes the content of the frame pointer: its value at the start of the search, an address, or
 * the value saved at an address. */
enum fp_content { FP_UNCHANGED, FP_ADDRESS, FP_SAVED, FP_UNKNOWN };

struct path {
    uintptr_t at;
    struct place sp;
    struct place fp;     /* place of FP_ADDRESS and FP_SAVED */
    struct place pushed; /* where the start's frame pointer is saved; BASE_LOST: not saved */
    uint8_t fp_content;
    bool has_called;
    bool has_just_called;
};

struct search {
    const struct code_view *view;
    uintptr_t readable_page; /* the page last found to be readable; NO_PAGE at first */
    struct path path;
    struct path branches[MAX_BRANCHES];
    struct path calls[MAX_CALLS];
    uintptr_t seen[MAX_SEEN];
    uint32_t branch_count;
    uint32_t call_count;
    uint32_t seen_count;
    bool gave_up; /* a path that may return was not followed to its end */
    struct rule found;
};

/* Lists how a path continues after one instruction. */
enum progress { PATH_ON, PATH_DEAD, PATH_FOUND };

static bool is_same_place(struct place a, struct place b) {
    return a.base == b.base && a.offset == b.offset;
}

static struct place above(struct place place, int32_t offset) {
    return (struct place){place.base, (int32_t)((uint32_t)place.offset + (uint32_t)offset)};
}

/* --- reading --- */

static bool can_read_page(struct search *s, uintptr_t address) {
    const uintptr_t page = address & -(uintptr_t)ARCH_SMALLEST_PAGE_BYTES;
    if (page == s->readable_page)
        return true;
    if (!memory_is_readable(address))
        return false;
    s->readable_page = page;
    return true;
}

/* Returns the number of bytes that may be read at `at`; 0: none. If the kernel was queried, only
 * the bytes of the longest instruction are certain to be readable. */
static size_t readable_bytes(struct search *s, uintptr_t at) {
    const struct code_view *const view = s->view;
    if (at < view->low || at >= view->high)
        return 0;
    const uintptr_t left = view->high - at;
    if (!view->is_asked)
        return left;
    const uintptr_t in_page = ARCH_SMALLEST_PAGE_BYTES - at % ARCH_SMALLEST_PAGE_BYTES;
    if (!can_read_page(s, at))
        return 0;
    return in_page >= ARCH_INSTRUCTION_BYTES || !can_read_page(s, at + in_page) ? in_page : left;
}

/* --- the end of a path --- */

static enum progress code_rule_give_up(struct search *s) {
    s->gave_up = true;
    return PATH_DEAD;
}

/* Ends the path: the return address is at `slot`, or, where calls leave it in the link register, it
 * is there, and the frame ends at `slot`. */
static enum progress found_return(struct search *s, struct place slot) {
    const struct path *const p = &s->path;
    if (slot.base == BASE_LOST || (slot.offset & 7))
        return code_rule_give_up(s);
    struct rule rule = {.cfa_kind = slot.base == BASE_SP ? RULE_CODE_SP : RULE_CODE_FP,
                        .cfa_offset = slot.offset - ARCH_PUSHED_RETURN,
                        .fp_kind = FP_LOST};
    const int32_t distance = p->fp.offset - rule.cfa_offset;
    if (p->fp_content == FP_UNCHANGED)
        rule.fp_kind = FP_SAME;
    if (p->fp_content == FP_SAVED && p->fp.base == slot.base) {
        rule.fp_kind = FP_AT_CFA;
        rule.fp_offset = distance;
    }
    s->found = rule;
    return PATH_FOUND;
}

/* Ends the path at a return. A call has overwritten the link register. */
static enum progress returns(struct search *s) {
    if (!ARCH_PUSHED_RETURN && s->path.has_called)
        return code_rule_give_up(s);
    return found_return(s, s->path.sp);
}

/* Ends the path at a jump that leaves the function: through a variable (as a stub or a tail call
 * does), or, behind an epilogue, by any indirect jump. Other indirect jumps belong to a switch, and
 * stay in the function. */
static enum progress jump_away(struct search *s, bool is_stub) {
    const struct path *const p = &s->path;
    if (!ARCH_PUSHED_RETURN && p->has_called) /* the link register is overwritten */
        return code_rule_give_up(s);
    const bool is_over = p->fp_content == FP_SAVED || p->sp.base == BASE_FP;
    const bool is_untouched = p->sp.base == BASE_SP && p->sp.offset >= 0;
    return is_over || (is_stub && is_untouched) ? found_return(s, p->sp) : code_rule_give_up(s);
}

/* --- the effects of instructions --- */

static void load_fp(struct path *p, struct place from) {
    if (is_same_place(from, p->pushed)) {
        p->fp_content = FP_UNCHANGED;
        return;
    }
    const bool is_overwritten = from.base == BASE_SP && from.offset < 0;
    p->fp = from;
    p->fp_content = from.base == BASE_LOST || is_overwritten ? FP_UNKNOWN : FP_SAVED;
}

static void pop_fp(struct path *p) {
    load_fp(p, p->sp);
    p->sp = above(p->sp, 8);
}

static void sp_from_fp(struct path *p, int32_t offset) {
    if (p->fp_content == FP_UNCHANGED)
        p->sp = (struct place){BASE_FP, offset};
    else if (p->fp_content == FP_ADDRESS)
        p->sp = above(p->fp, offset);
    else
        p->sp.base = BASE_LOST;
}

/* Handles the creation of a frame record, with which a function begins. After a call this means
 * that the path has run into another function. */
static enum progress fp_from_sp(struct search *s, int32_t offset) {
    struct path *const p = &s->path;
    const bool is_record = offset == 0 && p->sp.base == BASE_SP;
    if (is_record && p->pushed.base == BASE_SP && is_same_place(p->sp, p->pushed))
        return p->has_called ? PATH_DEAD : found_return(s, above(p->sp, 8));
    if (is_record && p->sp.offset == 0 && p->fp_content == FP_UNCHANGED && p->at > s->view->low &&
        arch_follows_push_fp((const uint8_t *)p->at) && !p->has_called)
        return found_return(s, above(p->sp, 8));
    p->fp = above(p->sp, offset);
    p->fp_content = p->sp.base == BASE_LOST ? FP_UNKNOWN : FP_ADDRESS;
    return PATH_ON;
}

/* --- where a path continues --- */

static bool is_seen(const struct search *s, uintptr_t target) {
    for (uint32_t i = 0; i < s->seen_count; i++)
        if (s->seen[i] == target)
            return true;
    return false;
}

/* Remembers the target of a jump. Returns true if the path from there must be followed: the target
 * is new, and there is room to remember it. */
static bool is_new(struct search *s, uintptr_t target) {
    if (is_seen(s, target))
        return false;
    if (s->seen_count == MAX_SEEN) {
        s->gave_up = true;
        return false;
    }
    s->seen[s->seen_count++] = target;
    return true;
}

static void keep_branch(struct search *s, uintptr_t target) {
    if (s->branch_count == MAX_BRANCHES) {
        s->gave_up |= !is_seen(s, target);
        return;
    }
    if (!is_new(s, target))
        return;
    s->branches[s->branch_count] = s->path;
    s->branches[s->branch_count].at = target;
    s->branches[s->branch_count++].has_just_called = false;
}

static bool next_path(struct search *s) {
    if (s->branch_count) {
        s->path = s->branches[--s->branch_count];
        return true;
    }
    if (!s->call_count)
        return false;
    s->path = s->calls[--s->call_count];
    return true;
}

static enum progress change_pointers(struct search *s, const struct instruction *i) {
    struct path *const p = &s->path;
    switch (i->effect) {
    case EFFECT_MOVE_SP:
        p->sp = above(p->sp, i->value);
        return PATH_ON;
    case EFFECT_PUSH_FP:
        p->sp = above(p->sp, -8);
        if (p->fp_content == FP_UNCHANGED)
            p->pushed = p->sp;
        return PATH_ON;
    case EFFECT_POP_FP:
        pop_fp(p);
        return PATH_ON;
    case EFFECT_LOAD_FP:
        load_fp(p, above(p->sp, i->value));
        return PATH_ON;
    case EFFECT_FP_FROM_SP:
        return fp_from_sp(s, i->value);
    case EFFECT_SP_FROM_FP:
        sp_from_fp(p, i->value);
        return PATH_ON;
    case EFFECT_LEAVE:
        sp_from_fp(p, 0);
        pop_fp(p);
        return PATH_ON;
    case EFFECT_LOSE_SP:
        p->sp.base = BASE_LOST;
        return PATH_ON;
    default:
        return PATH_ON;
    }
}

/* Applies the instruction to the path, whose `at` is already behind the instruction; FP_FROM_SP
 * therefore reads the bytes before `at`. */
static enum progress follow(struct search *s, const struct instruction *i) {
    const bool has_just_called = s->path.has_just_called;
    s->path.has_just_called = false;
    switch (i->effect) {
    case EFFECT_UNKNOWN:
        return code_rule_give_up(s);
    case EFFECT_STOP:
        return PATH_DEAD;
    case EFFECT_BEGIN:
        return s->path.has_called ? PATH_DEAD : PATH_ON;
    case EFFECT_PAD:
        return has_just_called ? PATH_DEAD : PATH_ON;
    case EFFECT_RETURN:
        return returns(s);
    case EFFECT_JUMP_AWAY:
        return jump_away(s, i->value);
    case EFFECT_BRANCH:
        keep_branch(s, i->target);
        return PATH_ON;
    default:
        return change_pointers(s, i);
    }
}

static enum progress code_rule_take(struct search *s) {
    const uintptr_t at = s->path.at;
    const size_t bytes = readable_bytes(s, at);
    if (!bytes)
        return code_rule_give_up(s);
    const struct instruction i = arch_instruction((const uint8_t *)at, bytes);
    const enum progress progress = follow(s, &i);
    if (progress != PATH_ON)
        return progress;
    s->path.at = at + i.length;
    if (i.effect == EFFECT_CALL) { /* paths without calls go first */
        s->path.has_called = s->path.has_just_called = true;
        if (s->branch_count == 0 || s->call_count == MAX_CALLS)
            return PATH_ON;
        s->calls[s->call_count++] = s->path;
        return PATH_DEAD;
    }
    if (i.effect != EFFECT_JUMP)
        return PATH_ON;
    s->path.at = i.target;
    return is_new(s, i.target) ? PATH_ON : PATH_DEAD;
}

struct rule code_rule(const struct code_view *view, uintptr_t pc) {
    struct search s = {.view = view,
                       .readable_page = NO_PAGE,
                       .path = {.at = pc, .sp = {BASE_SP, 0}, .pushed = {BASE_LOST, 0}},
                       .found = {.cfa_kind = RULE_RECORD, .fp_kind = FP_SAME}};
    for (int i = 0; i < MAX_INSTRUCTIONS; i++) {
        const enum progress progress = code_rule_take(&s);
        if (progress == PATH_FOUND)
            return s.found;
        if (progress == PATH_DEAD && !next_path(&s)) {
            s.found.fp_kind = s.gave_up ? FP_SAME : FP_LOST;
            return s.found;
        }
    }
    return s.found;
}
