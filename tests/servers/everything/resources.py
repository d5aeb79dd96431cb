"""The resources, and the template of more."""

from __future__ import annotations

import json
import re

from mcp_types import (
    BlobResourceContents,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from tests.servers.everything.contents import PNG
from tests.servers.everything.world import WATCHED, World

RESOURCES = [
    Resource(
        uri="test://static-text",
        name="static-text",
        description="A text that stays.",
        mime_type="text/plain",
    ),
    Resource(
        uri="test://static-binary",
        name="static-binary",
        description="A picture that stays.",
        mime_type="image/png",
    ),
    Resource(
        uri=WATCHED,
        name="watched-resource",
        description="A text that changes.",
        mime_type="text/plain",
    ),
]
TEMPLATES = [
    ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data of an id.",
        mime_type="application/json",
    )
]

TEMPLATED = re.compile(r"test://template/(?P<id>[^/]+)/data")


def read(world: World, uri: str) -> ReadResourceResult | None:
    """What stands at a URI; None where nothing does."""
    if uri == "test://static-binary":
        blob = BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        return ReadResourceResult(contents=[blob])

    found = _text(world, uri)
    if found is None:
        return None

    mime_type, words = found
    content = TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return ReadResourceResult(contents=[content])


def _text(world: World, uri: str) -> tuple[str, str] | None:
    if uri == "test://static-text":
        return "text/plain", "This is the content of the static text resource."

    if uri == WATCHED:
        return "text/plain", f"Version {world.watched_version} of the watched resource."

    if (match := TEMPLATED.fullmatch(uri)) is not None:
        data = {"id": match["id"], "templateTest": True, "data": f"Data for ID: {match['id']}"}
        return "application/json", json.dumps(data)

    return None
