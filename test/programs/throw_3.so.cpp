#include "relay.h"

#include <stdexcept>

RELAY("the third object", std::throw_with_nested(std::runtime_error("nested")))
