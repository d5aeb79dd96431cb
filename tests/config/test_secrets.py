"""Whatever is wrong with settings, nothing secret is said, and what is said is ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.config.agent import AgentSettings, ModelSettings, OpenAICompatibleSettings
from bridge.config.explain import UNEXPLAINED
from bridge.config.load import from_mapping
from bridge.config.settings import (
    HttpSettings,
    LocalToolSettings,
    ServeSettings,
    Settings,
    ToolRules,
    UpstreamSettings,
)
from bridge.config.state import StateSettings
from bridge.errors import ConfigError

CANARY = "canary-7f3a"
ENVIRON = {"CANARY": CANARY, "BROKEN": f"{CANARY}\r\nx"}

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(
        ["", "x", "a:b", "5s", "1KiB", "https://x/", "auto", "${CANARY}", "${BROKEN}", "${NOT_SET}"]
    )
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def some_of(model: Any, /, **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings of a model's keys, each with what fits or with anything."""
    keys = {key: parts.get(key, VALUES) | VALUES for key in (*model.model_fields, "unknown")}
    return st.fixed_dictionaries({}, optional=keys)


SECRETS = st.dictionaries(
    st.sampled_from(["A", "Authorization", f"A={CANARY}", f"A: {CANARY}", ""]),
    st.sampled_from([CANARY, f"{CANARY}\n", "${CANARY}", "${BROKEN}", f"${{X:?{CANARY}}}"])
    | st.lists(st.just(CANARY), max_size=1),
    max_size=2,
)
URLS = st.sampled_from([f"https://me:{CANARY}@x/", f"ftp://x/{CANARY}", f"https://x/?k={CANARY} "])
RULES = some_of(ToolRules)
UPSTREAM = some_of(UpstreamSettings, env=SECRETS, headers=SECRETS, url=URLS, tools=RULES)
HTTP = some_of(HttpSettings, token=st.sampled_from([CANARY, f"{CANARY} x", "${BROKEN}"]))
KEYS = st.sampled_from([CANARY, f"{CANARY} x", "${BROKEN}"])
STATE_KEYS = st.lists(st.sampled_from([CANARY, CANARY * 3, f"{CANARY * 3}x", "${BROKEN}"]))
STORES = st.sampled_from([f"postgresql://me:{CANARY}@x/db", f"x://{CANARY}", "a.db", "${CANARY}"])
STATE = some_of(StateSettings, keys=STATE_KEYS, store=STORES)
MODEL = some_of(
    ModelSettings, openai_compatible=some_of(OpenAICompatibleSettings, base_url=URLS, api_key=KEYS)
)
SETTINGS = some_of(
    Settings,
    upstreams=st.dictionaries(st.sampled_from(["a", "b", "c d"]), UPSTREAM, max_size=2),
    tools=st.lists(some_of(LocalToolSettings), max_size=2),
    serve=some_of(ServeSettings, http=HTTP, state=STATE),
    agent=some_of(AgentSettings, model=MODEL, store=STORES),
)
SERVERS = st.dictionaries(
    st.sampled_from(["a", "b c", "local"]),
    st.fixed_dictionaries(
        {},
        optional={
            "command": VALUES,
            "args": VALUES,
            "env": SECRETS | VALUES,
            "headers": SECRETS | VALUES,
            "url": URLS | VALUES,
            "type": VALUES,
            "cwd": VALUES,
            "disabled": VALUES,
            "disabledTools": VALUES,
            "unknown": VALUES,
        },
    )
    | VALUES,
    max_size=2,
)


@given(SETTINGS | st.fixed_dictionaries({"mcpServers": SERVERS}))
def test_whatever_is_written_is_read_or_refused_in_our_words_without_a_secret(
    mapping: dict[str, Any],
) -> None:
    try:
        settings = from_mapping(mapping, Path("/srv"), ENVIRON)
    except ConfigError as exc:
        assert exc.problems
        for line in exc.problems:
            assert CANARY not in line
            assert line.isprintable()
            assert UNEXPLAINED not in line
    else:
        hidden = settings.model_dump(
            include={
                "upstreams": {"__all__": {"env", "headers"}},
                "serve": True,
                "agent": {"model": {"openai_compatible": {"api_key"}}},
            },
            exclude={"serve": {"state": {"store"}}},
        )
        state = settings.serve.state
        for store in (settings.agent.store, None if state is None else state.store):
            assert isinstance(store, Path) or CANARY not in repr(store)

        assert CANARY not in repr(hidden)
        assert CANARY not in str(settings.notes)
