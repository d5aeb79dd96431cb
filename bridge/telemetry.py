"""Where bridge says what it does: one logger for every room, silent until somebody listens."""

from __future__ import annotations

import logging

log = logging.getLogger("bridge")
log.addHandler(logging.NullHandler())
