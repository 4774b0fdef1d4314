#include "profile_kind.h"

#include "harvest.h"

const struct profile_attribute profile_attributes[SAMPLE_ATTRIBUTES] = {
#define ATTRIBUTE(constant, flag, key, meaning) {key, flag},
#include "profile_kinds.def"
};

const struct profile_kind profile_kinds[SAMPLE_KINDS] = {
#define KIND(constant, profile, name, title, time, period, period_type, period_unit, attributes)   \
    {profile, title, time, period, period_type, period_unit, attributes},
#include "profile_kinds.def"
};

const struct profile_value profile_values[PROFILE_VALUES] = {
#define VALUE(kind, index, measure, type, unit, meaning) {kind, index, measure, type, unit},
#include "profile_kinds.def"
};

const struct profile_value *profile_shown(enum sample_kind kind) {
    const struct profile_value *shown = NULL;
    for (int i = 0; i < PROFILE_VALUES; i++)
        if (profile_values[i].kind == kind)
            shown = &profile_values[i];
    return shown;
}

const char *profile_shown_unit(enum sample_kind kind) {
    const struct profile_value *const shown = profile_shown(kind);
    return shown->measure == PERIODS ? profile_kinds[kind].period_unit : shown->unit;
}
