#include "relay.h"

RELAY("the fourth object", throw)
