"""Lists the settings that a running process can change, by their short names, in the order of its own list
(shim/flush/control/settable.def)."""

SETTABLE = ("START", "TYPES", "CPU_FREQUENCY", "ALLOC_INTERVAL", "WAIT_FREQUENCY", "LOCK_INTERVAL", "MAX_OVERHEAD",
            "MAX_STACK_DEPTH", "LOG_LEVEL", "CPU_THRESHOLD", "CONDITION")
