"""The demo's weather: a few cities, the same values every day, in either system of units."""

from __future__ import annotations

import zlib
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Units: TypeAlias = Literal["metric", "imperial"]


class Weather(BaseModel):
    """What it is like in one city now."""

    model_config = ConfigDict(frozen=True)

    city: str
    units: Units = Field(description="metric: °C and km/h; imperial: °F and mph")
    temperature: float = Field(description="Air temperature, in °C or °F")
    wind: float = Field(description="Wind speed, in km/h or mph")
    humidity: int = Field(description="Relative humidity, in percent", ge=0, le=100)
    condition: str


class Day(BaseModel):
    """One day of a forecast."""

    model_config = ConfigDict(frozen=True)

    day: int = Field(description="1 is tomorrow", ge=1)
    high: float = Field(description="Highest temperature, in °C or °F")
    low: float = Field(description="Lowest temperature, in °C or °F")
    rain: int = Field(description="Chance of rain, in percent", ge=0, le=100)


class Forecast(BaseModel):
    """The days to come in one city."""

    model_config = ConfigDict(frozen=True)

    city: str
    units: Units
    days: list[Day]


class UnknownCity(Exception):
    """The demo has no weather for that city; the text names those it has."""


# City: temperature in °C, wind in km/h, humidity in percent, condition.
CITIES: dict[str, tuple[float, float, int, str]] = {
    "Berlin": (14.0, 18.0, 62, "cloudy"),
    "Lima": (19.0, 14.0, 83, "fog"),
    "London": (12.5, 22.0, 78, "light rain"),
    "Nairobi": (24.0, 11.0, 49, "sunny"),
    "New York": (17.5, 16.0, 55, "partly cloudy"),
    "Reykjavik": (4.0, 37.0, 81, "storm"),
    "Sydney": (23.0, 20.0, 60, "sunny"),
    "Tokyo": (21.0, 9.0, 66, "clear"),
}


def find_city(name: str) -> str:
    """The city's name as the demo writes it, whatever the case it was asked in.

    Raises:
        UnknownCity: There is no such city here.
    """
    for city in CITIES:
        if city.casefold() == name.strip().casefold():
            return city

    raise UnknownCity(f"no weather for {name!r}; known cities: {', '.join(CITIES)}")


def weather(city: str, units: Units) -> Weather:
    """The weather now; `city` is a name that `find_city` gave."""
    temperature, wind, humidity, condition = CITIES[city]
    return Weather(
        city=city,
        units=units,
        temperature=_degrees(temperature, units),
        wind=_speed(wind, units),
        humidity=humidity,
        condition=condition,
    )


def day_ahead(city: str, day: int, units: Units) -> Day:
    """The forecast for one day; `city` is a name that `find_city` gave, and 1 is tomorrow."""
    temperature = CITIES[city][0]
    chance = zlib.crc32(f"{city} {day}".encode())
    swing = chance % 7 - 3
    return Day(
        day=day,
        high=_degrees(temperature + swing + 4, units),
        low=_degrees(temperature + swing - 5, units),
        rain=chance // 7 % 101,
    )


def _degrees(celsius: float, units: Units) -> float:
    return round(celsius if units == "metric" else celsius * 9 / 5 + 32, 1)


def _speed(kilometres: float, units: Units) -> float:
    return round(kilometres if units == "metric" else kilometres / 1.609344, 1)
