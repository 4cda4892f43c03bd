"""The version of this perse, which the wheel, manifests and servers name."""

__version__ = "0.1.0"
