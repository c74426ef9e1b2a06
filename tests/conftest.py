"""Settings that all tests share."""

from hypothesis import settings

# The same examples in every run, no files left behind, and no clock: the machine may be busy.
settings.register_profile("nerprobe", derandomize=True, database=None, deadline=None, max_examples=60)
settings.load_profile("nerprobe")
