"""Properties are tried on the same examples everywhere, however slow the machine is."""

from hypothesis import settings

settings.register_profile("celeus", deadline=None, derandomize=True)
settings.load_profile("celeus")
