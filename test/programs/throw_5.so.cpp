#include "relay.h"

RELAY("the fifth object", throw)
