"""The borders of a node to other domains, by the settings."""

from __future__ import annotations

from fieldfare.core.domains import Federation
from fieldfare.filters import EVERYTHING, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.filter import Filter
from fieldfare.node.config.addresses import url_problem
from fieldfare.node.config.names import is_name
from fieldfare.node.config.settings import Config
from fieldfare.node.config.sources import Sources
from fieldfare.protocol.versions import has
from fieldfare.routing.strategies import by_name


def federation_of(config: Config) -> Federation:
    """Return the domain of a node, with the events for each border."""
    shares = {domain: _filter(border.share) for domain, border in config.federation.borders.items()}
    return Federation(config.federation.domain, shares)


def _filter(share: bool | str) -> Filter:
    if isinstance(share, str):
        return parse(share)
    return EVERYTHING if share else Filter(())


def check_federation(config: Config, sources: Sources) -> None:
    """Raise a ConfigError for the first wrong setting of `[federation]`."""
    own, borders = config.federation.domain, config.federation.borders
    if own and not is_name(own):
        raise sources.error("federation.domain", "a name has letters, digits, dots, dashes and underscores")
    if borders and not own:
        raise sources.error("federation.domain", "is missing: other domains must know the name of this one")
    if borders and not by_name(config.strategy).crosses_borders:
        raise sources.error("strategy", f"{config.strategy} does not go with borders: take covering, for instance")
    if borders and config.role != "peer":
        raise sources.error("role", "a node with borders has peers only")
    if borders and not has(config.speaks, "JoinChannel"):
        raise sources.error("speaks", f"version {config.speaks} has no borders")
    for name, border in borders.items():
        place = f"federation.borders.{name}"
        if not is_name(name) or name == own:
            raise sources.error(place, f"{name!r} is not the name of another domain")
        if border.url and (problem := url_problem(border.url, ("ws", "wss"))):
            raise sources.error(f"{place}.url", problem)
        try:
            _filter(border.share)
        except (FilterSyntaxError, FilterTooComplex) as error:
            raise sources.error(f"{place}.share", f"expected true, false or a filter; {error}") from None
