#include "relay.h"

RELAY("the second object", throw)
