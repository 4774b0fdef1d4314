#include "relay.h"

RELAY("the first object", throw)
