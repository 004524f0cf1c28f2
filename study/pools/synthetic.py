"""Our reading of the synthetic setting of the paper's coverage table; the population risk is known.

Every item belongs to one of ``groups`` latent groups, each with the same chance; the groups' risks
are evenly spaced, in the paper from 0.1 to 0.9 (the numbers of items, groups and dimensions and the
noise are not published). Losses are Bernoulli with the risk of the group. The surrogate is that
risk plus Gaussian noise, clipped to [0, 1], and the score sqrt(s (1 - s)). Embeddings are standard
Gaussian and independent of all this: nothing can be learnt from them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from celeus.core.randomness import uniforms
from celeus.errors import InvalidValue
from celeus.simulation.sessions import Truth, with_spread

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class World:
    """A population; ``pool`` draws from it."""

    items: int = 20_000
    groups: int = 5
    noise: float = 0.1
    dimensions: int = 16
    least_risk: float = 0.1
    largest_risk: float = 0.9

    @property
    def risks(self) -> Floats:
        """Risk of every group."""
        return np.linspace(self.least_risk, self.largest_risk, self.groups)

    @property
    def risk(self) -> float:
        """The population risk."""
        return float(self.risks.mean())

    def pool(self, seed: bytes) -> Truth:
        """A pool drawn anew: everything about its items is random, their groups too."""
        group = (uniforms(seed, "group", self.items) * self.groups).astype(np.int64)
        chance = self.risks[group]
        loss = (uniforms(seed, "loss", self.items) < chance).astype(np.float64)
        noise = self.noise * ndtri(uniforms(seed, "surrogate", self.items))
        surrogate = np.clip(chance + noise, 0.0, 1.0)
        return Truth(loss, with_spread(surrogate))

    def embeddings(self, seed: bytes) -> Floats:
        """Embeddings of the items of ``pool(seed)``, shape [items, dimensions]."""
        normal = ndtri(uniforms(seed, "embedding", self.items * self.dimensions))
        return np.asarray(normal.reshape(self.items, self.dimensions))


def checked(world: World) -> World:
    """The world; refuses what is none."""
    rules = (
        ("items", "at least 10", world.items >= 10),
        ("groups", "at least 2", world.groups >= 2),
        ("noise", "at least 0 and at most 10", 0.0 <= world.noise <= 10.0),
        ("dimensions", "at least 1", world.dimensions >= 1),
        ("least_risk", "at least 0", world.least_risk >= 0.0),
        ("largest_risk", "above least_risk, at most 1", world.least_risk < world.largest_risk <= 1),
    )
    for field, rule, holds in rules:
        if not holds:
            value = getattr(world, field)
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=value)
    return world
