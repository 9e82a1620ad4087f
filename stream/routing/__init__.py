"""Which task a text belongs to, where nobody says so: one file per kind of router.

`base` says what a router is, `features` computes what some of them read, `statistics` what those
keep of each class.
"""

from collections.abc import Mapping

from stream.routing.base import Router
from stream.routing.class_mean import ClassMean
from stream.routing.confidence import Confidence
from stream.routing.entropy import Entropy
from stream.routing.mahalanobis import Mahalanobis

ROUTERS: Mapping[str, type[Router]] = {
    "class_mean": ClassMean,
    "mahalanobis": Mahalanobis,
    "entropy": Entropy,
    "confidence": Confidence,
}
"""The kinds by the names that ``router.kind`` has for them."""
