"""The version, for packaging and for saying who we are."""

VERSION = "0.1.0"
