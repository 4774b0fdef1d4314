"""How the command finds the processes that answer, and where: scripts/otelprof_lib/answering.py."""

import re

from conftest import ROOT
from otelprof_lib import answering


def test_the_helpers_names_are_those_of_the_library():
    names = re.findall(r'^#define HELPER_NAME\w* "(.*)"$', (ROOT / "common/helper_name.h").read_text(), re.M)
    assert answering.HELPERS == tuple(names)
