"""A weather station as an MCP server: five tools that show what a tool can do, and one can cost.

It is made with the official SDK, as any MCP server might be, and knows nothing of bridge.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from bridge.demo.radar import radar_png
from bridge.demo.weather import (
    Forecast,
    Units,
    UnknownCity,
    Weather,
    day_ahead,
    find_city,
    weather,
)

SYSTEMS: dict[str, Units] = {"metric": "metric", "imperial": "imperial"}

READ_ONLY = ToolAnnotations(read_only_hint=True)
COSTS_MONEY = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)

City = Annotated[str, Field(description="The name of a city, for instance Tokyo")]
Days = Annotated[int, Field(description="How many days ahead", ge=1, le=7)]


class Receipt(BaseModel):
    """What was bought, and the proof of it."""

    receipt: str = Field(description="The receipt's number; no two purchases share one")
    city: str
    price: float
    currency: str


def demo_server(units: Units, pace: float) -> MCPServer:
    """The demo, with its own receipts; `pace` is how many seconds one day of a forecast takes."""
    server = MCPServer(
        "weather-demo",
        title="Weather demo",
        instructions="Weather in a few cities. Every value is made up.",
        log_level="CRITICAL",  # stderr is for what goes wrong, not for what tools answer
    )
    _add_reading_tools(server, units)
    _add_forecast(server, units, pace)
    _add_buying(server)
    return server


def units_of(environ: Mapping[str, str]) -> Units:
    """The system of units that UNITS asks for; metric where it is unset.

    Raises:
        ValueError: UNITS is neither metric nor imperial.
    """
    wanted = environ.get("UNITS", "metric")
    if wanted in SYSTEMS:
        return SYSTEMS[wanted]

    raise ValueError(f"UNITS is {wanted!r}; it must be metric or imperial")


def pace_of(environ: Mapping[str, str]) -> float:
    """The seconds that PACE asks for; a tenth of one where it is unset.

    Raises:
        ValueError: PACE is not a number of seconds.
    """
    wanted = environ.get("PACE", "0.1")
    try:
        return max(0.0, float(wanted))
    except ValueError:
        raise ValueError(f"PACE is {wanted!r}; it must be a number of seconds") from None


def _add_reading_tools(server: MCPServer, units: Units) -> None:
    @server.tool(title="Weather now", annotations=READ_ONLY)
    def get_weather(city: City) -> Weather:
        """Tell the weather in a city now."""
        return weather(_known(city), units)

    @server.tool(title="Rain radar", annotations=READ_ONLY, structured_output=False)
    def radar(city: City) -> list[str | Image]:
        """Show where it rains around a city, as a picture."""
        name = _known(city)
        return [f"Rain around {name} now.", Image(data=radar_png(name), format="png")]

    @server.tool(title="Storm alert", annotations=READ_ONLY, structured_output=False)
    def storm_alert(city: City) -> str:
        """Tell whether a storm is coming. Always fails: the demo has no storm service."""
        raise ToolError(f"the storm service has no data for {_known(city)}; try again later")


def _add_forecast(server: MCPServer, units: Units, pace: float) -> None:
    @server.tool(title="Forecast", annotations=READ_ONLY)
    async def forecast(city: City, ctx: Context, days: Days = 3) -> Forecast:
        """Work out the weather of the next days, reporting progress day by day."""
        name = _known(city)
        done = []
        for day in range(1, days + 1):
            await anyio.sleep(pace)
            done.append(day_ahead(name, day, units))
            await ctx.report_progress(day, days, f"day {day} of {days}")

        return Forecast(city=name, units=units, days=done)


def _add_buying(server: MCPServer) -> None:
    numbers = itertools.count(1)

    @server.tool(title="Buy a report", annotations=COSTS_MONEY)
    def buy_report(city: City) -> Receipt:
        """Buy a printed climate report on a city. Costs money each time it runs."""
        name = _known(city)
        return Receipt(receipt=f"R-{next(numbers):04}", city=name, price=4.5, currency="EUR")


def _known(city: str) -> str:
    try:
        return find_city(city)
    except UnknownCity as exc:
        raise ToolError(str(exc)) from None
